"""Random views of an image, with Pillow or for many images at once on a GPU.

A weak view is cropped and mirrored. A strong one is then recoloured, and a square of it is blanked.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image, ImageStat
from torch import Tensor

from .crops import (
    NUMBERS,
    draw_crops,
    eight_bits,
    fit_image,
    normalise_image,
    normalise_levels,
    random_crop,
    resample_levels,
    send,
)
from .input_spec import InputSpec

_Array = npt.NDArray[np.float64]

STRONG_NUMBERS = NUMBERS + 8
"""Random numbers that a strong view uses: those of its crop first."""

_LUMA = np.array([0.299, 0.587, 0.114])
_YIQ = np.array([_LUMA, [0.5959, -0.2746, -0.3213], [0.2115, -0.5227, 0.3112]])
"""From red, green and blue to brightness and the plane of colours, in which hue is an angle and saturation a length."""


@dataclass(frozen=True)
class Strength:
    """How far a strong view may be from its crop; with zeros only, it is the crop.

    The defaults for colours are those of MoCo v2 (but the hue turns in the plane of YIQ), that of the square is
    FixMatch's.

    Attributes:
        brightness: Largest relative change of brightness.
        contrast: Largest relative change of contrast.
        saturation: Largest relative change of saturation.
        hue: Largest turn of the hue; 1 is a full circle.
        grey: Probability that all colour is taken away.
        cut_out: Largest side of the blanked square, as a share of the image's side.

    Example:
        >>> Strength(hue=0.0).hue
        0.0
    """

    brightness: float = 0.4
    contrast: float = 0.4
    saturation: float = 0.4
    hue: float = 0.1
    grey: float = 0.2
    cut_out: float = 0.5

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if not 0 <= value <= 1:
                raise ValueError(f"{one.name} must be between 0 and 1, got {value!r}")


STRONG = Strength()


class Change(NamedTuple):
    """What a strong view changes: a level x becomes contrast · (colours x) + (1 − contrast) · mean grey of colours x.

    Attributes:
        colours: Matrix by which the channels of a pixel are multiplied: brightness, saturation and hue.
        contrast: Factor of the distance from the image's mean grey.
        box: Left, top, right and bottom of the blanked square, in pixels.
    """

    colours: _Array
    contrast: float
    box: tuple[int, int, int, int]

    @property
    def weights(self) -> _Array:
        """Weight of each channel's mean in the level that is added."""
        luma = _LUMA if len(self.colours) == 3 else np.ones(1)
        return (1 - self.contrast) * (luma @ self.colours)


