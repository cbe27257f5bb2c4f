"""Names of files and classes: the same spelling and order on every machine."""

import os
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from .._escapes import visible as visible


def printable(path: str | os.PathLike[str]) -> str:
    r"""Make a path safe to print and store anywhere.

    Bytes that are not UTF-8 become escapes; an accented letter becomes one code point (some systems store two).

    >>> printable("caf\udce9.jpg")
    'caf\\xe9.jpg'
    >>> printable("cafe\u0301") == "café"
    True
    """
    text = os.fspath(path)
    try:
        raw = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a lone UTF-16 surrogate, which Windows allows in names
        raw = text.encode("utf-8", "surrogatepass")
    return unicodedata.normalize("NFC", raw.decode("utf-8", "backslashreplace"))


def natural_key(name: str) -> tuple[list[str | int], str]:
    """Return the key for natural order: numbers by value, upper and lower case together, independent of locale.

    >>> sorted(["b10", "B2", "a"], key=natural_key)
    ['a', 'B2', 'b10']
    """
    # Splitting by a group alternates text and digits, so text is only compared with text.
    parts = re.split("([0-9]+)", printable(name).casefold())
    return [int(part) if index % 2 else part for index, part in enumerate(parts)], name


@lru_cache(maxsize=1 << 15)  # taking paths apart is slow, and every draw asks for all names
def relative_name(file: Path, root: Path | None) -> str:
    """Return a file's path below `root`, with forward slashes on every system; its whole path if it is elsewhere."""
    if root is not None and file.is_relative_to(root):
        file = file.relative_to(root)
    return printable(file.as_posix())


def enumerate_words(words: Iterable[str], limit: int = 20) -> str:
    """Join words for a sentence, the first `limit` of them.

    >>> enumerate_words(["mug", "pen", "bike"], limit=2)
    'mug, pen and 1 more'
    """
    words = list(words)
    text = ", ".join(words[:limit])
    return text if len(words) <= limit else f"{text} and {len(words) - limit} more"
