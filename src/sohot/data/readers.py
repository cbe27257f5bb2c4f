"""Readers for lists of images: whole files, crops of them, depth maps, or images in a file that holds many.

A list names its reader, so it stays plain data and works wherever tensors are needed.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from .decode import SIXTEEN_BIT, UnreadableImage, convert, opened, read_image
from .digit_formats import read_idx, read_usps
from .labelled import LabelledImages

_Array = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Reader:
    """A way to read images.

    Attributes:
        read: Returns the image of (file, part, channels, at_least), upright, as "L" or "RGB".
        content: Returns the bytes of (file, part) that identify an image, for a file that holds many; None where these
            are the bytes of the file.
    """

    read: Callable[[Path, str, int, int | None], Image.Image]
    content: Callable[[Path, str], bytes] | None = None


def read_item(images: LabelledImages, row: int, channels: int = 3, *, at_least: int | None = None) -> Image.Image:
    """Read one image of a list, as `read_image` does for a file.

    Raises:
        UnreadableImage: It cannot be read.
        ValueError: The list names an unknown reader.
    """
    return find_reader(images.reader).read(images.files[row], images.part(row), channels, at_least)


def find_reader(name: str) -> Reader:
    """Look up a reader by its name."""
    if name not in READERS:
        raise ValueError(f"reader must be one of {', '.join(map(repr, READERS))}, got {name!r}")
    return READERS[name]


def _read_picture(file: Path, part: str, channels: int, at_least: int | None) -> Image.Image:
    if not part:
        return read_image(file, channels, at_least=at_least)
    image = read_image(file, channels)  # at full size: the box is in its pixels
    try:
        left, top, right, bottom = map(int, part.split(","))
    except ValueError:
        raise UnreadableImage(file, f"its part must be a box 'left,top,right,bottom', got {part!r}") from None
    if not (0 <= left < right <= image.width and 0 <= top < bottom <= image.height):
        raise UnreadableImage(file, f"the box {part} does not lie in its {image.width} × {image.height} pixels")
    return image.crop((left, top, right, bottom))


def _read_depth(file: Path, _part: str, channels: int, _at_least: int | None) -> Image.Image:
    return read_depth(file, channels)


def _one_of_many(read: Callable[[Path], _Array]) -> Reader:
    """Make a reader of files that hold many grey images; the part is the number of the image."""

    def pick(file: Path, part: str) -> _Array:
        images = read(file)
        if not (part.isdecimal() and int(part) < len(images)):
            raise UnreadableImage(file, f"it contains images 0 … {len(images) - 1}, got {part!r}")
        picked: _Array = images[int(part)]
        return picked

    def show(file: Path, part: str, channels: int, _at_least: int | None) -> Image.Image:
        return convert(Image.fromarray(np.ascontiguousarray(pick(file, part))), channels)

    return Reader(show, lambda file, part: pick(file, part).tobytes())


READERS = {
    "image": Reader(_read_picture),
    "depth": Reader(_read_depth),
    "idx": _one_of_many(read_idx),
    "usps": _one_of_many(lambda file: read_usps(file)[0]),
}
"""By name: "image" (whole files, or boxes in them), "depth" (16-bit depth maps), "idx" and "usps" (many in a file)."""


def read_depth(path: str | os.PathLike[str], channels: int = 1) -> Image.Image:
    """Read a depth map of 8 or 16 bits, in which 0 stands for "not measured".

    Holes take the depth of the nearest measured pixel. Depths are stretched to 0 … 255: near is dark, far is bright.

    Args:
        path: The file.
        channels: 1 for grey ("L"), 3 for colours from blue (near) to red (far), which suit a network trained on
            photographs better than three equal channels (Eitel et al., IROS 2015).

    Raises:
        UnreadableImage: The file cannot be read, or has more than one channel, or contains no depth.
    """
    if channels not in (1, 3):
        raise ValueError(f"channels must be 1 or 3, got {channels!r}")
    with opened(path) as image:
        mode, depth = image.mode, np.asarray(image)
    if mode not in (*SIXTEEN_BIT, "L"):
        raise UnreadableImage(path, f"a depth map has one channel of 8 or 16 bits, but this image has mode {mode}")
    if not depth.any():
        raise UnreadableImage(path, "it contains no depth: all pixels are 0")
    grey = scale_depth(fill_holes(depth))
    return Image.fromarray(grey if channels == 1 else colourise(grey))


def fill_holes(depth: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Replace pixels that are 0 by the value of the nearest pixel that is not.

    >>> fill_holes(np.array([[7, 0, 0, 9]])).tolist()
    [[7, 7, 9, 9]]
    """
    holes = depth == 0
    if not holes.any() or holes.all():
        return depth
    from scipy.ndimage import distance_transform_edt  # type: ignore[import-untyped]

    nearest = distance_transform_edt(holes, return_distances=False, return_indices=True)
    filled: npt.NDArray[np.generic] = depth[tuple(nearest)]
    return filled


def scale_depth(depth: npt.NDArray[np.generic]) -> npt.NDArray[np.uint8]:
    """Stretch depths to 0 … 255.

    >>> scale_depth(np.array([[600, 700, 1110]])).tolist()
    [[0, 50, 255]]
    """
    values = depth.astype(np.float64)
    near, far = values.min(), values.max()
    scaled: npt.NDArray[np.uint8] = np.round((values - near) * (255 / max(far - near, 1))).astype(np.uint8)
    return scaled


def colourise(grey: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Turn 0 … 255 into colours from blue through green to red ("jet").

    >>> colourise(np.array([[0, 128, 255]], dtype=np.uint8)).tolist()
    [[[0, 0, 128], [130, 255, 126], [128, 0, 0]]]
    """
    centres = np.array([3.0, 2.0, 1.0])  # where red, green and blue are strongest, on the scale 0 … 4
    strength = 1.5 - np.abs(grey[..., None] / 255 * 4 - centres)
    colours: npt.NDArray[np.uint8] = np.round(strength.clip(0, 1) * 255).astype(np.uint8)
    return colours
