"""The parts of a report: sections of paragraphs, tables, charts, pictures and listings, without any HTML."""

import base64
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from PIL import Image

from ..._files import refuse_link
from ..._reading import read_regular
from ..figures.canvas import DOTS_PER_INCH

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MISSING = "–"
MOST_BYTES = 2_000_000
"""Pictures from files take at most this much of a page."""


@dataclass(frozen=True)
class Number:
    """A cell of a table that sorts by its value; one without a value sorts last."""

    text: str
    value: float | None


Entry = str | Number


def number(value: float | None, digits: int = 1, *, sign: bool = False) -> Number:
    """Write a number for a table.

    >>> number(81.234)
    Number(text='81.2', value=81.234)
    >>> number(-0.5, sign=True).text, number(None).text
    ('−0.5', '–')
    """
    if value is None or not math.isfinite(value):
        return Number(MISSING, None)
    return Number(f"{value:{'+' if sign else ''}.{digits}f}".replace("-", "−"), value)


@dataclass(frozen=True)
class Words:
    """A paragraph; `quiet` makes it less prominent."""

    kind: ClassVar[str] = "words"
    text: str
    quiet: bool = False


@dataclass(frozen=True)
class Table:
    """A table that can be sorted by its columns.

    Attributes:
        caption: What it shows.
        columns: Headings.
        rows: Entries by row; a column that contains a `Number` is aligned as numbers.
        marked: Indices of highlighted rows, such as the baseline.
    """

    kind: ClassVar[str] = "table"
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Entry]]
    marked: frozenset[int] = frozenset()

    def is_number(self, column: int) -> bool:
        """Check whether a column is aligned as numbers."""
        return any(isinstance(row[column], Number) for row in self.rows)


@dataclass(frozen=True)
class Chart:
    """A figure with its heading, and what it shows for readers who cannot see it."""

    kind: ClassVar[str] = "chart"
    figure: "Figure"
    title: str
    description: str


@dataclass(frozen=True)
class Picture:
    """An image inside the page: its data, what it shows, a caption, a verdict ("right", "wrong" or ""), its width."""

    uri: str
    alt: str
    caption: str = ""
    verdict: str = ""
    note: str = ""
    width: int | None = None


def data_uri(content: bytes, kind: str) -> str:
    """Encode bytes as a data URI.

    >>> data_uri(b"abc", "image/png")
    'data:image/png;base64,YWJj'
    """
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def embed_pictures(files: Mapping[Path, str]) -> tuple[list[Picture], list[str]]:
    """Read PNG files, as many as fit on a page. Links are left out: one might bring a private file into the page.

    Args:
        files: What each file shows.

    Returns:
        The pictures, and the names of files that were left out.
    """
    pictures, left_out, taken = [], [], 0
    for file, caption in files.items():
        try:
            refuse_link(file.parent)
            content = read_regular(refuse_link(file), MOST_BYTES - taken)
            with Image.open(io.BytesIO(content), formats=["PNG"]) as image:
                width = image.width * 96 // DOTS_PER_INCH  # letters are then as large as the page's
        except (OSError, ValueError, Image.DecompressionBombError):
            left_out.append(file.name)
            continue
        taken += len(content)
        pictures.append(Picture(data_uri(content, "image/png"), caption, caption, width=width))
    return pictures, left_out


@dataclass(frozen=True)
class Gallery:
    """Small pictures side by side; if `wide`, large ones in their own width."""

    kind: ClassVar[str] = "gallery"
    pictures: Sequence[Picture]
    wide: bool = False


@dataclass(frozen=True)
class Listing:
    """Verbatim text to read or copy, such as a command; `folded` hides it behind its label."""

    kind: ClassVar[str] = "listing"
    text: str
    label: str
    folded: bool = False


@dataclass(frozen=True)
class Pairs:
    """Names and their values."""

    kind: ClassVar[str] = "pairs"
    items: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Points:
    """A list of sentences; all after the first `shown` are folded away."""

    kind: ClassVar[str] = "points"
    items: Sequence[str]
    shown: int = 8


@dataclass(frozen=True)
class Side:
    """Charts side by side if there is room."""

    kind: ClassVar[str] = "side"
    charts: Sequence[Chart]


Block = Words | Table | Chart | Gallery | Listing | Pairs | Points | Side


@dataclass(frozen=True)
class Section:
    """A heading and its content."""

    title: str
    blocks: Sequence[Block]

    @property
    def anchor(self) -> str:
        """The name that links use."""
        return "".join(letter if letter.isalnum() else "-" for letter in self.title.lower())


@dataclass(frozen=True)
class Fact:
    """A number of the summary, shown large with a few words."""

    value: str
    name: str
    note: str = ""


@dataclass(frozen=True)
class Page:
    """A whole report.

    Attributes:
        title: What it is about.
        kind: "run", "demo" or "experiment".
        summary: The result in words, one entry per paragraph.
        facts: The most important numbers.
        sections: The rest.
        written: Who wrote it, for the foot of the page.
    """

    title: str
    kind: str
    summary: Sequence[str]
    facts: Sequence[Fact]
    sections: Sequence[Section]
    written: str = field(default="")
