"""Pictures as data inside a page: small copies of images, and figures from files."""

import base64
import io
from pathlib import Path

from PIL import Image

from ...data.labelled import LabelledImages
from ...data.readers import read_item
from .blocks import Picture

SIDE = 160
"""Longest side of a small copy, in pixels."""
MOST_BYTES = 2_000_000
"""Figures from files take no more than this of a page."""
_KINDS = {".png": "image/png", ".svg": "image/svg+xml", ".jpg": "image/jpeg"}


def data_uri(content: bytes, kind: str) -> str:
    """Put bytes into an address.

    >>> data_uri(b"abc", "image/png")
    'data:image/png;base64,YWJj'
    """
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def thumbnail(images: LabelledImages, row: int, side: int = SIDE) -> str:
    """Read an image of a list and give a small JPEG of it as an address."""
    image: Image.Image = read_item(images, row, 3, at_least=2 * side)
    image.thumbnail((side, side))
    content = io.BytesIO()
    image.save(content, "JPEG", quality=80, optimize=True)
    return data_uri(content.getvalue(), "image/jpeg")


def embed_figures(files: list[Path], captions: dict[str, str] | None = None) -> tuple[list[Picture], list[str]]:
    """Read picture files, as many as fit into a page.

    Args:
        files: PNG, SVG or JPEG files.
        captions: What each shows, by file name; the name itself where it is missing.

    Returns:
        The pictures, and the names of files that were left out.
    """
    pictures, left_out, taken = [], [], 0
    for file in files:
        try:
            content = file.read_bytes()
        except OSError:
            left_out.append(file.name)
            continue
        if taken + len(content) > MOST_BYTES or file.suffix.lower() not in _KINDS:
            left_out.append(file.name)
            continue
        taken += len(content)
        caption = (captions or {}).get(file.name, file.stem.replace("-", " ").replace("_", " "))
        pictures.append(Picture(data_uri(content, _KINDS[file.suffix.lower()]), caption, caption))
    return pictures, left_out
