"""Labelled images lie in the folder of their class, once, and nowhere else."""

from pathlib import Path

import pytest
from local_app import picture

from sohot.app.dropped_images import DroppedImage, DroppedImages
from sohot.app.labelled_folder import LabelledFolder
from sohot.data import scan_folder

CLASSES = ("cup", "../mug", ".hidden", "<b>pen</b>", "a/b")


@pytest.fixture
def image(tmp_path: Path) -> DroppedImage:
    return DroppedImages(tmp_path).add("a.png", picture())


@pytest.fixture
def labelled(tmp_path: Path) -> LabelledFolder:
    return LabelledFolder(tmp_path / "labelled", CLASSES)


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("name", CLASSES)
def test_a_label_puts_a_copy_into_a_folder_inside(
    labelled: LabelledFolder, image: DroppedImage, tmp_path: Path, name: str
) -> None:
    before = files(tmp_path)
    labelled.give(image, name)
    (file,) = set(files(tmp_path)) - set(before)
    assert file.resolve().parent.parent == labelled.folder.resolve()
    assert file.read_bytes() == image.file.read_bytes()
    again = LabelledFolder(labelled.folder, CLASSES)
    assert again.label(image.key) == labelled.label(image.key) == name
    assert again.counts() == {name: 1}


def test_it_is_a_folder_to_train_on(tmp_path: Path) -> None:
    labelled, dropped = LabelledFolder(tmp_path / "labelled", ("cup", "mug")), DroppedImages(tmp_path)
    for seed, name in enumerate(("cup", "mug", "mug")):
        labelled.give(dropped.add(f"{seed}.png", picture(seed)), name)
    images, scanned = labelled.images(), scan_folder(labelled.folder).images
    assert scanned.classes == images.classes
    assert {*zip(scanned.files, scanned.labels, strict=True)} == {*zip(images.files, images.labels, strict=True)}


def test_a_planted_link_is_not_followed(labelled: LabelledFolder, image: DroppedImage, tmp_path: Path) -> None:
    labelled.folder.mkdir()
    (labelled.folder / "cup").symlink_to(tmp_path)
    with pytest.raises(ValueError, match="is a link"):
        labelled.give(image, "cup")
