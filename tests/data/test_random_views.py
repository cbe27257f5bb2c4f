"""Weak and strong views: strong ones without strength are weak ones, and a GPU's are Pillow's."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageEnhance

from sohot.data import InputSpec
from sohot.data.random_views import (
    STRONG,
    STRONG_NUMBERS,
    Strength,
    change_of,
    draw_views,
    to_view,
    to_view_batch,
)

CPU = torch.device("cpu")
NOTHING = Strength(0, 0, 0, 0, 0, 0)
LUMA = torch.tensor([0.299, 0.587, 0.114]).view(3, 1, 1)
MIDDLE = [0.5] * STRONG_NUMBERS
NAMES = ("brightness", "contrast", "saturation", "hue", "grey")


def spec(channels: int = 3, size: int = 16) -> InputSpec:
    """The format in which a level of 0 … 255 is 0 … 1, and the mean colour is black."""
    return InputSpec(size, (0.0,) * channels, (1.0,) * channels, size)


def noise(width: int, height: int, channels: int = 3) -> Image.Image:
    pixels = np.random.default_rng(width).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels if channels == 3 else pixels[..., 0])


def planes(image: Image.Image) -> torch.Tensor:
    return torch.from_numpy(np.array(image).reshape(image.height, image.width, -1)).permute(2, 0, 1)


def view(strength: Strength, image: Image.Image, **numbers: float) -> torch.Tensor:
    """A view of the whole picture, with all other numbers in the middle but some."""
    drawn = [1.0, 0.5, 0.0, 0.0, 0.9, *(numbers.get(name, 0.5) for name in NAMES), *MIDDLE[10:]]
    return to_view(image, spec(), drawn, strength)


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=1, max_size=4),
    st.sampled_from([1, 3]),
    st.sampled_from([None, STRONG, NOTHING, Strength(1, 1, 1, 1, 0, 1)]),
    st.integers(0, 2**32),
)
def test_views_of_a_gpu_are_those_of_pillow(sizes: list, channels: int, strength: Strength | None, seed: int) -> None:
    torch.manual_seed(seed)
    numbers = draw_views(len(sizes), strength).tolist()
    images, wanted = [noise(*size, channels) for size in sizes], spec(channels)
    pairs = zip(images, numbers, strict=True)
    expected = torch.stack([to_view(image, wanted, own, strength) for image, own in pairs])
    found = to_view_batch([planes(image) for image in images], wanted, numbers, CPU, strength)
    assert (found.shape, found.dtype) == (expected.shape, torch.float32)
    apart = 255 * (found - expected).abs()
    assert apart.mean() < 0.2
    # A level for each rounding of the crop, by as much as colours may grow, and one for that of the colours.
    assert apart.max() < 2.5 if strength in (None, NOTHING) else apart.max() < 16


def test_each_strength_changes_what_it_says() -> None:
    image = noise(16, 16).point(lambda level: 90 + level // 4)  # far from black and white: nothing is cut off
    plain = view(NOTHING, image)
    brighter = view(Strength(0.4, 0, 0, 0, 0, 0), image, brightness=1.0)
    torch.testing.assert_close(brighter, 1.4 * plain, rtol=0, atol=0.51 / 255)
    flatter = view(Strength(0, 0.4, 0, 0, 0, 0), image, contrast=0.0)
    mean = (LUMA * plain).sum(0).mean()
    torch.testing.assert_close(flatter, 0.6 * plain + 0.4 * mean, rtol=0, atol=0.51 / 255)
    grey = view(Strength(0, 0, 0, 0, 1, 0), image)
    torch.testing.assert_close(grey, (LUMA * plain).sum(0).expand(3, -1, -1), rtol=0, atol=0.51 / 255)
    turned = view(Strength(0, 0, 0, 0.1, 0, 0), image, hue=1.0)
    torch.testing.assert_close((LUMA * turned).sum(0), (LUMA * plain).sum(0), rtol=0, atol=0.51 / 255)
    assert (turned - plain).abs().mean() > 3 / 255
    torch.testing.assert_close(view(Strength(0, 0, 0, 1, 0, 0), image, hue=1.0), plain)  # a full circle


def test_brightness_and_saturation_are_those_of_pillow() -> None:
    image = noise(16, 16)
    for enhance, name in ((ImageEnhance.Brightness, "brightness"), (ImageEnhance.Color, "saturation")):
        strength = Strength(**{one: 0.4 * (one == name) for one in Strength.__dataclass_fields__})
        expected = planes(enhance(image).enhance(0.6)) / 255
        torch.testing.assert_close(view(strength, image, **{name: 0.0}), expected, rtol=0, atol=1.01 / 255)


def test_hue_and_saturation_leave_grey_pictures_alone() -> None:
    grey = noise(16, 16, 1).convert("RGB")
    colours = Strength(0, 0, 1, 1, 0.5, 0)
    torch.testing.assert_close(view(colours, grey, hue=0.7, saturation=1.0), view(NOTHING, grey))


@given(st.tuples(*[st.floats(0, 1, exclude_max=True)] * 8), st.integers(1, 40))
def test_the_blanked_square_lies_inside_and_is_at_most_as_large_as_said(numbers: tuple, size: int) -> None:
    left, top, right, bottom = change_of(numbers, STRONG, spec(size=size)).box
    assert 0 <= left <= size
    assert 0 <= top <= size
    assert right <= size
    assert bottom <= size
    assert max(right - left, bottom - top) <= size / 2 + 0.5


def test_the_blanked_square_has_the_mean_colour() -> None:
    wanted = InputSpec(16, (0.4, 0.5, 0.6), (0.2, 0.3, 0.4), 16)
    drawn = [*MIDDLE[:5], 0.5, 0.5, 0.5, 0.5, 0.5, 1.0, 0.5, 0.25]
    blank = to_view(Image.new("RGB", (16, 16), "white"), wanted, drawn, Strength(0, 0, 0, 0, 0, 0.5)) == 0
    expected = torch.zeros(16, 16, dtype=torch.bool)
    expected[0:8, 4:12] = True
    assert torch.equal(blank, expected.expand(3, -1, -1))


def test_numbers_of_a_strong_view_follow_torchs_own_generator() -> None:
    torch.manual_seed(1)
    first = draw_views(3, STRONG)
    torch.manual_seed(1)
    assert torch.equal(draw_views(3, STRONG), first)
    assert first.shape == (3, STRONG_NUMBERS)
    assert draw_views(3).shape == (3, 5)


@pytest.mark.parametrize("wrong", [-0.1, 1.5, float("nan")])
def test_a_strength_out_of_range_is_named(wrong: float) -> None:
    with pytest.raises(ValueError, match=r"hue must be between 0 and 1, got"):
        Strength(hue=wrong)
