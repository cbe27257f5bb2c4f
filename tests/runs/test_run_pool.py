"""Unlabelled target images of a run: where they come from, and what they are to the test."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import Domains, make_domains, write_images

from sohot.data import LabelledImages
from sohot.data.labelled import UNLABELLED
from sohot.runs import RunConfig, RunData, gather
from sohot.runs.description import command
from sohot.runs.split_file import describe_split, read_pool, write_run_split


@pytest.fixture
def domains(tmp_path: Path) -> Domains:
    return make_domains(tmp_path)


@pytest.fixture
def asked(domains: Domains) -> RunConfig:
    return RunConfig(source=domains.source, target=domains.target, shots=2)


def files(images: LabelledImages | None) -> set[Path]:
    return set() if images is None else set(images.files)


def unlabelled(data: RunData) -> LabelledImages:
    assert data.pool is not None
    assert (data.pool.classes, set(data.pool.labels)) == ((UNLABELLED,), {0})
    return data.pool


def test_the_rest_is_the_pool_and_the_test(asked: RunConfig, domains: Domains) -> None:
    plain, data = gather(asked), gather(replace(asked, unlabelled="rest"))
    assert data.test == plain.test
    assert files(unlabelled(data)) == files(data.test)
    assert (data.target, data.source) == (plain.target, plain.source)
    assert data.protocol == "transductive"
    assert data.notes == ["9 of 9 test images are among the unlabelled images: the accuracy is transductive"]
    assert data.as_json()["pool"] == {"folder": str(domains.target), "images": 9}
    assert gather(replace(asked, unlabelled="rest", protocol="transductive")).as_json() == data.as_json()


def test_of_the_rest_one_half_is_never_seen(asked: RunConfig) -> None:
    whole, data = gather(asked), gather(replace(asked, unlabelled="rest", protocol="inductive"))
    assert data.protocol == "inductive"
    assert (len(unlabelled(data)), len(files(data.test))) == (5, 4)
    assert files(data.pool) | files(data.test) == files(whole.test)
    assert data.target == whole.target
    assert data.test is not None
    assert all(
        file.parent.name == data.classes[row] for file, row in zip(data.test.files, data.test.labels, strict=True)
    )


def test_folders_are_not_read_as_classes(asked: RunConfig, tmp_path: Path) -> None:
    more = write_images(tmp_path / "more", 2, 40, 7)
    expected = gather(replace(asked, unlabelled=more))
    assert (len(unlabelled(expected)), expected.protocol) == (6, "inductive")
    flat = tmp_path / "flat"
    flat.mkdir()
    for number, file in enumerate(sorted(more.rglob("*.png"))):
        shutil.copy(file, flat / f"{number}.png")
    (more / "blue").rename(more / "red" / "inner")  # no class of the target, and half of the images in another one
    for folder in (more, flat):
        data = gather(replace(asked, unlabelled=folder))
        assert len(unlabelled(data)) == 6
        assert data.classes == expected.classes
        assert not data.left_out
    both = unlabelled(gather(replace(asked, unlabelled=(more, flat))))
    assert len(both) == 12
    assert both.name(0) == "more/green/0.png"
    assert both.origin == f"{more}, {flat}"


def test_damaged_images_are_left_out_and_named_once(asked: RunConfig, domains: Domains) -> None:
    (domains.target / "red" / "9.png").write_bytes(b"no picture")
    data = gather(replace(asked, unlabelled=domains.target))
    assert [one.path.name for one in data.left_out] == ["9.png"]
    assert len(unlabelled(data)) == 9


def test_copies_of_labelled_images_are_left_out(asked: RunConfig, domains: Domains) -> None:
    data = gather(replace(asked, unlabelled=domains.target))  # all target images: those that train, and the rest
    assert files(unlabelled(data)) == files(data.test)
    assert data.protocol == "transductive"
    assert data.notes[0] == "left out of the unlabelled images: 6 byte-identical to labelled training images"
    with pytest.raises(ValueError, match="all 18 unlabelled images are byte-identical to labelled training images"):
        gather(replace(asked, unlabelled=domains.source))


def test_test_images_in_the_pool_are_noticed_by_their_bytes(asked: RunConfig, domains: Domains, tmp_path: Path) -> None:
    more = write_images(tmp_path / "more", 1, 40, 7)
    asked = replace(asked, shots=None, target_test=domains.test, unlabelled=more)
    assert gather(replace(asked, protocol="inductive")).protocol == gather(asked).protocol == "inductive"
    with pytest.raises(ValueError, match="--protocol transductive, but no test image is among the unlabelled images"):
        gather(replace(asked, protocol="transductive"))
    shutil.copy(domains.test / "red" / "0.png", more / "another name.png")
    found = gather(asked)
    assert found.protocol == gather(replace(asked, protocol="transductive")).protocol == "transductive"
    assert found.notes[-1].startswith("1 of 12 test images are among the unlabelled images")
    with pytest.raises(ValueError, match="--protocol inductive, but 1 of 12 test images are among"):
        gather(replace(asked, protocol="inductive"))


def test_without_test_images_the_protocol_is_inductive(asked: RunConfig, tmp_path: Path) -> None:
    data = gather(replace(asked, shots=None, unlabelled=write_images(tmp_path / "more", 1, 40, 7)))
    assert (data.test, data.protocol) == (None, "inductive")


def test_the_split_stores_the_pool_without_labels(asked: RunConfig, tmp_path: Path) -> None:
    for number, protocol in enumerate(("transductive", "inductive")):
        folder = tmp_path / str(number)
        folder.mkdir()
        data = gather(replace(asked, unlabelled="rest", protocol=protocol))
        write_run_split(folder, data.classes, data.sides())
        again = gather(RunConfig(split=folder / "split.json", protocol=protocol))
        assert again.sides() == data.sides()
        assert (again.protocol, read_pool(folder)) == (protocol, data.pool)
    none = gather(asked)
    write_run_split(tmp_path, none.classes, none.sides())
    assert read_pool(tmp_path) is None
    with pytest.raises(ValueError, match=r"--protocol inductive is about unlabelled images, but --split .* lists none"):
        gather(RunConfig(split=tmp_path / "split.json", protocol="inductive"))


def test_the_fingerprint_of_a_split_without_a_pool_is_what_it_was() -> None:
    root = Path("data")
    images = LabelledImages([root / "mug" / "1.png", root / "pen" / "1.png"], [0, 1], ["mug", "pen"], root)
    sides = {"source_train": images, "target_train": images.subset([0]), "target_test": images.subset([1])}
    fingerprint = "68027bff864fb83eeea5872055829f26dbc4ba9d83693d8cf6b48dbe3095711c"
    assert describe_split(images.classes, sides)["fingerprint"] == fingerprint
    pool = images.subset([1]).without_labels()
    described = describe_split(images.classes, {**sides, "target_pool": pool})
    assert described["sides"]["target_pool"] == {"files": ["pen/1.png"]}
    assert described["fingerprint"] != fingerprint


def test_a_folder_takes_the_place_of_the_pool_in_a_split(asked: RunConfig, tmp_path: Path) -> None:
    data = gather(replace(asked, unlabelled="rest"))
    write_run_split(tmp_path, data.classes, data.sides())
    more = write_images(tmp_path / "more", 1, 40, 7)
    found = gather(RunConfig(split=tmp_path / "split.json", unlabelled=more))
    assert (len(unlabelled(found)), found.protocol, found.test) == (3, "inductive", data.test)


def test_the_word_and_a_folder_of_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for given in ("rest", ["rest"], ("rest",)):
        config = RunConfig.from_values({"unlabelled": given, "shots": 1})
        assert (config.unlabelled, config.pools(), config.stored()["unlabelled"]) == ("rest", (), "rest")
    for given in ("./rest", ["./rest"], Path("rest")):
        config = RunConfig.from_values({"unlabelled": given})
        assert config.pools() == (Path("rest"),)
        assert RunConfig.from_values(config.stored()).pools() == (tmp_path / "rest",)
    several = RunConfig.from_values({"unlabelled": ["a, b", "c"]})
    assert several.pools() == (Path("a, b"), Path("c"))
    assert f"--unlabelled '{tmp_path / 'a, b'}' --unlabelled {tmp_path / 'c'}" in command(several, "again")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"unlabelled": "rest"}, "--unlabelled rest takes the target images that --shots leaves over: give --shots"),
        ({"unlabelled": ["rest", "more"], "shots": 1}, "--unlabelled rest cannot be combined with folders"),
        ({"protocol": "inductive"}, "--protocol inductive is about unlabelled images: give --unlabelled"),
        ({"protocol": "supervised", "unlabelled": "more"}, "--protocol must be one of"),
        ({"unlabelled": 3}, "--unlabelled must be 'rest' or a UTF-8 path or a list of UTF-8 paths, got 3"),
    ],
)
def test_options_that_cannot_be_meant(options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        RunConfig.from_values(options)


def test_images_that_are_not_there(asked: RunConfig, domains: Domains, tmp_path: Path) -> None:
    for shots, protocol, words in (
        (5, "auto", "--unlabelled rest: --shots 5 leaves no target image over"),
        (5, "inductive", "--unlabelled rest: --shots 5 leaves no target image over"),
    ):
        with pytest.raises(ValueError, match=words):
            gather(replace(asked, shots=shots, unlabelled="rest", protocol=protocol))
    for folders, words in (
        ((domains.test, domains.test), "--unlabelled .*test was given twice"),
        ((domains.test, domains.test / "red"), "--unlabelled .*test/red lies in another folder that was given"),
        ((tmp_path / "empty",), "empty holds no images"),
    ):
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(ValueError, match=words):
            gather(replace(asked, unlabelled=folders))
    with pytest.raises(FileNotFoundError, match=r"--unlabelled .*gone: there is no such folder"):
        replace(asked, unlabelled=tmp_path / "gone", out=tmp_path / "run").require_places()


def test_one_image_cannot_be_halved(domains: Domains, asked: RunConfig) -> None:
    for file in (domains.target / "red").glob("[1-4].png"):
        shutil.copy(domains.target / "red" / "0.png", file)  # copies of one image
    for name in ("blue", "green"):
        for file in (domains.target / name).glob("[2-4].png"):
            file.unlink()
    with pytest.raises(ValueError, match="--protocol inductive needs two different target images"):
        gather(replace(asked, unlabelled="rest", protocol="inductive"))
