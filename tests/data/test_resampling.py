"""Crops by products of matrices are Pillow's crops."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from sohot.data import InputSpec, to_tensor
from sohot.data.crops import Crop, draw_crops, random_crop, resample

CPU = torch.device("cpu")


def spec(size: int, channels: int, interpolation: str) -> InputSpec:
    return InputSpec(size, (0.4, 0.5, 0.6)[:channels], (0.2, 0.3, 0.4)[:channels], size, interpolation)


def noise(width: int, height: int, channels: int) -> Image.Image:
    pixels = np.random.default_rng(width).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels if channels == 3 else pixels[..., 0])


def planes(image: Image.Image, channels: int) -> torch.Tensor:
    return torch.from_numpy(np.array(image).reshape(image.height, image.width, channels)).permute(2, 0, 1)


def levels(one: torch.Tensor, other: torch.Tensor, wanted: InputSpec) -> torch.Tensor:
    """How far two batches are apart, on the scale 0 … 255."""
    return (one - other).abs() * torch.tensor(wanted.std).view(-1, 1, 1) * 255


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.integers(1, 90), st.integers(1, 90)), min_size=1, max_size=5),
    st.sampled_from([1, 3]),
    st.sampled_from(["bicubic", "bilinear"]),
    st.integers(0, 2**32),
)
def test_pixels_are_those_of_pillow(sizes: list, channels: int, interpolation: str, seed: int) -> None:
    wanted = spec(16, channels, interpolation)
    images = [noise(*size, channels) for size in sizes]
    numbers = draw_crops(len(sizes), torch.Generator().manual_seed(seed)).tolist()
    crops = [random_crop(*size, own) for size, own in zip(sizes, numbers, strict=True)]
    expected = torch.stack([to_tensor(image, wanted, crop) for image, crop in zip(images, crops, strict=True)])
    found = resample([planes(image, channels) for image in images], crops, wanted, CPU)
    assert (found.shape, found.dtype) == (expected.shape, torch.float32)
    apart = levels(found, expected, wanted)
    assert apart.max() < 2.5  # a level for each rounding on the other side of a half
    assert apart.mean() < 0.1


def test_strong_shrinking_loses_no_pixel() -> None:
    wanted, image = spec(24, 3, "bicubic"), noise(400, 300, 3)
    crop = Crop(10.25, 20.5, 380.75, 290.125, mirrored=True)
    apart = levels(resample([planes(image, 3)], [crop], wanted, CPU)[0], to_tensor(image, wanted, crop), wanted)
    assert apart.mean() < 0.01
    assert apart.max() < 1.5


@pytest.mark.parametrize("size", [(1, 1), (1, 60000), (60000, 2)])
def test_extreme_shapes(size: tuple[int, int]) -> None:
    white, wanted = torch.full((3, *size[::-1]), 255, dtype=torch.uint8), spec(8, 3, "bicubic")
    found = resample([white], [random_crop(*size, [0.5] * 5)], wanted, CPU)
    torch.testing.assert_close(found[0, 0], torch.full((8, 8), 0.6 / 0.2))
