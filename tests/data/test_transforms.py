import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from sohot.data.input_spec import InputSpec
from sohot.data.transforms import AREA, RATIO, _random, to_tensor


def spec(size: int = 24, resize: int = 28, channels: int = 3, **options: str) -> InputSpec:
    return InputSpec(
        size=size, mean=(0.4, 0.5, 0.6)[:channels], std=(0.2, 0.3, 0.4)[:channels], resize=resize, **options
    )


def noise(width: int, height: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 255, (height, width, 3), dtype=np.uint8))


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


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
    for augment in (None, generator(0)):
        tensor = to_tensor(Image.new("RGB", size, "white"), spec(), augment)
        torch.testing.assert_close(tensor[0], torch.full((24, 24), 0.6 / 0.2))


@given(st.integers(0, 2**40), st.integers(1, 300), st.integers(1, 300))
def test_random_crops_lie_inside_and_keep_enough(seed: int, width: int, height: int) -> None:
    crop = _random(width, height, generator(seed))
    assert 0 <= crop.left < crop.right <= width
    assert 0 <= crop.top < crop.bottom <= height
    across, down = crop.right - crop.left, crop.bottom - crop.top
    if across < width and down < height:  # not narrowed
        assert AREA[0] - 1e-9 <= across * down / (width * height) <= AREA[1] + 1e-9
        assert RATIO[0] - 1e-9 <= across / down <= RATIO[1] + 1e-9


def test_augmentation_repeats_with_its_seed_and_varies_without() -> None:
    image = noise(60, 40)
    first, again, other = (to_tensor(image, spec(), generator(seed)) for seed in (1, 1, 2))
    torch.testing.assert_close(first, again, rtol=0, atol=0)
    assert not torch.equal(first, other)
    assert not torch.equal(first, to_tensor(image, spec()))


def test_half_of_the_augmented_images_are_mirrored() -> None:
    dark_left = Image.new("L", (40, 40), 255)
    dark_left.paste(0, (0, 0, 20, 40))
    drawn = generator(0)
    images = [to_tensor(dark_left, spec(channels=1), drawn)[0] for _ in range(400)]
    mirrored = sum(bool(image[:, :4].mean() > image[:, -4:].mean()) for image in images)
    assert 150 < mirrored < 250


def test_augmentation_costs_the_same_draws_for_every_image() -> None:
    states = []
    for size in ((60, 40), (1, 500)):
        drawn = generator(3)
        to_tensor(Image.new("L", size), spec(), drawn)
        states.append(drawn.get_state())
    assert torch.equal(*states)
