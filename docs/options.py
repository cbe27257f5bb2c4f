"""Write docs/options.md and the types of `sohot.fit` from the options that the program declares.

Call it as `python docs/options.py`.
"""

from dataclasses import Field
from pathlib import Path
from textwrap import fill
from types import NoneType
from typing import Any, get_args, get_type_hints

import sohot
from sohot.api.fit_call import other_options
from sohot.methods import HeadSettings
from sohot.methods.options import GROUPS, flag, in_groups, kinds_of
from sohot.runs import RunConfig

PAGE = Path(__file__).with_suffix(".md")

HEAD = """# Options

Every option has one name and one meaning.

- On images it is an option of `sohot fit` (`--lr 0.01`), an argument of `sohot.fit` in Python (`lr=0.01`), a key of the
  TOML file of both (`lr = 0.01`), a setting of a grid and, where it shapes training, a field of
  `sohot.methods.FitSettings`.
- On features it is an option of `sohot fit-features`, a setting of a grid with `--frozen`, a field of
  `sohot.methods.HeadSettings` and a parameter of `SoHoTClassifier`.

`sohot fit --help` shows ten of them, `--help-all` all.

An empty default means that the option does not exist there; `none` means that it is not set.

This page is written by `python docs/options.py`; a test compares it with the program.
"""


def page() -> str:
    """Return the text of the page."""
    images = {declared.name: declared for declared in in_groups(RunConfig)}
    features = {declared.name: declared for declared in in_groups(HeadSettings)}
    lines = [HEAD]
    for group in GROUPS:
        names = [name for name, declared in {**features, **images}.items() if declared.metadata["group"] == group]
        lines += [f"## {group}", "", "| option | default on images | on features | values | |", "| --- " * 5 + "|"]
        lines += [_row(images.get(name), features.get(name)) for name in names]
        lines.append("")
    return "\n".join(lines)


def _row(images: "Field[Any] | None", features: "Field[Any] | None") -> str:
    declared = images or features
    assert declared is not None
    within, about = declared.metadata["within"], declared.metadata["help"]
    if declared.name == "method":
        about = "What trains and what is aligned: [docs/methods.md](methods.md)."
    cells = [f"`{flag(declared.name)}`", _default(images), _default(features), within.words if within else "", about]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _default(declared: "Field[Any] | None") -> str:
    if declared is None:
        return ""
    if declared.metadata["shown"]:
        return str(declared.metadata["shown"])
    if declared.default in (None, False):
        return "none" if declared.default is None else "off"
    return f"`{declared.default}`"


TYPES = Path(sohot.__file__).parent / "api" / "fit_options.py"

MODULE = '''"""Types of the options of `sohot.fit`; written by `python docs/options.py` from their declarations."""

import os
from collections.abc import Sequence
from typing import TypedDict


class FitOptions(TypedDict, total=False):
    """All options of `sohot fit` that are not parameters of their own of `sohot.fit`."""
'''
_SPELLED = {
    Path: "str | os.PathLike[str]",
    tuple[int, ...]: "int | Sequence[int]",
    tuple[float, ...]: "float | Sequence[float]",
    tuple[str, ...]: "str | Sequence[str]",
}


def types() -> str:
    """Return the module that tells type checkers and editors the options of `sohot.fit`."""
    hints, lines = get_type_hints(RunConfig), [MODULE]
    for declared in other_options():
        hint = hints[declared.name]
        kinds = [_SPELLED.get(kind) or kind.__name__ for kind in kinds_of(hint)]
        empty = ["None"] if NoneType in get_args(hint) else []
        lines.append(f"    {declared.name}: {' | '.join([*kinds, *empty])}")
        lines.append(fill(f'"""{declared.metadata["help"]}"""', 119, initial_indent=" " * 4, subsequent_indent=" " * 4))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    TYPES.write_text(types(), encoding="utf-8")
