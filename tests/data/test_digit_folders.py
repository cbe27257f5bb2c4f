"""Folders of digits to try things with."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sohot.data import DigitFolders, scan_folder, write_digit_folders


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> DigitFolders:
    return write_digit_folders(tmp_path_factory.mktemp("digits"), printed=2, handwritten=3, new=2)


def contents(folder: Path) -> set[bytes]:
    return {Image.open(file).tobytes() for file in folder.rglob("*.png")}


def test_every_digit_has_its_images(folders: DigitFolders) -> None:
    for folder, count in ((folders.printed, 2), (folders.handwritten, 3)):
        found = scan_folder(folder)
        assert found.images.classes == tuple("0123456789")
        assert np.bincount(found.images.labels).tolist() == [count] * 10
    assert len(list(folders.new.glob("*.png"))) == 20


def test_no_image_is_in_two_folders(folders: DigitFolders) -> None:
    assert contents(folders.handwritten).isdisjoint(contents(folders.new))
    assert len(contents(folders.new)) == 20


def test_the_same_images_each_time(folders: DigitFolders, tmp_path: Path) -> None:
    again = write_digit_folders(tmp_path / "again", printed=2, handwritten=3, new=2)
    for one, other in zip(folders, again, strict=True):
        assert contents(one) == contents(other)


def test_names_of_new_images_tell_nothing(folders: DigitFolders) -> None:
    assert {file.name for file in folders.new.iterdir()} == {f"{number:03}.png" for number in range(20)}


def test_folders_with_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ValueError, match="must be new or empty"):
        write_digit_folders(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("numbers", [{"handwritten": 0}, {"new": -1}, {"handwritten": 170, "new": 5}, {"printed": 0}])
def test_numbers_out_of_range(tmp_path: Path, numbers: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must"):
        write_digit_folders(tmp_path / "digits", **numbers)
    assert not (tmp_path / "digits").exists()