def change_of(numbers: Sequence[float], strength: Strength, spec: InputSpec) -> Change:
    """Make a change from eight numbers between 0 and 1, in the order of the fields of `Strength`; three for the square.

    >>> spec = InputSpec(size=8, mean=(0.5,), std=(0.5,), resize=8)
    >>> change_of([1.0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.0], Strength(), spec)
    Change(colours=array([[1.4]]), contrast=1.0, box=(3, 0, 5, 1))
    """
    brightness, contrast, saturation, hue, grey, side, across, down = numbers
    colours = np.eye(1)
    if spec.channels == 3:
        length = 0.0 if grey < strength.grey else _factor(saturation, strength.saturation)
        angle = 2 * math.pi * strength.hue * (2 * hue - 1)
        turn = np.eye(3)
        turn[1:, 1:] = [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
        turn[1:, 1:] *= length
        colours = np.linalg.solve(_YIQ, turn @ _YIQ)
    pixels = round(strength.cut_out * side * spec.size)
    left, top = (round(share * spec.size - pixels / 2) for share in (across, down))
    box = max(left, 0), max(top, 0), min(left + pixels, spec.size), min(top + pixels, spec.size)
    return Change(_factor(brightness, strength.brightness) * colours, _factor(contrast, strength.contrast), box)


def _factor(number: float, largest: float) -> float:
    return 1 + largest * (2 * number - 1)


def draw_views(rows: int, strength: Strength | None = None) -> Tensor:
    """Draw the numbers for some views, float64, one row each, from torch's global generator.

    >>> draw_views(2).shape, draw_views(2, STRONG).shape
    (torch.Size([2, 5]), torch.Size([2, 13]))
    """
    return draw_crops(rows) if strength is None else torch.rand(rows, STRONG_NUMBERS, dtype=torch.float64)


def to_view(
    picture: Image.Image,
    spec: InputSpec,
    numbers: Sequence[float],
    strength: Strength | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Turn an image into one view of it, as a network's input.

    Args:
        picture: An image of any mode.
        spec: Input format of the network.
        numbers: A row of `draw_views`.
        strength: Strength of a strong view; None for a weak one.
        out: If given, write the tensor here.

    Returns:
        float32 tensor of shape (channels, size, size).

    Example:
        >>> spec = InputSpec(size=2, mean=(0.5,), std=(0.5,), resize=2)
        >>> to_view(Image.new("L", (4, 3), 255), spec, [0.5] * 5)
        tensor([[[1., 1.], [1., 1.]]])
    """
    image = fit_image(picture, spec, random_crop(*picture.size, numbers[:NUMBERS]))
    if strength is None:
        return normalise_image(image, spec, out)
    change = change_of(numbers[NUMBERS:], strength, spec)
    view = normalise_image(_recolour(image, change), spec, out)
    _blank(view.numpy(), change)  # with numpy, which computes in the calling thread
    return view


def to_view_batch(
    pictures: Sequence[Tensor],
    spec: InputSpec,
    numbers: Sequence[Sequence[float]],
    device: torch.device,
    strength: Strength | None = None,
) -> Tensor:
    """Turn many images into views at once: the pixels of `to_view` up to rounding.

    Args:
        pictures: uint8 tensors of shape (channels, height, width), of any sizes, all on one device.
        spec: Input format of the network.
        numbers: A row of `draw_views` for each.
        device: Where to compute.
        strength: Strength of strong views; None for weak ones.

    Returns:
        float32 tensor of shape (pictures, channels, size, size) on that device.
    """
    crops = [
        random_crop(picture.shape[2], picture.shape[1], own[:NUMBERS])
        for picture, own in zip(pictures, numbers, strict=True)
    ]
    levels = resample_levels(pictures, crops, spec, device)
    if strength is None:
        return normalise_levels(levels, spec)
    changes = [change_of(own[NUMBERS:], strength, spec) for own in numbers]
    views = normalise_levels(_recolour_batch(levels, changes), spec)
    for view, change in zip(views, changes, strict=True):
        _blank(view, change)
    return views


def _recolour(image: Image.Image, change: Change) -> Image.Image:
    means = np.array(ImageStat.Stat(image).mean)  # from its histogram: several times as fast as the mean of an array
    colours, added = change.contrast * change.colours, float(change.weights @ means)
    if len(colours) == 1:
        return image.point([min(max(math.floor(colours[0, 0] * level + added + 0.5), 0), 255) for level in range(256)])
    return image.convert("RGB", tuple(number for row in colours.tolist() for number in (*row, added)))


def _recolour_batch(levels: Tensor, changes: Sequence[Change]) -> Tensor:
    colours = _sent([change.contrast * change.colours for change in changes], levels.device)
    weights = _sent([change.weights for change in changes], levels.device)
    added = (weights * levels.mean((2, 3))).sum(1)
    return eight_bits((colours @ levels.flatten(2)).view_as(levels) + added.view(-1, 1, 1, 1))


def _sent(arrays: Sequence[_Array], device: torch.device) -> Tensor:
    return send(torch.from_numpy(np.stack(arrays)).float(), device)


def _blank(view: Tensor | npt.NDArray[np.float32], change: Change) -> None:
    """Set a square to the mean colour, which is 0 in a network's input."""
    left, top, right, bottom = change.box
    view[:, top:bottom, left:right] = 0
