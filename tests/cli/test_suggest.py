"""`sohot suggest`: which images to label next, for runs and heads, from any folder or from the run's pool."""

import csv
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from command_line import Domains, Ended

from sohot.data import load_batch, scan_folder
from sohot.data.protocols.split import sealed
from sohot.runs import open_model, open_run

Sohot = Callable[..., Ended]


@pytest.fixture
def unlabelled(trained: tuple[Path, Domains], tmp_path: Path) -> Path:
    """A folder as a user has it: images here and in folders, one damaged, one copied, one that trained."""
    folder = tmp_path / "new"
    shutil.copytree(trained[1].test, folder / "album")
    shutil.copy(folder / "album" / "red" / "0.png", folder / "red.png")
    shutil.copy(folder / "album" / "red" / "0.png", folder / "red again.png")
    (folder / "album" / "red" / "0.png").unlink()
    (folder / "damaged.png").write_bytes(b"no image")
    split = json.loads((trained[0] / "split.json").read_text())
    shutil.copy(Path(split["folders"]["target_train"]) / split["sides"]["target_train"]["files"][0], folder)
    return folder


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def with_pool(run: Path, folder: Path, files: list[str]) -> None:
    """Give a run the pool that `sohot fit --unlabelled` stores."""
    content = json.loads((run / "split.json").read_text())
    content["sides"]["target_pool"] = {"files": files, "labels": []}
    content["counts"]["target_pool"] = len(files)
    folders = {**content.pop("folders"), "target_pool": str(folder)}
    content.pop("fingerprint")
    (run / "split.json").write_text(json.dumps({**sealed(content), "folders": folders}))


def test_new_images_are_suggested_once_each(
    sohot: Sohot, trained: tuple[Path, Domains], unlabelled: Path, tmp_path: Path
) -> None:
    ended = sohot("suggest", trained[0], unlabelled, "--count", 5, "--out", tmp_path / "a.csv", "--quiet")
    found = rows_of((tmp_path / "a.csv").read_text())
    assert list(found[0]) == ["rank", "path", "label", "probability", "label_2", "probability_2", "why"]
    assert [row["rank"] for row in found] == ["1", "2", "3", "4", "5"]
    assert len({row["path"] for row in found}) == 5
    assert "left out 1 images that are byte-identical to labelled training images" in ended.err
    assert "left out 1 images that are byte-identical to another one" in ended.err
    assert "damaged.png: it is not an image" in ended.err
    assert all(row["why"] and row["label"] != row["label_2"] for row in found)
    sohot("suggest", trained[0], unlabelled, "--count", 5, "--out", tmp_path / "b.csv", "--quiet")
    assert (tmp_path / "b.csv").read_bytes() == (tmp_path / "a.csv").read_bytes()
    labels = rows_of(sohot("predict", trained[0], unlabelled, "--top", 2, "--quiet").out)
    predicted = {row["path"]: (row["label"], row["label_2"], float(row["probability"])) for row in labels}
    for row in found:  # the labels and calibrated probabilities are those of `sohot predict`
        label, second, share = predicted[row["path"]]
        assert (row["label"], row["label_2"]) == (label, second)
        assert float(row["probability"]) == pytest.approx(share, abs=2e-6)


def test_copies_lie_beside_one_folder_per_class(
    sohot: Sohot, trained: tuple[Path, Domains], unlabelled: Path, tmp_path: Path
) -> None:
    there = tmp_path / "to label"
    there.mkdir()  # an empty folder will do
    ended = sohot("suggest", trained[0], unlabelled, "--count", 50, "--copy-to", there, "--json")
    found = ended.json
    assert found["images"] == len(found["suggestions"]) == 12
    assert found["copied_to"] == str(there)
    assert [one["path"] for one in found["left_out"]] == [str(unlabelled / "damaged.png")]
    assert "there are only 12 images to choose from" in ended.err
    assert {one.name for one in there.iterdir() if one.is_dir()} == {"blue", "green", "red"}
    first = Path(found["suggestions"][0]["path"])
    assert (there / f"01-{first.name}").read_bytes() == first.read_bytes()
    assert len([one for one in there.iterdir() if one.is_file()]) == 12
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []
    ended = sohot("suggest", trained[0], unlabelled, "--copy-to", there)
    assert (ended.code, ended.last) == (2, f"sohot: --copy-to {there} exists already: give a new or an empty folder")


