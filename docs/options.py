"""Write docs/options.md from the options that the program declares.

Call it as `python docs/options.py`.
"""

from dataclasses import Field
from pathlib import Path
from typing import Any

from sohot.methods import HeadSettings
from sohot.methods.options import GROUPS, flag, in_groups
from sohot.runs import RunConfig

PAGE = Path(__file__).with_suffix(".md")

HEAD = """# Options

Every option has one name and one meaning.

- On images it is an option of `sohot fit` (`--lr 0.01`), an argument of `sohot.fit` in Python (`lr=0.01`), a key of the
  TOML file of both (`lr = 0.01`), a setting of a grid and, where it shapes training, a field of
  `sohot.methods.FitSettings`.
- On features it is an option of `sohot fit-features`, a setting of a grid with `--frozen`, a field of
  `sohot.methods.HeadSettings` and a parameter of `SoHoTClassifier`.

`sohot fit --help` shows ten of them first, and the others in groups.

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
    if declared.default is None:
        return "none"
    if declared.default is False:
        return "off"
    return f"`{declared.default}`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
