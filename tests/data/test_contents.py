from pathlib import Path

import numpy as np
import pytest
from official_sets import write_idx

from sohot.data.contents import content_keys
from sohot.data.decode import UnreadableImage
from sohot.data.labelled import LabelledImages


def write(folder: Path, contents: dict[str, bytes]) -> LabelledImages:
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return LabelledImages([folder / name for name in contents], [0] * len(contents), ["a"], folder)


def test_equal_exactly_where_the_bytes_are(tmp_path: Path) -> None:
    contents = {"1": b"aa", "2": b"ab", "3": b"aa", "4": b"aaa", "5": b"", "6": b""}
    keys = content_keys([write(tmp_path, contents)])[0]
    names = list(contents)
    for one in range(6):
        for two in range(6):
            assert (keys[one] == keys[two]) == (contents[names[one]] == contents[names[two]])


def test_lists_are_compared_with_one_another(tmp_path: Path) -> None:
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
    one, two = write(tmp_path / "x", {"1": b"aa", "2": b"b"}), write(tmp_path / "y", {"1": b"aa", "2": b"bb"})
    keys = content_keys([one, two])
    assert keys[0][0] == keys[1][0]
    assert len({*keys[0], *keys[1]}) == 3


def test_boxes_in_one_file_are_different_images(tmp_path: Path) -> None:
    files = write(tmp_path, {"1": b"aa", "2": b"aa"}).files
    images = LabelledImages([files[0], files[0], files[1]], [0] * 3, ["a"], parts=["0,0,1,1", "0,0,2,2", "0,0,1,1"])
    keys = content_keys([images])[0]
    assert keys[0] == keys[2] != keys[1]


def test_images_in_one_file_are_compared_by_their_own_bytes(tmp_path: Path) -> None:
    file = write_idx(tmp_path / "images", np.stack([np.zeros((2, 2)), np.ones((2, 2)), np.zeros((2, 2))]))
    images = LabelledImages([file] * 3, [0] * 3, ["a"], parts=["0", "1", "2"], reader="idx")
    keys = content_keys([images])[0]
    assert keys[0] == keys[2] != keys[1]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnreadableImage, match="missing cannot be read: there is no such file"):
        content_keys([LabelledImages([tmp_path / "missing"], [0], ["a"])])
