"""Figures: a function for each draws it for files and for pages; those of experiments as PNG and SVG."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..._files import refuse_link, write_json
from ..._reading import read_json
from ...data.labelled import Progress
from ...data.pools import POOLS, SUPERVISED
from ...experiments.result import Attempt
from ..published import PublishedRow, published
from ..results import ResultRow, collect, shifts_of
from .canvas import chart, save_figure
from .classes import confusion_figure, confusion_of, weight_histograms
from .curves import SIGMAS, curve_figure, setting_figure, shots_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...experiments.grid import Grid

STAGE = "drawing figures"
WRITTEN = ".written.json"
"""Names of the files that were drawn last, beside them: what a later grid no longer has can be removed."""
Named = Iterator[tuple[str, Callable[[], "Figure | None"]]]


def write_figures(records: Iterable[Attempt], grid: "Grid", out: Path, progress: Progress | None = None) -> list[Path]:
    """Draw the figures that a grid asks for, as far as its records allow, and remove those of an earlier grid.

    Args:
        records: Records as the store returns them.
        grid: The grid that they belong to; its `figures` name what to draw.
        out: Folder of the experiment; the files go to `out/figures`, each as .png and .svg: zeta; shots, sigma and
            curves with the name of the shift; confusion with shift and method; the pool last, if there are several.
        progress: Called with the number drawn.

    Returns:
        The files.
    """
    named = list(_named(list(records), grid))
    files: list[Path] = []
    for number, (name, draw) in enumerate(named, start=1):
        figure = draw()
        if figure is not None:
            files += save_figure(figure, refuse_link(out / "figures"), name)
        if progress is not None:
            progress(STAGE, number, len(named))
    _replace_written(refuse_link(out / "figures"), [file.name for file in files])
    return files


def published_on(grid: "Grid", shift: str) -> list[PublishedRow]:
    """Return the published numbers that a grid names, on a shift."""
    return [row for row in published(grid.published) if row.shift == shift] if grid.published else []


def _named(records: Sequence[Attempt], grid: "Grid") -> Named:
    shifts = shifts_of(records, grid)
    for part in grid.by_pool():
        rows, (pool,) = collect(records, part), part.pool
        for kind in grid.figures:
            for name, draw in _DRAWERS[kind](rows, shifts, part):
                yield f"{name}-{pool}" if len(grid.pool) > 1 else name, partial(_captioned, draw, pool)


@chart
def _captioned(draw: Callable[[], "Figure | None"], pool: str) -> "Figure | None":
    """Draw a figure and say what the unlabelled target images are, if there are any."""
    figure = draw()
    if figure is not None and pool != SUPERVISED:
        caption = f"{pool}: {POOLS[pool]}"
        figure.suptitle("\n".join(filter(None, [figure.get_suptitle(), caption])), fontsize=10)
    return figure


def _replace_written(folder: Path, names: list[str]) -> None:
    """Remove what was drawn before and is not now; files that we did not draw stay."""
    try:
        stale = {str(name) for name in read_json(folder / WRITTEN)} - {*names}
    except (OSError, ValueError, TypeError):  # there is no list, or not one of ours
        stale = set()
    for file in [*folder.glob("*.png"), *folder.glob("*.svg")]:  # nothing else, whatever the list says
        if file.name in stale:
            file.unlink()
    if names or stale:
        write_json(folder / WRITTEN, names)


def _zeta(rows: Sequence[ResultRow], _shifts: Sequence[str], _grid: "Grid") -> Named:
    yield "zeta", partial(weight_histograms, rows)


def _shots(rows: Sequence[ResultRow], shifts: Sequence[str], grid: "Grid") -> Named:
    for shift in shifts:
        yield f"shots-{_file_name(shift)}", partial(shots_figure, rows, shift, published_on(grid, shift))


def _sigma(rows: Sequence[ResultRow], shifts: Sequence[str], _grid: "Grid") -> Named:
    for shift in shifts:
        yield f"sigma-{_file_name(shift)}", partial(setting_figure, rows, SIGMAS, shift)


def _curves(rows: Sequence[ResultRow], shifts: Sequence[str], _grid: "Grid") -> Named:
    for shift in shifts:
        yield f"curves-{_file_name(shift)}", partial(curve_figure, rows, shift)


def _confusion(rows: Sequence[ResultRow], shifts: Sequence[str], _grid: "Grid") -> Named:
    for shift in shifts:
        for row in rows:
            confusion = confusion_of(row, shift)
            if confusion is not None:
                splits = sum(of == shift for of, _ in row.done)
                title = f"{row.label}, {shift}, {splits} {'split' if splits == 1 else 'splits'}"
                yield (
                    f"confusion-{_file_name(shift)}-{_file_name(row.label)}",
                    partial(confusion_figure, *confusion, title),
                )


_DRAWERS: Mapping[str, Callable[[Sequence[ResultRow], Sequence[str], "Grid"], Named]] = {
    "zeta": _zeta,
    "shots": _shots,
    "sigma": _sigma,
    "curves": _curves,
    "confusion": _confusion,
}


def _file_name(text: str) -> str:
    """Turn a name into one that every system accepts for a file.

    >>> _file_name("so+zeta, sigma1 = 0.1")
    'so+zeta_sigma1=0.1'
    """
    text = text.replace(", ", "_").replace(" ", "")
    return "".join(sign if sign.isalnum() or sign in "+-=._" else "_" for sign in text)[:100]
