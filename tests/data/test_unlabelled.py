"""Folders of images without labels, and halves drawn without a look at any label."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sohot.data import FolderScan, LabelledImages
from sohot.data.labelled import UNLABELLED
from sohot.data.unlabelled import scan_unlabelled

MakeFolder = Callable[..., Path]


def names(images: LabelledImages) -> list[str]:
    return [images.name(row) for row in range(len(images))]


def reasons(scan: FolderScan) -> dict[str, str]:
    return {item.path.name: item.reason for item in scan.left_out}


def test_every_image_below_a_folder_is_found_once_and_has_no_label(make_folder: MakeFolder) -> None:
    root = make_folder({"": ["10.png", "9.png"], "mug": ["1.jpg"], "mug/deep": ["2.png"], "pen": ["1.jpg"]})
    found = scan_unlabelled(root).images
    assert names(found) == ["9.png", "10.png", "mug/1.jpg", "mug/deep/2.png", "pen/1.jpg"]
    assert (found.classes, set(found.labels)) == ((UNLABELLED,), {0})
    assert scan_unlabelled(root, check=False).images == found


def test_damaged_images_are_named_and_other_files_ignored(make_folder: MakeFolder) -> None:
    root = make_folder({"any": ["1.png", "2.png"]})
    (root / "any" / "2.png").write_bytes(b"no picture")
    for other in ("notes.txt", ".hidden.png", "__MACOSX"):
        (root / other).write_bytes(b"")
    scan = scan_unlabelled(root)
    assert names(scan.images) == ["any/1.png"]
    assert list(reasons(scan)) == ["2.png"]


def test_links_lead_neither_up_nor_back_but_elsewhere(make_folder: MakeFolder) -> None:
    root, beside = make_folder({"a": ["1.png"]}), make_folder({"": ["2.png"]}, "beside")
    for name, place in (("up", root.parent), ("back", root), ("elsewhere", beside)):
        os.symlink(place, root / "a" / name)
    scan = scan_unlabelled(root)
    assert names(scan.images) == ["a/1.png", "a/elsewhere/2.png"]
    assert set(reasons(scan)) == {"up", "back"}


def test_a_folder_without_a_readable_image_is_refused(make_folder: MakeFolder, tmp_path: Path) -> None:
    root = make_folder({"": []})
    with pytest.raises(ValueError, match="root holds no images"):
        scan_unlabelled(root)
    (root / "1.png").write_bytes(b"no picture")
    with pytest.raises(ValueError, match=r"none of the 1 images in .*root can be read; the first: "):
        scan_unlabelled(root)
    with pytest.raises(FileNotFoundError, match="gone does not exist"):
        scan_unlabelled(tmp_path / "gone")
