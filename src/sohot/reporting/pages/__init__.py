"""Reports: a run, a demo or an experiment as one self-contained HTML page."""

import base64
import hashlib
from functools import cache
from importlib.resources import files
from itertools import count
from os import PathLike
from pathlib import Path

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from ..._files import write_atomically
from ..._outputs import write_output
from ...data.labelled import Progress
from ...functional.plain_checks import check_count
from ..figures.canvas import page_svg
from .blocks import Page

__all__ = ["kind_of", "render", "write_report"]

_POLICY = (
    "default-src 'none'; script-src {script}; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)

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
            matrix, how far its confidence can be trusted, and the features of both domains before and after training.
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
    experiment = ("grid.toml", "table.json")
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
    return experiment_page(folder) if measured is None else complexity_page(measured)


def render(page: Page) -> str:
    """Write a report as HTML.

    All text is escaped. Only the script whose hash is in the page's policy runs, and the policy forbids the network, so
    even a name that escaped escaping could neither run nor load anything.

    >>> "&lt;b&gt;" in render(Page("<b>", "run", ["It works."], [], []))
    True
    """
    template, script = _environment().from_string(_asset("page.html.j2")), _asset("page.js")
    numbers = count()
    return template.render(
        page=page,
        policy=_POLICY.format(script=_hash(script)),
        style=Markup(_asset("page.css")),
        script=Markup(script),
        drawn=lambda chart: Markup(page_svg(chart.figure, next(numbers), chart.description)),
    )


@cache
def _environment() -> Environment:
    return Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


@cache
def _asset(name: str) -> str:
    return (files(__package__) / "assets" / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
