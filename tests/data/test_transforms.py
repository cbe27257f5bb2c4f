import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from sohot.data import InputSpec, to_tensor
from sohot.data.crops import Crop


def spec(size: int = 24, resize: int = 28, channels: int = 3, **options: str) -> InputSpec:
    return InputSpec(
        size=size, mean=(0.4, 0.5, 0.6)[:channels], std=(0.2, 0.3, 0.4)[:channels], resize=resize, **options
    )


def noise(width: int, height: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 255, (height, width, 3), dtype=np.uint8))


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


def test_a_crop_takes_the_place_of_the_centre() -> None:
    image, box = noise(60, 40), (10, 5, 34, 29)
    cut = to_tensor(image.crop(box), spec(24, 24))
    assert torch.equal(to_tensor(image, spec(), Crop(*box)), cut)
    assert torch.equal(to_tensor(image, spec(), Crop(*box, mirrored=True)), cut.flip(2))
