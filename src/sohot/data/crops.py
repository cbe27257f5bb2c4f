"""Random crops: the part of an image that a step of training sees."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

AREA = (0.6, 1.0)
"""Smallest and largest share of the image that a random crop keeps."""
RATIO = (3 / 4, 4 / 3)
"""Narrowest and widest random crop, width : height."""
NUMBERS = 5
"""Random numbers that a crop costs, whatever the image."""


class Crop(NamedTuple):
    """The part of an image that is seen, in its pixels (fractions allowed), and whether it is mirrored."""

    left: float
    top: float
    right: float
    bottom: float
    mirrored: bool = False


def draw_crops(rows: int, generator: torch.Generator | None = None) -> Tensor:
    """Draw the numbers of some crops: float64 of shape (rows, 5), from torch's own generator unless another is given.

    >>> draw_crops(2).shape
    torch.Size([2, 5])
    """
    return torch.rand(rows, NUMBERS, generator=generator, dtype=torch.float64)


def random_crop(width: int, height: int, numbers: Sequence[float]) -> Crop:
    """Make a crop of numbers between 0 and 1: area, ratio, place across and down, mirrored below a half.

    One that would not fit is narrowed to the image.

    >>> random_crop(400, 300, [1.0, 0.5, 0.0, 0.0, 0.9])
    Crop(left=0.0, top=0.0, right=346.41..., bottom=300.0, mirrored=False)
    """
    area, ratio, across, down, mirror = numbers
    kept = width * height * (AREA[0] + area * (AREA[1] - AREA[0]))
    aspect = math.exp(math.log(RATIO[0]) + ratio * (math.log(RATIO[1]) - math.log(RATIO[0])))
    crop_width, crop_height = min(math.sqrt(kept * aspect), width), min(math.sqrt(kept / aspect), height)
    left, top = across * (width - crop_width), down * (height - crop_height)
    return Crop(left, top, min(left + crop_width, width), min(top + crop_height, height), mirror < 0.5)
