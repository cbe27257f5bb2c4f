"""Images in memory as the bytes of files."""

import io
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from sohot.api.pictures import file_content, is_one_picture

COLOUR = np.random.default_rng(0).integers(0, 256, (5, 7, 3), np.uint8)
GREY = COLOUR[:, :, 0]


def pixels(picture: Any) -> "np.ndarray":
    return np.asarray(Image.open(io.BytesIO(file_content(picture)[1])))


@pytest.mark.parametrize(
    ("picture", "expected"),
    [
        (COLOUR, COLOUR),
        (COLOUR.astype(np.int64), COLOUR),
        (COLOUR.transpose(2, 0, 1), COLOUR),
        (COLOUR / 255, COLOUR),
        (torch.tensor(COLOUR).permute(2, 0, 1), COLOUR),
        (torch.tensor(COLOUR).permute(2, 0, 1).float() / 255, COLOUR),
        (GREY, GREY),
        (GREY[:, :, None], GREY),
        (GREY > 100, np.where(GREY > 100, 255, 0)),
        (Image.fromarray(COLOUR), COLOUR),
        (Image.fromarray(GREY), GREY),
        (Image.fromarray(np.dstack([COLOUR, 0 * GREY])), 0 * COLOUR + 255),  # transparent: white
        (Image.fromarray(COLOUR).convert("CMYK"), COLOUR),
    ],
)
def test_pixels_stay_what_they_are(picture: Any, expected: "np.ndarray") -> None:
    assert np.array_equal(pixels(picture), expected)


def test_one_image_is_told_from_several() -> None:
    tensor = torch.tensor(COLOUR).permute(2, 0, 1)
    assert all(map(is_one_picture, (COLOUR, GREY, GREY[:, :, None], tensor, Image.fromarray(GREY), b"encoded")))
    assert not any(map(is_one_picture, (np.stack([GREY, GREY]), COLOUR[None], tensor[None], [COLOUR], "a.png")))


def test_a_camera_s_rotation_is_applied() -> None:
    turned = Image.fromarray(COLOUR)
    turned.getexif()[0x0112] = 6
    assert pixels(turned).shape == (7, 5, 3)


def test_encoded_bytes_stay() -> None:
    content = file_content(COLOUR)[1]
    assert file_content(content) == file_content({"bytes": content, "path": None}) == (".image", content)


@pytest.mark.parametrize(
    ("picture", "sentence"),
    [
        (np.zeros((2, 3, 4, 5)), r"an array of shape \(2, 3, 4, 5\) is not an image: give H × W, or H × W × C"),
        (np.zeros((0, 3, 3)), r"shape \(0, 3, 3\) holds no pixels"),
        (np.full((2, 2), -0.5), "with values from -0.5 to -0.5 is not an image: .* before any normalisation"),
        (np.full((2, 2), np.nan), "with values from nan to nan is not an image"),
        (np.full((2, 2), 300), "an array of int64 with values from 300 to 300 is not an image"),
        (np.full((2, 2), "a"), "is not an image: give numbers"),
    ],
)
def test_arrays_that_show_no_image_are_refused(picture: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        file_content(picture)
