import json
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Ended
from official_sets import make_office31, make_voc_sketches, voc_object, write_picture, write_voc

from sohot.data.datasets import sources
from sohot.data.fetch import Download
from sohot.data.protocols import read_split


@pytest.fixture
def office(tmp_path: Path) -> Path:
    return make_office31(tmp_path / "office31", {"amazon": 4, "dslr": 3, "webcam": 5})


@pytest.fixture
def run(sohot: Callable[..., Ended]) -> Callable[..., Ended]:
    return lambda *words: sohot("data", *words)


def test_check_prints_one_json_object_and_fails_where_counts_are_wrong(run, office: Path) -> None:
    result = run("check", "office31", office, "--json")
    assert result.code == 1
    content = json.loads(result.out)
    assert content["domains"]["webcam"]["images"] == 15
    assert content["problems"][0] == "amazon has 12 images, the official release has 2817"
    assert "decoding amazon: 12 done" in result.err


def test_check_says_it_in_words(run, tmp_path: Path) -> None:
    for domain in ("a", "b"):
        for number in range(2):
            write_picture(tmp_path / domain / "mug" / f"{number}.png", number)
    result = run("check", "domains", tmp_path, "--quiet")
    assert result.code == 0
    assert result.err == ""
    assert result.out.splitlines() == [
        "a: 2 images, 1 classes of 2 to 2, 0 repeats",
        "b: 2 images, 1 classes of 2 to 2, 0 repeats",
        "note: 2 pictures occur in several domains; protocols drop them from the source",
        "no problems found",
    ]
    assert "images were not decoded" in run("check", "domains", tmp_path, "--quick").out


def test_split_prints_the_same_bytes_each_time_and_stores_them(run, office: Path, tmp_path: Path) -> None:
    out = tmp_path / "split.json"
    one = run("split", "office31", office, "--shift", "A-W", "--split", 2, "--json", "--out", out)
    two = run("split", "office31", office, "--shift", "a-webcam", "--split", 2, "--json")
    assert one.code == two.code == 0
    assert one.out == two.out == out.read_text()
    content = json.loads(one.out)
    assert content["counts"] == {"source_train": 12, "target_train": 9, "target_test": 6}
    assert str(tmp_path) not in one.out
    assert read_split(out, office).fingerprint == content["fingerprint"]
    assert "note: source_train: classes with fewer than 20 images give what they have" in one.err


def test_split_takes_the_numbers_of_the_protocol(run, office: Path) -> None:
    result = run(
        *("split", "office31", office, "--shift", "A-W", "--protocol", "k-shot", "--target-shots", 1),
        *("--source-shots", 2, "--validation-shots", 1),
    )
    assert result.out.splitlines()[:4] == [
        "source_train: 6 images, 2 to 2 per class",
        "target_train: 3 images, 1 to 1 per class",
        "validation: 3 images, 1 to 1 per class",
        "target_test: 9 images, 3 to 3 per class",
    ]


def test_split_may_have_a_pool_without_labels(run, office: Path) -> None:
    result = run("split", "office31", office, "--shift", "A-W", "--pool", "inductive")
    assert "target_pool: 3 images, without labels\ntarget_test: 3 images, " in result.out
    wrong = run("split", "office31", office, "--shift", "A-W", "--pool", "half")
    assert "pool must be one of 'supervised', 'transductive', 'inductive', got 'half'" in wrong.last


def test_options_and_class_tables(run, tmp_path: Path) -> None:
    root = make_voc_sketches(tmp_path / "voc")
    write_voc(root, 99, voc_object("person"), voc_object("dog", difficult=1))
    table = tmp_path / "table.json"
    table.write_text(json.dumps({"person": {"voc": "person", "sketches": "angel"}}))
    arguments = ("split", "voc-sketches", root, "--json", "--classes", table, "--split", 1)
    assert json.loads(run(*arguments).out)["counts"]["source_train"] == 3
    assert json.loads(run(*arguments, "--option", "whole=true").out)["counts"]["source_train"] == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("split", "office31", "OFFICE", "--shift", "A-X"), "shift must be one of A-W"),
        (("split", "office31", "OFFICE", "--shift", "A-W", "--split", "11"), "split must be in 1 … 10, got 11"),
        (("split", "office31", "OFFICE", "--shift", "A-W", "--protocol", "x"), "protocol must be one of"),
        (("split", "office31", "OFFICE", "--shift", "A-W", "--source-shots", "3"), "takes no source_shots"),
        (("check", "office31", "OFFICE/missing"), "does not exist"),
        (("check", "x", "OFFICE"), "the name of a data set must be one of"),
        (("check", "office31", "OFFICE", "--option", "x"), "--option must read KEY=VALUE, got 'x'"),
        (("fetch", "x"), "the name of a data set must be one of"),
    ],
)
def test_wrong_calls_raise_one_sentence(run, office: Path, arguments: tuple[str, ...], sentence: str) -> None:
    result = run(*(argument.replace("OFFICE", str(office)) for argument in arguments))
    assert (result.code, result.out) == (2, "")
    assert sentence in result.last


def test_fetch_says_where_to_get_it(run, tmp_path: Path) -> None:
    result = run("fetch", "office31", "--to", tmp_path / "here")
    assert result.code == 0
    assert f"tar -xzf domain_adaptation_images.tar.gz -C {tmp_path / 'here'}" in result.out
    content = json.loads(run("fetch", "office31", "--to", tmp_path / "here", "--json").out)
    assert content["files"] == []
    assert content["sources"][0]["page"].startswith("https://")


def test_fetch_says_where_to_get_it_even_if_a_download_fails(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = sources.Source("X", "free", "", (Download("http://127.0.0.1:9/x", "x.bin", "md5:0"),), ("Unpack it.",))
    monkeypatch.setitem(sources.SOURCES, "digits", (broken,))
    monkeypatch.setattr("sohot.data.fetch.time.sleep", lambda _: None)
    result = run("fetch", "digits", "--to", tmp_path)
    assert result.code == 1
    assert "2. Unpack it." in result.out


def test_fetch_takes_what_is_there(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.bin").write_bytes(b"")
    download = Download("http://127.0.0.1:9/x", "x.bin", "md5:d41d8cd98f00b204e9800998ecf8427e")
    source = sources.Source("X", "free", "", (download,))
    monkeypatch.setitem(sources.SOURCES, "digits", (source,))
    result = run("fetch", "digits", "--to", tmp_path)
    assert result.code == 0
    assert "1. Fetched by this command: http://127.0.0.1:9/x" in result.out
    assert f"then: sohot data check digits {tmp_path}" in result.out
    assert f"fetched: {tmp_path / 'x.bin'}" in result.out
