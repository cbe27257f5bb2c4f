"""Read any common image file as 8-bit colour or grey, upright, or say in one sentence why it cannot be read."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from .._limits import usable_cores
from .names import printable
from .shard_files import open_image

# Listed one by one, because Pillow also opens formats that start other programs (EPS) or are not pictures.
FORMATS = ("JPEG", "PNG", "BMP", "DIB", "GIF", "TIFF", "WEBP", "AVIF", "PPM", "TGA", "JPEG2000")
# Pillow cannot read the last two, but a folder of them must not look empty: they are reported as left out.
SUFFIXES = frozenset({".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".apng", ".bmp", ".dib", ".gif", ".tif", ".tiff"})
SUFFIXES |= {".webp", ".avif", ".ppm", ".pgm", ".pbm", ".pnm", ".tga", ".jp2", ".j2k", ".heic", ".heif"}
MODES = {1: "L", 3: "RGB"}
SIXTEEN_BIT = ("I", "I;16", "I;16B", "I;16L", "I;16N")  # Pillow scales "I" of a PGM file to 16 bits as well


class UnreadableImage(ValueError):  # noqa: N818  (it is the image that is at fault)
    """An image that cannot be read: its `path` and the `reason`, in words."""

    def __init__(self, path: str | os.PathLike[str], reason: str) -> None:
        super().__init__(f"{printable(path)} cannot be read: {reason}")
        self.path = Path(path)
        self.reason = reason


def file_state(file: Path) -> os.stat_result:
    """Look up size and date of a file; raise UnreadableImage if it is missing."""
    try:
        return file.stat()
    except OSError as error:
        raise UnreadableImage(file, system_reason(error)) from error


def system_reason(error: OSError) -> str:
    """Describe why the system could not read a file."""
    return "there is no such file" if isinstance(error, FileNotFoundError) else error.strerror or type(error).__name__


def read_image(path: str | os.PathLike[str], channels: int = 3, *, at_least: int | None = None) -> Image.Image:
    """Read one image.

    16-bit values are scaled by their range, transparent pixels become white, CMYK and palettes become colours, and the
    camera's rotation is applied. Of an animation, the first frame is used.

    Args:
        path: The file.
        channels: 3 for colour ("RGB"), 1 for grey ("L").
        at_least: If given, a JPEG may be decoded smaller, with both sides still at least this long. Much faster where
            the image will be shrunk anyway.

    Raises:
        UnreadableImage: The file is missing, empty, cut short, too large or not an image.
    """
    if channels not in MODES:
        raise ValueError(f"channels must be 1 or 3, got {channels!r}")
    with opened(path) as image:
        if at_least is not None:
            image.draft(None, (at_least, at_least))
        image.load()
        return convert(_upright(image), channels)


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[Image.Image]:
    """Open an image file of a known format and a safe size; any error inside becomes one sentence.

    Raises:
        UnreadableImage: Opening the file, or the code inside the block, failed.
    """
    try:
        with open_image(path) as stream, Image.open(stream, formats=_formats()) as image:
            _check_size(image)
            yield image
    except Exception as error:  # decoders raise errors of every kind on broken bytes
        raise UnreadableImage(path, _reason(path, error)) from error


@cache
def _formats() -> tuple[str, ...]:
    """List the formats that the installed Pillow supports (older ones lack AVIF)."""
    Image.init()
    return tuple(name for name in FORMATS if name in Image.OPEN)


def convert(image: Image.Image, channels: int = 3) -> Image.Image:
    """Convert an image of any Pillow mode to 8-bit colour or grey, transparent pixels on white.

    >>> convert(Image.new("RGBA", (1, 1), (255, 0, 0, 0))).getpixel((0, 0))
    (255, 255, 255)
    >>> convert(Image.new("I;16", (1, 1), 65535), channels=1).getpixel((0, 0))
    255
    """
    mode = MODES[channels]
    if image.mode in (*SIXTEEN_BIT, "F"):
        image = _to_eight_bits(image)
    elif image.has_transparency_data:
        image = _on_white(image)
    return image if image.mode == mode else image.convert(mode)


def _upright(image: Image.Image) -> Image.Image:
    with suppress(Exception):  # damaged EXIF data must not cost the picture
        ImageOps.exif_transpose(image, in_place=True)  # otherwise it copies upright images
    return image


def _on_white(image: Image.Image) -> Image.Image:
    if image.mode == "La":  # Pillow has one conversion from this mode
        image = image.convert("LA")
    rgba = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", rgba.size, "white"), rgba)


def _to_eight_bits(image: Image.Image) -> Image.Image:
    values = np.asarray(image)
    low, high = values.min(), values.max()
    limit = 1 if image.mode == "F" else 65535
    if not (low >= 0 and high <= limit):  # also false for NaN
        raise ValueError(
            f"its values range from {low:g} to {high:g}, and which are black and white is unknown: "
            f"save it with 8 or 16 bits per channel"
        )
    transparent = image.info.get("transparency")
    if isinstance(transparent, int):
        values = np.where(values == transparent, limit, values)
    return Image.fromarray((values.astype(np.float64) * (255 / limit)).round().astype(np.uint8))


def _check_size(image: Image.Image) -> None:
    """Refuse images above Pillow's limit; Pillow itself only warns up to twice that limit."""
    if Image.MAX_IMAGE_PIXELS is not None and image.width * image.height > Image.MAX_IMAGE_PIXELS:
        raise Image.DecompressionBombError


def _reason(path: str | os.PathLike[str], error: Exception) -> str:
    """Describe a decoder's error."""
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, (Image.DecompressionBombError, Image.DecompressionBombWarning)):
        millions = (Image.MAX_IMAGE_PIXELS or 0) / 1e6
        return f"it has more than the {millions:.0f} million pixels that are safe to decode; make it smaller"
    if isinstance(error, OSError) and error.errno is not None:
        return str(error.strerror)
    if os.path.isfile(path) and os.stat(path).st_size == 0:
        return "the file is empty"
    if isinstance(error, UnidentifiedImageError):
        return f"it is not an image in a supported format ({', '.join(_formats())})"
    detail = " ".join(str(error).split()) or type(error).__name__
    return f"the file is cut short ({detail})" if "truncated" in detail.lower() else detail


def default_workers() -> int:
    """Return one thread per processor that this process may use, at most 8 (more would only wait for the disk).

    >>> 1 <= default_workers() <= 8
    True
    """
    return min(usable_cores(), 8)
