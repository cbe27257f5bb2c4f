"""Images as Python programs hold them: paths, Pillow images, arrays, encoded bytes; and as the bytes of a file."""

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageOps

from ..data.decode import convert

_CHANNELS = (1, 3, 4)


def is_path(value: object) -> bool:
    """Tell whether a value names a file or a folder."""
    return isinstance(value, (str, os.PathLike))


def is_array(value: object) -> bool:
    """Tell whether a value is an array: of numpy, torch or another library."""
    return hasattr(value, "shape") and hasattr(value, "dtype") and not hasattr(value, "columns")


def is_one_picture(value: object) -> bool:
    """Tell whether a value is one image, and not several.

    An array of three dimensions is one image if its last side has 1, 3 or 4 values; a tensor, if its first has.

    >>> is_one_picture(np.zeros((28, 28, 3))), is_one_picture(np.zeros((10, 28, 28)))
    (True, False)
    """
    if isinstance(value, Image.Image | bytes) or _is_encoded(value):
        return True
    if not is_array(value):
        return False
    shape = tuple(value.shape)  # type: ignore[attr-defined] # asked above
    return len(shape) == 2 or (len(shape) == 3 and shape[0 if _is_tensor(value) else 2] in _CHANNELS)


def file_content(picture: Any) -> tuple[str, bytes]:
    """Return the bytes of a file of an image, and how its name ends.

    Args:
        picture: A Pillow image or an array, which become PNG (8 bits per channel, transparent pixels on white), or
            the encoded bytes of an image, also as Hugging Face holds them (`{"bytes": …, "path": …}`), which stay.

    Raises:
        TypeError: It is something else.
        ValueError: It is an array that shows no image.

    Example:
        >>> suffix, content = file_content(np.zeros((4, 4, 3), np.uint8))
        >>> suffix, content[1:4]
        ('.png', b'PNG')
    """
    if _is_encoded(picture):
        picture = picture["bytes"]
    if isinstance(picture, bytes):
        return ".image", picture
    if is_array(picture):
        picture = _from_array(picture)
    if not isinstance(picture, Image.Image):
        raise TypeError(f"an image is a path, a Pillow image or an array, got {type(picture).__name__}")
    upright = ImageOps.exif_transpose(picture)
    eight_bit = upright if upright.mode in ("L", "RGB") and not upright.has_transparency_data else convert(upright)
    stream = io.BytesIO()
    eight_bit.save(stream, "PNG", compress_level=1)  # quick: these files are read once or twice
    return ".png", stream.getvalue()


def path_in(value: Any) -> Path | None:
    """Return the path that stands for an image, also as Hugging Face holds it; None if the image is in memory."""
    if isinstance(value, Mapping) and value.get("bytes") is None and is_path(value.get("path")):
        value = value["path"]
    return Path(value) if is_path(value) else None


def _is_encoded(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("bytes"), bytes)


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "detach")


def _from_array(given: Any) -> Image.Image:
    """Make an image of an array H × W or H × W × C; also of C × H × W, which tensors are first taken for."""
    values = np.asarray(given.detach().cpu() if _is_tensor(given) else given)
    first, last = values.ndim == 3 and values.shape[0] in _CHANNELS, values.ndim == 3 and values.shape[2] in _CHANNELS
    if first and (_is_tensor(given) or not last):
        values = np.moveaxis(values, 0, 2)
    elif not (last or values.ndim == 2):
        raise ValueError(
            f"an array of shape {values.shape} is not an image: give H × W, or H × W × C with 1, 3 or 4 channels"
        )
    if not values.size:
        raise ValueError(f"an array of shape {values.shape} holds no pixels")
    pixels = _to_eight_bits(values)
    return Image.fromarray(pixels[:, :, 0] if pixels.ndim == 3 and pixels.shape[2] == 1 else pixels)


def _to_eight_bits(values: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Scale truth values, and numbers from 0 to 1, to 0 … 255."""
    kind = values.dtype.kind
    if kind not in "buif":
        raise ValueError(f"an array of {values.dtype} is not an image: give numbers")
    low, high, limit = values.min(), values.max(), 1 if kind in "bf" else 255
    if kind == "b":
        low, high = int(low), int(high)
    if not (low >= 0 and high <= limit):  # also false for NaN
        raise ValueError(
            f"an array of {values.dtype} with values from {low:g} to {high:g} is not an image: "
            "give whole numbers from 0 to 255, or numbers from 0 to 1, before any normalisation"
        )
    return np.ascontiguousarray(np.rint(values * 255.0) if limit == 1 else values).astype(np.uint8)
