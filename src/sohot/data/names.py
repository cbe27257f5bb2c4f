"""Names of files and classes: one spelling, one order, on every machine."""

import os
import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path


def printable(path: str | os.PathLike[str]) -> str:
    r"""Spell a path so that it can be printed and stored anywhere.

    Bytes of a file name that are not UTF-8 become escapes; a letter with an accent gets one code (some systems store
    two).

    >>> printable("caf\udce9.jpg")
    'caf\\xe9.jpg'
    >>> printable("cafe\u0301") == "café"
    True
    """
    text = os.fspath(path)
    try:
        raw = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half a pair of UTF-16, which Windows allows in names
        raw = text.encode("utf-8", "surrogatepass")
    return unicodedata.normalize("NFC", raw.decode("utf-8", "backslashreplace"))


def natural_key(name: str) -> tuple[list[str | int], str]:
    """Give the key that sorts names as people do: numbers by value, capitals beside small letters, no locale.

    >>> sorted(["b10", "B2", "a"], key=natural_key)
    ['a', 'B2', 'b10']
    """
    # Splitting by a group alternates text and digits, so that text is only ever compared with text.
    parts = re.split("([0-9]+)", printable(name).casefold())
    return [int(part) if index % 2 else part for index, part in enumerate(parts)], name


def relative_name(file: Path, root: Path | None) -> str:
    """Name a file below `root` with forward slashes on every system; the whole path if it does not lie below."""
    if root is not None and file.is_relative_to(root):
        file = file.relative_to(root)
    return printable(file.as_posix())


def enumerate_words(words: Iterable[str], limit: int = 20) -> str:
    """Write words into a sentence, the first `limit` of them.

    >>> enumerate_words(["mug", "pen", "bike"], limit=2)
    'mug, pen and 1 more'
    """
    words = list(words)
    text = ", ".join(words[:limit])
    return text if len(words) <= limit else f"{text} and {len(words) - limit} more"
