"""Commands on lists of images: the same results as on the folders that hold them."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import QUICK, Domains, Ended, weights

from sohot.data import scan_folder

Sohot = Callable[..., Ended]


def write_list(file: Path, *folders: Path, domain: bool = False) -> Path:
    """List the images of folders by their absolute paths."""
    lines = [["path", "label", *(["domain"] if domain else [])]]
    for folder in folders:
        images = scan_folder(folder, check=False).images
        for path, label in zip(images.files, images.labels, strict=True):
            lines.append([str(path), images.classes[label], *([folder.name] if domain else [])])
    with file.open("w", newline="") as stream:
        csv.writer(stream).writerows(lines)
    return file


@pytest.fixture
def lists(trained: tuple[Path, Domains], tmp_path: Path) -> Domains:
    found = trained[1]
    named = {name: getattr(found, name) for name in ("source", "target", "test")}
    return Domains(**{name: write_list(tmp_path / f"{name}.csv", folder) for name, folder in named.items()})


def test_a_run_on_lists_is_the_run_on_folders(
    sohot: Sohot, trained: tuple[Path, Domains], lists: Domains, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    options = ("--shots", 3, "--steps", 40, "--lr", 0.01, "--clip-norm", 1, "--quiet", "--out", out)
    assert sohot("fit", *lists.options(), *options).code == 0
    assert weights(out) == weights(trained[0])
    for name in ("predictions.csv", "split.json"):
        assert (out / name).read_bytes() == (trained[0] / name).read_bytes()
    assert sohot("info", out, "--json").json["data"]["source"]["folder"] == str(lists.source)
    assert sohot("fit", "--out", out, "--resume", "--quiet").code == 0
    lists.source.write_text("".join(lists.source.read_text().splitlines(keepends=True)[:-1]))
    ended = sohot("fit", "--out", out, "--resume", "--quiet")
    assert ended.code == 2
    assert "source" in ended.last


def test_finished_runs_take_lists(sohot: Sohot, trained: tuple[Path, Domains], lists: Domains, tmp_path: Path) -> None:
    run, folders = trained
    tested, expected = (sohot("evaluate", run, place, "--json") for place in (lists.test, folders.test))
    assert tested.json == expected.json
    assert f"12 images from {lists.test}" in sohot("evaluate", run, lists.test).err
    labelled, files = (sohot("predict", run, place, "--json").json for place in (lists.test, folders.test))
    assert labelled["predictions"] == files["predictions"]
    new = tmp_path / "new.jsonl"
    rows = [{"path": str(folders.test / "red" / f"{number}.png")} for number in (3, 1)]
    new.write_text("\n".join(map(json.dumps, rows)))
    in_order = [row["path"] for row in sohot("predict", run, new, "--json").json["predictions"]]
    assert in_order == [row["path"] for row in rows]
    suggested = sohot("suggest", run, new, "--json").json["suggestions"]
    assert {row["path"] for row in suggested} == set(in_order)
    ended = sohot("evaluate", run, new)
    assert (ended.code, "new.jsonl: 2 of 2 rows have no label, the first in line 1" in ended.last) == (2, True)


def test_features_of_lists(sohot: Sohot, trained: tuple[Path, Domains], lists: Domains, tmp_path: Path) -> None:
    options = (*QUICK[:4], "--device", "cpu", "--json", "--out")
    found, folder = (
        sohot("features", place, *options, tmp_path / "a.npz").json for place in (lists.test, trained[1].test)
    )
    assert {**found, "out": None} == {**folder, "out": None}
    assert found["domains"] == {"test": 12}
    bare = tmp_path / "bare.csv"
    bare.write_text("\n".join(line.split(",")[0] for line in lists.test.read_text().splitlines()))
    ended = sohot("features", bare, *options, tmp_path / "b.npz")
    assert (ended.json["rows"], ended.json["classes"]) == (12, [])
    assert "bare.csv has no labels, so its images get no labels" in ended.err
    assert sohot("features", lists.test, "--no-labels", *options, tmp_path / "c.npz").json["classes"] == []


def test_a_list_with_domains_is_a_data_set(sohot: Sohot, domains: Domains, tmp_path: Path) -> None:
    file = write_list(tmp_path / "all.csv", domains.source, domains.target, domain=True)
    checked = sohot("data", "check", "domains", file, "--json").json
    assert {name: domain["images"] for name, domain in checked["domains"].items()} == {"source": 18, "target": 15}
    out = tmp_path / "split.json"
    draw = ("--shift", "source-target", "--protocol", "k-shot", "--target-shots", 2, "--source-shots", 3)
    assert sohot("data", "split", "domains", file, *draw, "--out", out).code == 0
    split = json.loads(out.read_text())
    assert {side: len(images["files"]) for side, images in split["sides"].items()}["target_train"] == 6
    again = sohot("data", "split", "domains", tmp_path, *draw, "--json").json
    assert split["sides"] == again["sides"]
    file.write_text(file.read_text().replace(",source", ","))
    ended = sohot("data", "check", "domains", file)
    assert (ended.code, "18 of 33 rows have no domain, the first in line 2" in ended.last) == (2, True)


def test_a_grid_takes_a_list_of_domains(sohot: Sohot, domains: Domains, tmp_path: Path) -> None:
    file, grid = write_list(tmp_path / "all.csv", domains.source, domains.target, domain=True), tmp_path / "mine.toml"
    grid.write_text(
        'title = "mine"\ndataset = "domains"\nprotocol = "k-shot"\nbackbone = "small-cnn"\nsplits = 1\n'
        'shifts = ["source-target"]\nmethods = ["s+t"]\n[settings]\ntarget_shots = 2\nsource_shots = 3\nsteps = 1\n'
    )
    options = ("--data", file, "--out", tmp_path / "out", "--dry-run", "--json")
    assert len(sohot("experiment", grid, *options).json["cells"]) == 1
    ended = sohot("experiment", "office-alexnet", *options)
    assert (ended.code, "--data must be a folder, but" in ended.last) == (2, True)
    ended = sohot("data", "check", "office31", file)
    assert (ended.code, "all.csv is a file, but the data set is a folder" in ended.last) == (2, True)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("path,label\n\x1b]0;x\x07.png,mug\n", r"line 2: '\x1b]0;x\x07.png' cannot be found: there is no such file"),
        ("path,label\nred/0.png,red\nred/0.png,blue\n", "line 3: 'red/0.png' is in line 2 already"),
    ],
)
def test_a_wrong_list_is_refused_in_one_sentence(sohot: Sohot, domains: Domains, content: str, sentence: str) -> None:
    file = domains.source / "list.csv"
    file.write_text(content)
    ended = sohot("fit", *domains.options(), "--source", file, "--out", domains.source.parent / "run")
    assert ended.code == 2
    assert sentence in ended.last
