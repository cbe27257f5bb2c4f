"""Views of an image: the centre first, then mirrored and shifted, as pixels and as batches."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from sohot.data import InputSpec, iter_batches, load_batch, scan_folder, to_tensor
from sohot.data.views import MOST_VIEWS, to_views, view_crops

SPEC = InputSpec(size=4, mean=(0.5, 0.4, 0.3), std=(0.5, 0.4, 0.3), resize=8)
PIXELS = np.random.default_rng(0).integers(0, 256, (8, 12, 3), dtype=np.uint8)  # already of the size of `resize`
PICTURE = Image.fromarray(PIXELS)


def pixels(rows: torch.Tensor) -> np.ndarray:
    """Undo the normalisation."""
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in (SPEC.mean, SPEC.std))
    return ((rows * std + mean) * 255).round().to(torch.uint8).movedim(-3, -1).numpy()


def test_one_view_is_the_centre() -> None:
    torch.testing.assert_close(to_views(PICTURE, SPEC, 1), to_tensor(PICTURE, SPEC), atol=0, rtol=0)
    torch.testing.assert_close(to_views(PICTURE, SPEC, 2)[0], to_tensor(PICTURE, SPEC), atol=0, rtol=0)


def test_ten_views_are_the_centre_and_the_corners_each_mirrored() -> None:
    centre, corners = PIXELS[2:6, 4:8], (PIXELS[:4, :4], PIXELS[4:, 8:], PIXELS[:4, 8:], PIXELS[4:, :4])
    expected = [view for one in (centre, *corners) for view in (one, one[:, ::-1])]
    np.testing.assert_array_equal(pixels(to_views(PICTURE, SPEC, MOST_VIEWS)), np.stack(expected))


@pytest.mark.parametrize("size", [(30, 20), (17, 40), (9, 9)])
def test_fewer_views_are_the_first_ones(size: tuple[int, int]) -> None:
    image = PICTURE.resize(size)
    ten = to_views(image, SPEC, MOST_VIEWS)
    for views in range(2, MOST_VIEWS):
        torch.testing.assert_close(to_views(image, SPEC, views), ten[:views], atol=0, rtol=0)
    for crop in view_crops(*size, SPEC, MOST_VIEWS):
        assert 0 <= crop.left < crop.right <= size[0]
        assert 0 <= crop.top < crop.bottom <= size[1]


def test_batches_hold_the_views_of_each_image(tmp_path: Path) -> None:
    for name in ("mug", "pen"):
        (tmp_path / name).mkdir()
        PICTURE.save(tmp_path / name / "1.png")
    images = scan_folder(tmp_path).images
    expected = torch.stack([to_views(PICTURE, SPEC, 3)] * 2)
    for workers in (0, 2):
        (batch,) = iter_batches(images, SPEC, workers=workers, views=3)
        torch.testing.assert_close(batch, expected, atol=0, rtol=0)
    torch.testing.assert_close(load_batch(images, [1], SPEC, views=3), expected[:1], atol=0, rtol=0)


@pytest.mark.parametrize("views", [0, 11, 2.0, True])
def test_other_numbers_are_refused(views: int) -> None:
    with pytest.raises(ValueError, match="views must be an integer in 1 … 10"):
        view_crops(8, 8, SPEC, views)
