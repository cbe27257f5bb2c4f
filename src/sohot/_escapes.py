"""Control characters written as escapes: no name of a file or a class controls a terminal or fakes a line."""

import re

_MARKS = "\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_UNSEEN = re.compile(f"[\x00-\x08{_MARKS}]")
"""Control characters, marks that reorder or split a line, and halves of UTF-16 pairs, which no terminal can print."""
_ESCAPED = re.compile(rf"[\x00-\x0a{_MARKS}]|\\(?=u[0-9a-f]{{4}})")
_ESCAPE = re.compile(r"\\u([0-9a-f]{4})")


def visible(text: str) -> str:
    r"""Show control characters as escapes, as JSON writes them; tabs and line breaks stay.

    >>> visible("mug\x1b[2J")
    'mug\\u001b[2J'
    """
    return _UNSEEN.sub(_escape, text)


def escaped(text: str) -> str:
    r"""Write control characters, tabs and line breaks among them, as escapes that `unescaped` undoes.

    A backslash that begins what looks like an escape becomes one itself; all others stay.

    >>> print(escaped("mug\x1b[2J\n"), escaped(r"C:\mug"), escaped(r"C:\u0041"))
    mug\u001b[2J\u000a C:\mug C:\u005cu0041
    """
    return _ESCAPED.sub(_escape, text)


def unescaped(text: str) -> str:
    r"""Return the text that `escaped` was given.

    >>> unescaped(r"mug\u000a") == "mug\n"
    True
    """
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)


def _escape(found: "re.Match[str]") -> str:
    return f"\\u{ord(found[0]):04x}"
