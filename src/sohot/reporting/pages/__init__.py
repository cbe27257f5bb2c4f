"""Reports: a run, a demo or an experiment as one HTML page."""

from os import PathLike
from pathlib import Path

from ..._files import write_atomically
from ...data.labelled import Progress
from ...functional.plain_checks import check_count
from .blocks import Page
from .html import render

__all__ = ["kind_of", "write_report"]

NAME = "report.html"
IMAGES = 24


def write_report(
    path: str | PathLike[str],
    out: str | PathLike[str] | None = None,
    *,
    images: int = IMAGES,
    figures: str | PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Path:
    """Write what is in a folder as one HTML page that needs no network and nothing beside it.

    Args:
        path: Folder of a run, a demo or an experiment, finished or not.
        out: The file to write; None for report.html in that folder.
        images: How many sample images of a run to show; 0 to read no images.
        figures: For a run: a folder for its figures as PNG and SVG files, made if it is not there: the confusion
            matrix, and the features of both domains before and after training (points and ellipses of classes).
        progress: Told what is being done, how many images are done, and of how many.

    Returns:
        The file.

    Raises:
        FileNotFoundError: There is no such folder, or no folder for `out`.
        ValueError: It is none of these folders, or an argument is wrong.
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
    write_atomically(file, render(_page(folder, images, progress, drawn)).encode())
    return file


def kind_of(folder: Path) -> str:
    """Tell what a folder holds: "run", "demo" or "experiment"."""
    experiment = ("results.sqlite", "grid.toml", "complexity.json", "table.json")
    marks = {"run": ("run.json",), "demo": ("demo.json",), "experiment": experiment}
    for kind, names in marks.items():
        if any((folder / name).is_file() for name in names):
            return kind
    raise ValueError(
        f"{folder} holds neither a run (run.json), nor a demo (demo.json), nor an experiment (results.sqlite)"
    )


def _figure_folder(folder: Path, figures: Path, images: int) -> Path:
    if (kind := kind_of(folder)) != "run":
        raise ValueError(f"figures are drawn of a run; {folder} holds a {kind}, whose pictures lie there already")
    if not images:
        raise ValueError("figures of features need the images of the run: leave images=0 out")
    if figures.exists() and not figures.is_dir():
        raise NotADirectoryError(f"figures must be a folder, but {figures} is a file")
    return figures


def _page(folder: Path, images: int, progress: Progress | None, figures: Path | None) -> Page:
    kind = kind_of(folder)
    if kind == "run":
        from .run_page import run_page

        return run_page(folder, images, progress, figures)
    if kind == "demo":
        from .demo_page import demo_page

        return demo_page(folder)
    from ..complexity import complexity_page, find_complexity
    from .experiment_page import experiment_page

    measured = find_complexity(folder)
    return experiment_page(folder) if measured is None else complexity_page(folder, measured)
