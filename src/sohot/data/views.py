"""Several views of an image: its centre, its corners, and their mirror images, for features averaged over them."""

import torch
from PIL import Image
from torch import Tensor

from .crops import Crop, crop_at, to_tensor
from .decode import convert
from .input_spec import InputSpec

MOST_VIEWS = 10

_PLACES = ((0.5, 0.5), (0.0, 0.0), (1.0, 1.0), (1.0, 0.0), (0.0, 1.0))
"""Across and down: the centre, then the corners, opposite ones together."""


def view_crops(width: int, height: int, spec: InputSpec, views: int) -> list[Crop]:
    """List the first views of an image: centre, its mirror image, then each corner of the resized image and its mirror.

    One view is the usual centre; two add its mirror image; ten are the classic ten crops.

    Args:
        width: Width of the image.
        height: Its height.
        spec: Input format of the network.
        views: How many, 1 to 10.

    Example:
        >>> spec = InputSpec(size=2, mean=(0.5,), std=(0.5,), resize=4)
        >>> [tuple(crop) for crop in view_crops(4, 4, spec, 3)]
        [(1.0, 1.0, 3.0, 3.0, False), (1.0, 1.0, 3.0, 3.0, True), (0.0, 0.0, 2.0, 2.0, False)]
    """
    check_views(views)
    plain = [crop_at(width, height, spec, across, down) for across, down in _PLACES]
    return [crop for one in plain for crop in (one, one._replace(mirrored=True))][:views]


def check_views(views: int, name: str = "views") -> int:
    """Require a number of views that there are."""
    if isinstance(views, bool) or not isinstance(views, int) or not 1 <= views <= MOST_VIEWS:
        raise ValueError(f"{name} must be an integer in 1 … {MOST_VIEWS}, got {views!r}")
    return views


def to_views(image: Image.Image, spec: InputSpec, views: int, out: Tensor | None = None) -> Tensor:
    """Turn an image into a network's input, once for each view; see `view_crops`.

    Args:
        image: An image of any mode.
        spec: Input format of the network.
        views: How many, 1 to 10.
        out: If given, write the tensors here.

    Returns:
        float32 tensor of shape (views, channels, size, size); without the first dimension for one view.

    Example:
        >>> spec = InputSpec(size=2, mean=(0.5,), std=(0.5,), resize=4)
        >>> to_views(Image.new("L", (4, 4)), spec, 2).shape, to_views(Image.new("L", (4, 4)), spec, 1).shape
        (torch.Size([2, 1, 2, 2]), torch.Size([1, 2, 2]))
    """
    if views == 1:
        return to_tensor(image, spec, out=out)
    image = convert(image, spec.channels)
    rows = torch.empty(views, spec.channels, spec.size, spec.size) if out is None else out
    for row, crop in zip(rows, view_crops(*image.size, spec, views), strict=True):
        to_tensor(image, spec, crop, row)
    return rows