def test_the_list_is_printed_with_reasons(sohot: Sohot, trained: tuple[Path, Domains], tmp_path: Path) -> None:
    ended = sohot("suggest", trained[0], trained[1].test, "--count", 3, "--out", tmp_path / "list.csv", "--quiet")
    *lines, last = ended.out.splitlines()
    assert last == f"3 of 12 images to label next, in {tmp_path / 'list.csv'}"
    for line, row in zip(lines, rows_of((tmp_path / "list.csv").read_text()), strict=True):
        assert line.startswith(f"{row['rank']}  {row['path']}  {row['label']} ")
        assert line.endswith(row["why"])


def test_without_a_folder_the_pool_of_the_run_is_asked(sohot: Sohot, run_copy: Path, unlabelled: Path) -> None:
    ended = sohot("suggest", run_copy)
    assert ended.code == 2
    assert "has no unlabelled images of its own: give a folder" in ended.last
    with_pool(run_copy, unlabelled, ["red.png", "red again.png", "gone.png", "damaged.png", "album/blue/0.png"])
    ended = sohot("suggest", run_copy, "--json")
    assert sorted(Path(one["path"]).name for one in ended.json["suggestions"]) == ["0.png", "red.png"]
    assert [Path(one["path"]).name for one in ended.json["left_out"]] == ["gone.png", "damaged.png"]
    with_pool(run_copy, unlabelled, ["gone.png"])
    assert "none of the 1 unlabelled images" in sohot("suggest", run_copy).last


def test_a_head_suggests_too_and_knows_what_trained_it(
    sohot: Sohot, trained: tuple[Path, Domains], tmp_path: Path
) -> None:
    head, files = tmp_path / "head", []
    for part in ("source", "target"):
        files += [f"--{part}", tmp_path / f"{part}.npz"]
        options = "--backbone", "small-cnn", "--image-size", 16, "--device", "cpu"
        sohot("features", getattr(trained[1], part), "--out", files[-1], *options)
    sohot("fit-features", *files, "--shots", 3, "--out", head)
    ended = sohot("suggest", head, trained[1].target, "--count", 2, "--json")
    assert ended.json["images"] == 6  # of 15, nine of which trained
    assert ended.json["notes"] == ["left out 9 images that are byte-identical to labelled training images"]
    report = json.loads((head / "report.json").read_text())
    (head / "report.json").write_text(json.dumps({**report, "labelled": None}))
    ended = sohot("suggest", head, trained[1].target, "--count", 2, "--json")
    assert ended.json["notes"] == [f"{head} does not say which images trained it"]
    assert "has no unlabelled images of its own" in sohot("suggest", head).last


def test_a_model_gives_features_beside_the_logits_it_always_gave(trained: tuple[Path, Domains]) -> None:
    run = open_run(trained[0])
    images = scan_folder(trained[1].test).images
    batch = load_batch(images, range(12), run.input)
    ((features, logits),) = open_model(trained[0]).features_and_logits([batch])
    assert torch.equal(logits, next(run.logits([batch])))
    with torch.no_grad():
        expected = run.model(None, batch).target_features
    torch.testing.assert_close(features, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["missing"], "the folder missing does not exist"),
        (["{target}", "--count", "0"], "'--count': Input should be greater than or equal to 1"),
        (["{target}", "--out", "-", "--json"], "--out - and --json both write to standard output"),
        (["{target}", "--copy-to", "no/where"], "the folder around it does not exist"),
        (["{trained}"], "all 9 images in {trained} trained with a label already"),
    ],
)
def test_bad_input_is_one_sentence(
    sohot: Sohot, trained: tuple[Path, Domains], tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    run, domains = trained
    split = json.loads((run / "split.json").read_text())
    labelled = tmp_path / "labelled"
    labelled.mkdir()
    for number, name in enumerate(split["sides"]["target_train"]["files"]):
        shutil.copy(domains.target / name, labelled / f"{number}.png")
    places = {"target": domains.target, "trained": labelled}
    ended = sohot("suggest", run, *(word.format(**places) for word in arguments))
    assert ended.code == 2
    assert sentence.format(**places) in " ".join(ended.err.split())
