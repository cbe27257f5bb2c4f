"""Small copies of images for a page."""

import io

from PIL import Image

from ...data.labelled import LabelledImages
from ...data.readers import read_item
from .blocks import data_uri

SIDE = 160
"""Longest side of a thumbnail, in pixels."""


def thumbnail(images: LabelledImages, row: int, side: int = SIDE) -> str:
    """Read an image of a list and return a small JPEG of it as a data URI."""
    return data_uri(small_jpeg(images, row, side), "image/jpeg")


def small_jpeg(images: LabelledImages, row: int, side: int = SIDE) -> bytes:
    """Read an image of a list and return a small JPEG of it."""
    image: Image.Image = read_item(images, row, 3, at_least=2 * side)
    image.thumbnail((side, side))
    content = io.BytesIO()
    image.save(content, "JPEG", quality=80, optimize=True)
    return content.getvalue()
