"""Turn an image into a network's input: crop, resize, mirror and normalise it, with Pillow or on a GPU."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from .decode import convert
from .input_spec import InputSpec

_RESAMPLING = {"bicubic": Image.Resampling.BICUBIC, "bilinear": Image.Resampling.BILINEAR}


AREA = (0.6, 1.0)
"""Smallest and largest share of the image that a random crop keeps."""
RATIO = (3 / 4, 4 / 3)
"""Narrowest and widest random crop, width : height."""
NUMBERS = 5
"""Random numbers that a crop uses, whatever the image."""


class Crop(NamedTuple):
    """The visible part of an image, in pixels (fractions allowed), and whether it is mirrored."""

    left: float
    top: float
    right: float
    bottom: float
    mirrored: bool = False


def draw_crops(rows: int, generator: torch.Generator | None = None) -> Tensor:
    """Draw the numbers for some crops: float64 of shape (rows, 5), from torch's global generator unless one is given.

    >>> draw_crops(2).shape
    torch.Size([2, 5])
    """
    return torch.rand(rows, NUMBERS, generator=generator, dtype=torch.float64)


def random_crop(width: int, height: int, numbers: Sequence[float]) -> Crop:
    """Make a crop from numbers between 0 and 1: area, ratio, position across and down, mirrored below 0.5.

    A crop that would not fit is narrowed to the image.

    >>> random_crop(400, 300, [1.0, 0.5, 0.0, 0.0, 0.9])
    Crop(left=0.0, top=0.0, right=346.41..., bottom=300.0, mirrored=False)
    """
    area, ratio, across, down, mirror = numbers
    kept = width * height * (AREA[0] + area * (AREA[1] - AREA[0]))
    aspect = math.exp(math.log(RATIO[0]) + ratio * (math.log(RATIO[1]) - math.log(RATIO[0])))
    crop_width, crop_height = min(math.sqrt(kept * aspect), width), min(math.sqrt(kept / aspect), height)
    left, top = across * (width - crop_width), down * (height - crop_height)
    return Crop(left, top, min(left + crop_width, width), min(top + crop_height, height), mirror < 0.5)


def to_tensor(image: Image.Image, spec: InputSpec, crop: Crop | None = None, out: Tensor | None = None) -> Tensor:
    """Resize the shorter side, cut out the centre and normalise.

    Args:
        image: An image of any mode.
        spec: Input format of the network.
        crop: If given, use this part, mirrored if it says so, instead of the centre; `crops.random_crop` draws one.
        out: If given, write the tensor here, for example into a row of a batch.

    Returns:
        float32 tensor of shape (channels, size, size).

    Example:
        >>> spec = InputSpec(size=2, mean=(0.5,), std=(0.5,), resize=2)
        >>> to_tensor(Image.new("L", (4, 3), 255), spec)
        tensor([[[1., 1.], [1., 1.]]])
    """
    return normalise_image(fit_image(image, spec, crop), spec, out)


def normalise_image(image: Image.Image, spec: InputSpec, out: Tensor | None = None) -> Tensor:
    """Turn an image of a network's size and channels into its input, in `out` if given: (channels, size, size)."""
    pixels = np.asarray(image).reshape(spec.size, spec.size, spec.channels)
    tensor = torch.empty(spec.channels, spec.size, spec.size) if out is None else out
    # With numpy, which computes in the calling thread: torch would start its own threads in each reading thread.
    # Channel by channel and in place: several times as fast as arithmetic along a last dimension of three.
    values = tensor.numpy()
    values[...] = pixels.transpose(2, 0, 1)
    values /= np.float32(255)
    for channel, mean, std in zip(values, spec.mean, spec.std, strict=True):
        channel -= np.float32(mean)
        channel /= np.float32(std)
    return tensor


def fit_image(image: Image.Image, spec: InputSpec, crop: Crop | None = None) -> Image.Image:
    """Convert an image to the size and channels of a network's input, as `to_tensor` describes."""
    image = convert(image, spec.channels)
    crop = crop_at(*image.size, spec) if crop is None else crop
    left, top, right, bottom = crop[:4]
    if right - left == bottom - top == spec.size and left == int(left) and top == int(top):
        image = image.crop((int(left), int(top), int(right), int(bottom)))  # what resizing to the same size gives
    else:
        # Resizing the visible part alone gives the pixels of "resize, then crop" and stays small for a long image.
        image = image.resize((spec.size, spec.size), _RESAMPLING[spec.interpolation], box=crop[:4])
    return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if crop.mirrored else image


def crop_at(width: int, height: int, spec: InputSpec, across: float = 0.5, down: float = 0.5) -> Crop:
    """Place the square that a network sees on the pixel grid of the resized image, as torchvision's crops do.

    Args:
        width: Width of the image.
        height: Its height.
        spec: Input format of the network.
        across: Where the square lies between the left edge (0) and the right edge (1).
        down: Where it lies between the top (0) and the bottom (1).

    Example:
        >>> crop_at(400, 300, InputSpec(size=200, mean=(0.5,), std=(0.5,), resize=300), across=1, down=0)
        Crop(left=200.0, top=0.0, right=400.0, bottom=200.0, mirrored=False)
    """
    short = min(width, height)
    resized = [spec.resize if side == short else int(spec.resize * side / short) for side in (width, height)]
    left, top = (round((side - spec.size) * share) for side, share in zip(resized, (across, down), strict=True))
    across, down = width / resized[0], height / resized[1]
    right, bottom = min((left + spec.size) * across, width), min((top + spec.size) * down, height)
    return Crop(left * across, top * down, right, bottom)


