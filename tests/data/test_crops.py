"""Crops: where they lie, that to_tensor makes the usual pixels of them, and that products of matrices do, too."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from sohot.data import InputSpec, to_tensor
from sohot.data.crops import AREA, RATIO, Crop, draw_crops, random_crop, resample

NUMBER = st.floats(0, 1, exclude_max=True)
CPU = torch.device("cpu")


def spec(size: int = 24, resize: int = 28, channels: int = 3, interpolation: str = "bicubic") -> InputSpec:
    return InputSpec(size, (0.4, 0.5, 0.6)[:channels], (0.2, 0.3, 0.4)[:channels], resize, interpolation)


def noise(width: int, height: int, channels: int = 3) -> Image.Image:
    pixels = np.random.default_rng(width).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels if channels == 3 else pixels[..., 0])


@given(st.tuples(*[NUMBER] * 5), st.integers(1, 300), st.integers(1, 300))
def test_random_crops_lie_inside_and_keep_enough(numbers: tuple[float, ...], width: int, height: int) -> None:
    crop = random_crop(width, height, numbers)
    assert 0 <= crop.left < crop.right <= width
    assert 0 <= crop.top < crop.bottom <= height
    across, down = crop.right - crop.left, crop.bottom - crop.top
    if across < width and down < height:  # not narrowed
        assert AREA[0] - 1e-9 <= across * down / (width * height) <= AREA[1] + 1e-9
        assert RATIO[0] - 1e-9 <= across / down <= RATIO[1] + 1e-9


def test_draws_are_spread_evenly_over_all_that_may_be_drawn() -> None:
    assert (AREA, RATIO) == ((0.6, 1.0), (3 / 4, 4 / 3))
    torch.manual_seed(0)
    crops = [random_crop(1000, 1000, numbers) for numbers in draw_crops(4000).tolist()]
    across = torch.tensor([crop.right - crop.left for crop in crops])
    down = torch.tensor([crop.bottom - crop.top for crop in crops])
    whole = (across < 1000) & (down < 1000)
    small = whole & (across * down < 0.75e6)  # none of these is narrowed, so the ratio is as it was drawn
    ratios = (across / down)[small].log() / math.log(4 / 3)
    mirrored = torch.tensor([crop.mirrored for crop in crops]).float()
    free = torch.tensor([crop.left for crop in crops])[whole] / (1000 - across[whole])
    for values, low, high in ((ratios, -1, 1), (free, 0, 1)):
        ordered = ((values - low) / (high - low)).sort().values
        even = torch.linspace(0, 1, len(ordered))
        assert (ordered - even).abs().max() < 1.95 / math.sqrt(len(ordered))  # Kolmogorov-Smirnov, one in a thousand
    areas = (across * down)[(across / down).log().abs() < 0.01] / 1e6
    assert 0.6 <= areas.min() < 0.65 < 0.93 < areas.max() <= 1
    assert 0.47 < mirrored.mean() < 0.53


def resize_then_crop(image: Image.Image, wanted: InputSpec, filter: Image.Resampling) -> np.ndarray:
    """The usual two steps, written out."""
    short = min(image.size)
    sides = [int(wanted.resize * side / short) for side in image.size]
    left, top = (round((side - wanted.size) / 2) for side in sides)
    box = (left, top, left + wanted.size, top + wanted.size)
    return np.asarray(image.resize(tuple(sides), filter).crop(box), dtype=float) / 255


@given(st.integers(8, 90), st.integers(8, 90), st.sampled_from([(24, 24), (24, 28), (16, 33)]))
def test_one_step_gives_the_pixels_of_resizing_and_then_cropping(
    width: int, height: int, sides: tuple[int, int]
) -> None:
    image = noise(width, height)
    for name, filter in {"bicubic": Image.Resampling.BICUBIC, "bilinear": Image.Resampling.BILINEAR}.items():
        wanted = spec(*sides, interpolation=name)
        tensor = to_tensor(image, wanted)
        pixels = tensor.permute(1, 2, 0).numpy() * np.array(wanted.std) + np.array(wanted.mean)
        assert np.abs(pixels - resize_then_crop(image, wanted, filter)).max() < 2.5 / 255  # Pillow rounds twice


def test_shape_type_and_normalisation() -> None:
    tensor = to_tensor(Image.new("RGB", (50, 40), (0, 255, 51)), spec())
    assert (tensor.shape, tensor.dtype, tensor.is_contiguous()) == ((3, 24, 24), torch.float32, True)
    expected = [(0 - 0.4) / 0.2, (1 - 0.5) / 0.3, (0.2 - 0.6) / 0.4]
    torch.testing.assert_close(tensor.mean((1, 2)), torch.tensor(expected))


def test_any_mode_fits_any_number_of_channels() -> None:
    for mode in ("L", "RGB", "RGBA", "CMYK", "I;16"):
        for channels in (1, 3):
            assert to_tensor(Image.new(mode, (9, 9)), spec(8, 8, channels)).shape == (channels, 8, 8)


@pytest.mark.parametrize("size", [(1, 1), (1, 60000), (60000, 2)])
def test_extreme_shapes(size: tuple[int, int]) -> None:
    for crop in (None, Crop(0, 0, *size), Crop(0.2, 0.3, 0.8, 0.9, mirrored=True)):
        tensor = to_tensor(Image.new("RGB", size, "white"), spec(), crop)
        torch.testing.assert_close(tensor[0], torch.full((24, 24), 0.6 / 0.2))
    white = torch.full((3, *size[::-1]), 255, dtype=torch.uint8)
    found = resample([white], [random_crop(*size, [0.5] * 5)], spec(), CPU)
    torch.testing.assert_close(found[0, 0], torch.full((24, 24), 0.6 / 0.2))


def test_a_crop_takes_the_place_of_the_centre() -> None:
    image, box = noise(60, 40), (10, 5, 34, 29)
    cut = to_tensor(image.crop(box), spec(24, 24))
    assert torch.equal(to_tensor(image, spec(), Crop(*box)), cut)
    assert torch.equal(to_tensor(image, spec(), Crop(*box, mirrored=True)), cut.flip(2))


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
    wanted = spec(16, 16, channels, interpolation)
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
    wanted, image = spec(24, 24), noise(400, 300)
    crop = Crop(10.25, 20.5, 380.75, 290.125, mirrored=True)
    apart = levels(resample([planes(image, 3)], [crop], wanted, CPU)[0], to_tensor(image, wanted, crop), wanted)
    assert apart.mean() < 0.01
    assert apart.max() < 1.5
