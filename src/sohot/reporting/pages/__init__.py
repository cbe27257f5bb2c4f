"""Reports: a run, a demo or an experiment as one self-contained HTML page."""

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from ..._files import write_atomically
from ..._outputs import write_output
from ...data.labelled import Progress
from ...functional.plain_checks import check_count
from .blocks import Page

__all__ = ["kind_of", "render", "write_report"]

_POLICY = (
    "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)
_BEGIN = 'document.documentElement.classList.add("scripted");'  # hides the fallback for disabled scripts at once

NAME = "report.html"
IMAGES = 24


def write_report(
    path: str | PathLike[str],
    out: str | PathLike[str] | None = None,
    *,
    images: int = IMAGES,
    figures: str | PathLike[str] | None = None,
    progress: Progress | None = None,
    trust: bool = False,
) -> Path:
    """Write the contents of a folder as one self-contained HTML page that needs no network.

    Args:
        path: Folder of a run, a demo or an experiment, finished or not.
        out: The file to write; None for report.html in that folder.
        images: How many sample images of a run to show; 0 to read no images.
        figures: For a run: a folder for its figures as PNG and SVG files, created if missing: the confusion
            matrix, how far its confidence can be trusted, and the features of both domains before and after training
            (points and ellipses of classes).
        progress: Called with the current task, the number of images done, and the total.
        trust: Import the Python file that a run names, if it was trained with a network of your own.

    Returns:
        The file.

    Raises:
        FileNotFoundError: There is no such folder, or no folder for `out`.
        ValueError: It is not one of these folders, or an argument is wrong.
    """
    folder = Path(path)
    file = folder / NAME if out is None else Path(out)
    check_count(images, "images", lowest=0)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: there is no such folder")
    if file.is_dir():
        raise IsADirectoryError(f"out must be a file, but {file} is a folder")
    if not file.parent.is_dir():
        raise FileNotFoundError(f"the folder of {file} does not exist")
    drawn = None if figures is None else _figure_folder(folder, Path(figures), images)
    content = render(_page(folder, images, progress, drawn, trust)).encode()
    if out is None:
        write_atomically(file, content)
    else:
        write_output(file, content)
    return file


def kind_of(folder: Path) -> str:
    """Return what a folder holds: "run", "demo" or "experiment"."""
    experiment = ("grid.toml", "complexity.json", "table.json")
    marks = {"run": ("run.json",), "demo": ("demo.json",), "experiment": experiment}
    for kind, names in marks.items():
        if any((folder / name).is_file() for name in names):
            return kind
    from ...runs.description import is_head

    if is_head(folder):
        raise ValueError(f"{folder} holds a head on features, which has no page; `sohot info {folder}` describes it")
    raise ValueError(f"{folder} holds no run (run.json), demo (demo.json) or experiment (grid.toml)")


def _figure_folder(folder: Path, figures: Path, images: int) -> Path:
    if (kind := kind_of(folder)) != "run":
        raise ValueError(f"figures are drawn only for a run; {folder} holds a {kind}, which has its pictures already")
    if not images:
        raise ValueError("figures of features need the images of the run: images must not be 0")
    if figures.exists() and not figures.is_dir():
        raise NotADirectoryError(f"figures must be a folder, but {figures} is a file")
    return figures


def _page(folder: Path, images: int, progress: Progress | None, figures: Path | None, trust: bool) -> Page:
    kind = kind_of(folder)
    if kind == "run":
        from ...runs.description import values_of
        from .run_page import run_page

        with values_of(folder):
            return run_page(folder, images, progress, figures, trust)
    if kind == "demo":
        from .demo_page import demo_page

        return demo_page(folder)
    from ..complexity import complexity_page, find_complexity
    from .experiment_page import experiment_page

    measured = find_complexity(folder)
    return experiment_page(folder) if measured is None else complexity_page(folder, measured)


def render(page: Page) -> str:
    """Write a report as HTML.

    All text is escaped. Scripts run only if the page's policy lists their hash, and the policy forbids the network, so
    even a name that escaped escaping could neither run nor load anything.

    >>> "&lt;b&gt;" in render(Page("<b>", "run", ["It works."], [], []))
    True
    """
    plots = page.plots()
    figures = [plot.figure for plot in plots]
    scripts = {
        "begin": Markup(_BEGIN),
        "script": Markup(_asset("page.js")),
        "plotly": Markup(_plotly()) if plots else "",
    }
    template = _environment().from_string(_asset("page.html.j2"))
    return template.render(
        page=page,
        policy=_POLICY.format(scripts=" ".join(_hash(text) for text in scripts.values() if text)),
        style=Markup(_asset("page.css")),
        figures=Markup(script_json(figures)),
        numbers=_Numbers(plots),
        **scripts,
    )


def script_json(value: Any) -> str:
    r"""Write JSON that cannot end, or comment out, the script element that contains it.

    >>> script_json(["</script><!--"])
    '["\\u003c/script>\\u003c!--"]'
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


class _Numbers:
    """Numbers plots by their place on the page, even if two are equal."""

    def __init__(self, plots: list[Any]) -> None:
        self._places = {id(plot): place for place, plot in enumerate(plots)}

    def __getitem__(self, plot: Any) -> int:
        return self._places[id(plot)]


@cache
def _environment() -> Environment:
    return Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


@cache
def _asset(name: str) -> str:
    return (files(__package__) / "assets" / name).read_text(encoding="utf-8")


@cache
def _plotly() -> str:
    """Return plotly.js, which comes with the package plotly."""
    from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]

    return str(get_plotlyjs())


@cache
def _hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