def resample(pictures: Sequence[Tensor], crops: Sequence[Crop], spec: InputSpec, device: torch.device) -> Tensor:
    """Cut crops out of pictures, resize, mirror and normalise them.

    Args:
        pictures: uint8 tensors of shape (channels, height, width), of any sizes, all on one device.
        crops: One for each.
        spec: Input format of the network.
        device: Where to compute.

    Returns:
        float32 tensor of shape (pictures, channels, size, size) on that device.

    Example:
        >>> spec = InputSpec(size=2, mean=(0.5,), std=(0.5,), resize=2)
        >>> picture = torch.tensor([[[0, 0, 255, 255]] * 4], dtype=torch.uint8)
        >>> resample([picture], [Crop(0, 0, 4, 4, mirrored=True)], spec, torch.device("cpu")).sign()
        tensor([[[[ 1., -1.], [ 1., -1.]]]])
    """
    return normalise_levels(resample_levels(pictures, crops, spec, device), spec)


def normalise_levels(levels: Tensor, spec: InputSpec) -> Tensor:
    """Turn levels of 0 … 255, of shape (pictures, channels, size, size), into a network's input."""
    mean, std = (send(torch.tensor(of), levels.device).view(-1, 1, 1) for of in (spec.mean, spec.std))
    return (levels / 255 - mean) / std


def resample_levels(pictures: Sequence[Tensor], crops: Sequence[Crop], spec: InputSpec, device: torch.device) -> Tensor:
    """Do what `resample` does without the last step: return whole levels of 0 … 255, in float32."""
    across = [
        _span(crop.left, crop.right, picture.shape[2], spec) for picture, crop in zip(pictures, crops, strict=True)
    ]
    down = [_span(crop.top, crop.bottom, picture.shape[1], spec) for picture, crop in zip(pictures, crops, strict=True)]
    width, height = (max(end - start for start, end in spans) for spans in (across, down))
    shape = len(pictures), spec.channels, height, width
    stacked = torch.zeros(shape, dtype=torch.uint8, device=pictures[0].device)
    for canvas, picture, (left, right), (top, bottom) in zip(stacked, pictures, across, down, strict=True):
        canvas[:, : bottom - top, : right - left] = picture[:, top:bottom, left:right]
    boxes = [
        (
            crop.left - left,
            crop.right - left,
            right - left,
            crop.mirrored,
            crop.top - top,
            crop.bottom - top,
            bottom - top,
        )
        for crop, (left, right), (top, bottom) in zip(crops, across, down, strict=True)
    ]
    numbers = send(torch.tensor(boxes, dtype=torch.float32), device).T
    by_width = _weights(numbers[0], numbers[1], numbers[2], width, spec, mirrored=numbers[3])
    by_height = _weights(numbers[4], numbers[5], numbers[6], height, spec)
    values = send(stacked, device).float().flatten(1, 2) @ by_width.mT
    values = by_height[:, None] @ eight_bits(values).view(*shape[:3], spec.size)
    return eight_bits(values)


def send(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy a tensor to a device without waiting for the copy to finish."""
    if device.type == "cuda" and tensor.device.type == "cpu":
        tensor = tensor.pin_memory()  # only pinned memory is copied asynchronously
    return tensor.to(device, non_blocking=True)


def _span(start: float, end: float, side: int, spec: InputSpec) -> tuple[int, int]:
    """Return the range of pixels a crop depends on: its own, and those within reach of the filter."""
    reach = _FILTERS[spec.interpolation][0] * max((end - start) / spec.size, 1.0)
    return max(math.floor(start - reach), 0), min(math.ceil(end + reach), side)


def _weights(
    start: Tensor, end: Tensor, side: Tensor, length: int, spec: InputSpec, mirrored: Tensor | None = None
) -> Tensor:
    """Return the weight of each of `length` pixels in each pixel of the result: (crops, size, length)."""
    column = torch.arange(spec.size, device=start.device)[None]
    if mirrored is not None:
        column = torch.where(mirrored[:, None] > 0, spec.size - 1 - column, column)
    scale = ((end - start) / spec.size)[:, None]
    centre = start[:, None] + (column + 0.5) * scale
    pixel = torch.arange(length, device=start.device)
    distance = (pixel + 0.5 - centre[:, :, None]).abs() / scale.clamp(min=1.0)[:, :, None]
    weights = _FILTERS[spec.interpolation][1](distance) * (pixel < side[:, None, None])
    return weights / weights.sum(2, keepdim=True)


def _bilinear(distance: Tensor) -> Tensor:
    return (1 - distance).clamp(min=0.0)


def _bicubic(distance: Tensor) -> Tensor:
    near = (1.5 * distance - 2.5) * distance * distance + 1
    far = ((-0.5 * distance + 2.5) * distance - 4) * distance + 2
    return torch.where(distance < 1, near, torch.where(distance < 2, far, 0.0))


_FILTERS: dict[str, tuple[float, Callable[[Tensor], Tensor]]] = {
    "bicubic": (2.0, _bicubic),
    "bilinear": (1.0, _bilinear),
}
"""By name: how far a filter reaches when it does not shrink, and its weight at a distance."""


def eight_bits(values: Tensor) -> Tensor:
    """Round to 8 bits, as Pillow does."""
    return (values + 0.5).floor_().clamp_(0, 255)
