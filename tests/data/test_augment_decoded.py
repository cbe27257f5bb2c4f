from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sohot.data import InputSpec, LabelledImages, UnreadableImage, read_image, scan_folder
from sohot.data import augment as module
from sohot.data.augment import DecodedImages

SPEC = InputSpec(size=4, mean=(0.5,) * 3, std=(0.5,) * 3, resize=5)
PICTURE = 12 * 16 * 4


@pytest.fixture
def images(make_folder: Callable[..., Path]) -> LabelledImages:
    return scan_folder(make_folder({"mug": [f"{n}.png" for n in range(5)]}), check=False).images


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    rows, real = [], module.read_item
    monkeypatch.setattr(
        module, "read_item", lambda images, row, *a, **b: rows.append(row) or real(images, row, *a, **b)
    )
    return rows


def test_pictures_are_decoded_once(images: LabelledImages, read: list[int]) -> None:
    pictures = DecodedImages(images, SPEC, lambda: 5 * PICTURE)
    for _ in range(3):
        for row in range(5):
            assert np.array_equal(pictures[row], read_image(images.files[row]))
    assert read == list(range(5))


def test_pictures_beyond_the_room_are_decoded_each_time(images: LabelledImages, read: list[int]) -> None:
    pictures = DecodedImages(images, SPEC, lambda: 2 * PICTURE)
    for _ in range(2):
        for row in range(5):
            assert np.array_equal(pictures[row], read_image(images.files[row]))
    assert read == [0, 1, 2, 3, 4, 2, 3, 4]


def test_the_room_is_asked_anew(images: LabelledImages, read: list[int]) -> None:
    room = [0]
    pictures = DecodedImages(images, SPEC, lambda: room[0])
    assert pictures[0] is not pictures[0]
    room[0] = PICTURE
    assert pictures[0] is pictures[0]
    assert len(read) == 3


def test_grey_pictures_take_a_quarter_of_the_room(images: LabelledImages) -> None:
    grey = InputSpec(size=4, mean=(0.5,), std=(0.5,), resize=4)
    pictures = DecodedImages(images, grey, lambda: PICTURE)
    assert [pictures[row].mode for row in range(5)] == ["L"] * 5
    assert [pictures[row] is pictures[row] for row in range(5)] == [True] * 4 + [False]


@pytest.mark.parametrize(
    ("file", "whole", "size"),
    [
        ("large.png", (120, 56), (24, 12)),
        ("large.jpg", (100, 48), (25, 12)),
        ("middle.png", (99, 19), (99, 19)),
        ("small.png", (8, 6), (8, 6)),
    ],
)
def test_large_pictures_are_made_smaller(
    tmp_path: Path, file: str, whole: tuple[int, int], size: tuple[int, int]
) -> None:
    Image.new("RGB", whole, "red").save(tmp_path / file)
    pictures = DecodedImages(LabelledImages([tmp_path / file], [0], ["a"]), SPEC, lambda: 0)
    assert pictures[0].size == size


def test_an_image_that_cannot_be_read_is_named(images: LabelledImages) -> None:
    images.files[3].write_bytes(b"")
    with pytest.raises(UnreadableImage, match=r"mug/3\.png cannot be read: the file is empty"):
        DecodedImages(images, SPEC, lambda: 1e9)[3]
