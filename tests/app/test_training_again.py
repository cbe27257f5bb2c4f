"""Training again takes the options and images of a run, and the new labels."""

import json
from pathlib import Path

import pytest
from local_app import picture

from sohot.app.session import Session, free_folder
from sohot.app.training_again import why_not, with_labelled, write_request
from sohot.data import LabelledImages
from sohot.runs import RunConfig, gather, read_config
from sohot.runs.split_file import read_sides
from sohot.runs.trust import UntrustedCode


@pytest.fixture
def target(tmp_path: Path) -> LabelledImages:
    files = [tmp_path / "data" / f"{number}.png" for number in range(3)]
    files[0].parent.mkdir()
    for seed, file in enumerate(files):
        file.write_bytes(picture(seed))
    return LabelledImages(tuple(files), (0, 1, 1), ("cup", "mug"), tmp_path / "data")


def test_new_images_join_and_of_the_same_bytes_the_new_label_counts(target: LabelledImages, tmp_path: Path) -> None:
    new = [tmp_path / "app" / name for name in ("same.png", "other.png")]
    new[0].parent.mkdir()
    for seed, file in zip((1, 7), new, strict=True):
        file.write_bytes(picture(seed))
    labelled = LabelledImages(tuple(new), (0, 1), ("cup", "mug"), tmp_path / "app")
    found = with_labelled(target, labelled)
    assert dict(zip(found.files, found.labels, strict=True)) == {
        target.files[0]: 0,
        target.files[2]: 1,
        new[0]: 0,
        new[1]: 1,
    }
    assert found.root == tmp_path
    assert with_labelled(target, labelled.subset([])).files == target.files


def test_groups_and_parts_stay(target: LabelledImages, tmp_path: Path) -> None:
    boxes = LabelledImages(
        target.files, target.labels, target.classes, target.root, ("0,0,9,9",) * 3, ("one", "two", "two")
    )
    (tmp_path / "new.png").write_bytes(picture(9))
    found = with_labelled(boxes, LabelledImages((tmp_path / "new.png",), (0,), ("cup", "mug"), tmp_path))
    assert found.parts == ("0,0,9,9",) * 3 + ("",)
    assert found.groups == ("one", "two", "two", "")


def test_the_request_is_one_that_fit_takes_and_a_labelled_test_image_no_longer_tests(
    session: Session, run: Path, tmp_path: Path
) -> None:
    before = read_sides(run / "split.json")
    test = before["target_test"]
    for row in (0, 5):
        image = session.dropped.add("a.png", test.files[row].read_bytes())
        session.labelled.give(image, test.classes[test.labels[row]])
    file = write_request(run, session.labelled.images(), tmp_path, "again")
    config = RunConfig.from_values({**read_config(file), "out": tmp_path / "out"})
    assert (config.method, config.steps, config.seed) == ("so+zeta", 6, 1)
    config.require_places()
    data = gather(config)
    assert data.source is not None and data.target is not None and data.test is not None  # noqa: PT018
    assert data.source.files == before["source_train"].files
    assert len(data.target) == len(before["target_train"]) + 2
    assert {*data.test.files} == {*test.files} - {test.files[0], test.files[5]}
    assert data.classes == test.classes


def test_what_cannot_train_again_is_told(run: Path, session: Session, tmp_path: Path) -> None:
    head = tmp_path / "head"
    head.mkdir()
    (head / "model.safetensors").touch()
    assert "fit-features" in str(why_not(head))
    text = (run / "config.toml").read_text()
    (run / "config.toml").write_text(text.replace('"small-cnn"', '"evil.py:net"'))
    with pytest.raises(UntrustedCode, match="--trust"):
        write_request(run, session.labelled.images(), tmp_path, "again")
    (run / "config.toml").write_text(text)
    split = json.loads((run / "split.json").read_text())
    Path(split["folders"]["source_train"], split["sides"]["source_train"]["files"][0])
    split["folders"]["source_train"] = str(tmp_path)
    (run / "split.json").write_text(json.dumps(split))
    with pytest.raises(ValueError, match="images of source_train are not in"):
        write_request(run, session.labelled.images(), tmp_path, "again")
    (run / "split.json").unlink()
    with pytest.raises(ValueError, match="does not say which images"):
        write_request(run, session.labelled.images(), tmp_path, "again")


def test_a_new_run_never_takes_the_place_of_another(tmp_path: Path) -> None:
    assert free_folder(tmp_path / "first").name == "first-2"
    (tmp_path / "first-2").mkdir()
    (tmp_path / "first-3").symlink_to(tmp_path / "nowhere")
    assert free_folder(tmp_path / "first").name == "first-4"
