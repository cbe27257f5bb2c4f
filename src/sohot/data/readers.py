"""How the images of a list are read: whole files, crops of them, depth maps, or images in a file of many.

A list of images names its reader, so that the list stays plain values and everything that asks for tensors works on it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from .decode import UnreadableImage, convert, read_image
from .depth import read_depth
from .digit_formats import read_idx, read_usps
from .labelled import LabelledImages

_Array = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Reader:
    """A way to read images.

    Attributes:
        read: Gives the image of (file, part, channels, at_least), upright, as "L" or "RGB".
        content: Gives the bytes of (file, part) that tell one image from another, for a file of many; None where these
            are the bytes of the file.
    """

    read: Callable[[Path, str, int, int | None], Image.Image]
    content: Callable[[Path, str], bytes] | None = None


def read_item(images: LabelledImages, row: int, channels: int = 3, *, at_least: int | None = None) -> Image.Image:
    """Read one image of a list, as `read_image` does for a file.

    Raises:
        UnreadableImage: It cannot be read.
        ValueError: The reader of the list is not known.
    """
    return find_reader(images.reader).read(images.files[row], part_of(images, row), channels, at_least)


def part_of(images: LabelledImages, row: int) -> str:
    """Give the part of the file that a row means; "" for all of it."""
    return images.parts[row] if images.parts else ""


def find_reader(name: str) -> Reader:
    """Look up a reader by its name."""
    if name not in READERS:
        raise ValueError(f"reader must be one of {', '.join(map(repr, READERS))}, got {name!r}")
    return READERS[name]


def _read_picture(file: Path, part: str, channels: int, at_least: int | None) -> Image.Image:
    if not part:
        return read_image(file, channels, at_least=at_least)
    image = read_image(file, channels)  # at full size: the box counts its pixels
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
            raise UnreadableImage(file, f"it holds the images 0 … {len(images) - 1}, {part!r} was asked for")
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
"""By name: "image" (whole files, or boxes in them), "depth" (16-bit depth maps), "idx" and "usps" (files of many)."""
