"""What all charts share: one look, colours all readers can tell apart, the same bytes for the same data."""

import io
import re
import warnings
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from ..._files import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#857a00", "#7f7f7f")
"""Colours that colour-blind readers can tell apart (Okabe and Ito), with olive for yellow, which fades on white."""
INK, SOFT, GRID, PAPER = "#1b1f24", "#565f6b", "#e6e9ee", "#ffffff"
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "p", "<")
LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)), (0, (3, 3)))
HATCHES = ("", "//", "..", "xx", "\\\\", "++", "oo", "--")

DOTS_PER_INCH = 200
_LOOK = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "text.parse_math": False,  # a dollar sign in a name starts no formula
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.4,
    "lines.markersize": 5,
}
_VARIABLES = {f"c{place}": colour for place, colour in enumerate(PALETTE)} | {
    "text": INK,
    "soft": SOFT,
    "grid": GRID,
    "ground": PAPER,
}
_COLOURS = {colour: f"var(--{name})" for name, colour in _VARIABLES.items()}
_LETTERS_PER_INCH = 14
P = ParamSpec("P")
R = TypeVar("R")


def chart(draw: Callable[P, R]) -> Callable[P, R]:
    """Let a function draw with our look; matplotlib's own settings are as before when it returns."""

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> R:
        import matplotlib

        with matplotlib.rc_context(_LOOK):
            return draw(*args, **kwargs)

    return drawn


def new_figure(width: float, height: float) -> "Figure":
    """Create a figure of a size in inches that needs no display and leaves pyplot's state alone."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=DOTS_PER_INCH, layout="constrained")


def save_figure(figure: "Figure", folder: Path, name: str, formats: Sequence[str] = ("png", "svg")) -> list[Path]:
    """Write `folder/name.png` and `.svg`, each atomically; the same figure gives the same bytes.

    Args:
        figure: The figure.
        folder: The folder; created if missing.
        name: The file name without its suffix.
        formats: "png", "svg" or both.

    Returns:
        The files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for form in formats:
        files.append(folder / f"{name}.{form}")
        write_atomically(files[-1], _content(figure, form, fonttype="path"))  # letters look the same everywhere
    return files


def page_svg(figure: "Figure", number: int, description: str) -> str:
    """Return a figure as an SVG element of a page, in the page's colours and letters, with text to select.

    Args:
        figure: The figure.
        number: Its place on the page: names inside the element differ from those of all others.
        description: What it shows, for readers who cannot see it.
    """
    from markupsafe import escape

    content = _content(figure, "svg", salt=f"sohot {number}", fonttype="none", transparent=True).decode()
    start = re.search(
        r'<svg [^>]*viewBox="0 0 ([\d.]+) ([\d.]+)"[^>]*>\s*<defs>\s*<style.*?</defs>', content, re.DOTALL
    )
    assert start is not None
    width, height = (round(float(points) * 96 / 72) for points in start.groups())
    body = re.sub(r"<[^>]*>", _restyle, content[start.end() :])
    size = f'viewBox="0 0 {start[1]} {start[2]}" width="{width}" height="{height}"'
    return f'<svg {size} style="min-width:{round(0.7 * width)}px" role="img" aria-label="{escape(description)}">{body}'


def _content(figure: "Figure", form: str, fonttype: str, salt: str = "sohot", **options: Any) -> bytes:
    import matplotlib

    nothing = ("Software",) if form == "png" else ("Date", "Creator", "Format", "Type")
    content = io.BytesIO()
    options |= {"metadata": dict.fromkeys(nothing), "bbox_inches": "tight", "pad_inches": 0.08}
    settings = {**_LOOK, "svg.hashsalt": salt, "svg.fonttype": fonttype}  # names of shapes in the file are hashes
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")  # of names in letters that matplotlib's font lacks
        figure.savefig(content, format=form, **options)
    return content.getvalue()


def _restyle(found: re.Match[str]) -> str:
    """Change one tag of an SVG: colours and letters of the page, no names of groups, coordinates to a hundredth."""
    tag = found[0]
    if tag.startswith("<g "):
        tag = re.sub(r' id="[^"]*"', "", tag)  # the same in every chart, and nothing refers to them
    tag = re.sub(r"#[0-9a-f]{6}(?=[;\"])", lambda colour: _COLOURS.get(colour[0], colour[0]), tag)
    tag = re.sub(r" font-family: [^;\"]*;", "", tag)
    tag = re.sub(r'(fill|stroke)="(var[^"]*)"', r'style="\1: \2"', tag)  # an attribute holds no variable
    return re.sub(r"(\.\d\d)\d+", r"\1", re.sub(r' transform="rotate\(-0 [^"]*"', "", tag))


def look(place: int) -> dict[str, Any]:
    """Return colour, marker and line style of the series at a place; series also differ without colour."""
    return {
        "color": PALETTE[place % len(PALETTE)],
        "marker": MARKERS[place % len(MARKERS)],
        "linestyle": LINES[place % len(LINES)],
    }


def plain(text: str, most: int = 60) -> str:
    r"""Prepare a name for a chart: one line without unprintable characters, shortened if it is long.

    >>> plain("a very long name\n of a class", 10)
    'a very lo…'
    """
    text = "".join(sign for sign in " ".join(text.split()) if sign.isprintable())
    return text if len(text) <= most else f"{text[: most - 1]}…"


def legend_below(figure: "Figure", axes: "Axes") -> None:
    """Put the legend of a panel below the figure, in as many columns as there is room for."""
    handles, names = axes.get_legend_handles_labels()
    longest = max(map(len, names), default=0) + 7
    columns = max(1, min(len(names), int(_LETTERS_PER_INCH * figure.get_figwidth()) // longest))
    figure.legend(handles, names, loc="outside lower center", ncols=columns)


def name_axis(axes: "Axes", names: Sequence[str], *, up: bool = False) -> None:
    """Write names at the places 0, 1, … of an axis, shortened if they are long, slanted if they are many."""
    shown = [plain(name, 40 if up else 22) for name in names]
    size = 8.5 if len(shown) <= 12 else 7.5
    if up:
        axes.set_yticks(range(len(shown)), shown, fontsize=size)
        return
    inches = axes.get_window_extent().width / axes.figure.dpi
    room = _LETTERS_PER_INCH * inches / max(len(shown), 1) - 1
    slant: dict[str, Any] = {"rotation": 55, "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks(range(len(shown)), shown, fontsize=size, **(slant if max(map(len, shown)) > room else {}))


def plain_log(axes: "Axes", *, x: Sequence[float] = (), y: bool = False) -> None:
    """Make axes logarithmic, with plain numbers as labels: the one across, which gets these ticks, and the one up."""
    from matplotlib.ticker import LogLocator, NullLocator

    if x:
        axes.set_xscale("log")
        axes.set_xticks(x, [f"{value:g}" for value in x])
        axes.set_xticks([], minor=True)
    if y:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_locator(NullLocator())


def hide_ticks(axes: "Axes") -> None:
    """Hide the ticks: positions along directions found in the data mean nothing."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[["top", "right"]].set_visible(True)
