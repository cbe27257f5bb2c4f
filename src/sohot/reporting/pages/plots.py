"""The plots of reports, as plain data for plotly.js; colours "@0" … refer to the page's palette, light or dark."""

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

Figure = dict[str, Any]
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
ABOVE = {"y": 1.02, "yanchor": "bottom"}
FEW = 12
"""So many names fit on an axis in a large font, and so many rows of a matrix have room for numbers."""
PATTERNS = ("", "/", ".", "x")
MARKS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "hexagon")


def label(text: object) -> str:
    """Escape a name for plotly.js, which interprets some HTML in texts.

    >>> label("<b>mug</b>")
    '&lt;b&gt;mug&lt;/b&gt;'
    """
    return html.escape(str(text), quote=False)


def short(name: str, most: int = 22) -> str:
    """Shorten a name for an axis.

    >>> short("a very long name of a class indeed")
    'a very long name of a…'
    """
    return name if len(name) <= most else f"{name[: most - 1].rstrip()}…"


def colour(place: int) -> str:
    """Return the colour at a place of the palette.

    >>> colour(9)
    '@1'
    """
    return f"@{place % 8}"


def lines(
    series: Mapping[str, tuple[Sequence[float], Sequence[float | None]]], x: str, y: str, *, log: bool = False
) -> Figure:
    """Draw curves by name, told apart by colour and dashes."""
    data = [
        {
            "type": "scatter",
            "mode": "lines" if len(across) > 1 else "markers",
            "name": label(name),
            "x": list(across),
            "y": finite(up),
            "line": {"color": colour(place), "width": 2, "dash": DASHES[place % len(DASHES)]},
            "marker": {"color": colour(place)},
            "hovertemplate": f"%{{fullData.name}}<br>{label(x)} %{{x}}<br>{label(y)} %{{y:.4g}}<extra></extra>",
        }
        for place, (name, (across, up)) in enumerate(series.items())
    ]
    axis = {"title": {"text": label(y)}, **({"type": "log"} if log else {"rangemode": "tozero"})}
    return {
        "data": data,
        "layout": {"xaxis": {"title": {"text": label(x)}}, "yaxis": axis, "showlegend": len(data) > 1},
    }


def against_diagonal(series: Mapping[str, Sequence[tuple[float, float, str, float]]], x: str, y: str) -> Figure:
    """Draw per cent against per cent, with a line where both are equal: (x, y, hover text, size of the mark)."""
    data = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": label(name),
            "x": finite([one[0] for one in points]),
            "y": finite([one[1] for one in points]),
            "customdata": [label(one[2]) for one in points],
            "line": {"color": colour(place), "width": 1.2, "dash": DASHES[place % len(DASHES)]},
            "marker": {
                "color": colour(place),
                "symbol": MARKS[place % len(MARKS)],
                "size": finite([one[3] for one in points]),
                "opacity": 1,
            },
            "zorder": -place,  # the first series is the one to look at
            "hovertemplate": "%{fullData.name}<br>%{customdata}<extra></extra>",
        }
        for place, (name, points) in enumerate(series.items())
    ]
    axis = {"range": [0, 103], "zeroline": False}  # a little more than 100, so that marks there are whole
    equal = {"type": "line", "x0": 0, "x1": 100, "y0": 0, "y1": 100, "line": _across(0)["line"]}
    axes = {"xaxis": {**axis, "title": {"text": label(x)}}, "yaxis": {**axis, "title": {"text": label(y)}}}
    return {"data": data, "layout": {**axes, "shapes": [equal], "showlegend": len(data) > 1, "legend": ABOVE}}


def weights(series: Mapping[str, Sequence[float | None]], names: Sequence[str], y: str) -> Figure:
    """Draw the values of every name as markers in one column, with a line at 1."""
    data = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": label(name),
            "x": list(range(len(names))),
            "y": finite(values),
            "customdata": [label(one) for one in names],
            "marker": {"color": colour(place), "symbol": MARKS[place % len(MARKS)], "size": 9},
            "hovertemplate": "%{customdata}<br>%{fullData.name}: %{y:.4g}<extra></extra>",
        }
        for place, (name, values) in enumerate(series.items())
    ]
    layout = {"xaxis": named_axis(names), "yaxis": {"title": {"text": label(y)}}, "shapes": [_across(1.0)]}
    return {"data": data, "layout": {**layout, "showlegend": True, "legend": ABOVE}}


def named_axis(names: Sequence[str]) -> Figure:
    """Make an axis of names; positions are numbers, so that equal names stay apart."""
    few = len(names) <= FEW
    ticks = {"tickvals": list(range(len(names))), "ticktext": [label(short(name)) for name in names]}
    return {
        **ticks,
        **({} if few else {"tickangle": -60}),
        "ticklabeloverflow": "allow",  # or plotly.js leaves out a name that does not fit
        "zeroline": False,
        "tickfont": {"size": 12 if few else 10},
    }


def histograms(series: Mapping[str, Sequence[float]], x: str) -> Figure:
    """Draw overlaid histograms."""
    every = [value for values in series.values() for value in finite(values) if value is not None]
    width = max((max(every, default=1) - min(every, default=0)) / 24, 1e-3)
    data = [
        {
            "type": "histogram",
            "name": label(name),
            "x": finite(values),
            "opacity": 0.65,
            "xbins": {"size": width},
            "marker": {"color": colour(place)},
            "hovertemplate": "%{fullData.name}<br>%{x}: %{y} classes<extra></extra>",
        }
        for place, (name, values) in enumerate(series.items())
    ]
    axes = {"xaxis": {"title": {"text": label(x)}}, "yaxis": {"title": {"text": "classes"}}}
    return {"data": data, "layout": {"barmode": "overlay", **axes, "showlegend": len(data) > 1}}


def bars(series: Mapping[str, Sequence[float | None]], names: Sequence[str], y: str) -> Figure:
    """Draw the values of every name as bars side by side."""
    data = [
        {
            "type": "bar",
            "name": label(name),
            "x": list(range(len(names))),
            "y": finite(values),
            "customdata": [label(one) for one in names],
            "marker": {"color": colour(place), "pattern": {"shape": PATTERNS[place % len(PATTERNS)]}},
            "hovertemplate": f"%{{customdata}}<br>%{{fullData.name}}: %{{y:.3g}} {label(y)}<extra></extra>",
        }
        for place, (name, values) in enumerate(series.items())
    ]
    axes = {"xaxis": named_axis(names), "yaxis": {"title": {"text": label(y)}, "rangemode": "tozero"}}
    return {"data": data, "layout": {"barmode": "group", **axes, "showlegend": len(data) > 1, "legend": ABOVE}}


def dots(series: Mapping[str, Sequence[tuple[str, float, str]]], y: str) -> Figure:
    """Draw values in columns: for each name (place on the axis, value, hover text)."""
    data = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": label(name),
            "x": [label(place) for place, _, _ in points],
            "y": [value for _, value, _ in points],
            "customdata": [label(told) for _, _, told in points],
            "marker": {"color": colour(number), "symbol": MARKS[number % len(MARKS)], "size": 9, "opacity": 0.85},
            "hovertemplate": f"%{{customdata}}<br>%{{fullData.name}}: %{{y:.1f}} {label(y)}<extra></extra>",
        }
        for number, (name, points) in enumerate(series.items())
    ]
    values = [value for points in series.values() for _, value, _ in points]
    room = max(1.0, 0.08 * (max(values) - min(values)))
    up = {"title": {"text": label(y)}, "range": [min(values) - room, max(values) + room]}
    axes = {"xaxis": {"type": "category"}, "yaxis": up}
    return {"data": data, "layout": {**axes, "scattermode": "group", "scattergap": 0.35, "showlegend": True}}


PARTS = {
    "source": ("circle-open", "source, trained on"),
    "target": ("star", "target, trained on"),
    "test": ("x-thin", "target, unseen"),
    "pool": ("triangle-up-open", "target, unlabelled"),
}
"""Marks of the images of a run in a plot of their features, and what they mean."""


def cloud(
    points: Sequence[Sequence[float]], classes: Sequence[str], parts: Sequence[str], names: Sequence[str]
) -> Figure:
    """Draw points in the plane: colours show classes, in the order of `names`, and marks show parts of the data."""
    shown = [part for part in PARTS if part in parts]
    data = []
    for part in sorted(shown, key=lambda part: part == "target"):  # the few stars lie above all others
        for place, name in enumerate(names):
            rows = [row for row in range(len(points)) if (classes[row], parts[row]) == (name, part)]
            x, y = ([round(float(points[row][axis]), 4) for row in rows] for axis in (0, 1))
            words = f"{label(name)}<br>{PARTS[part][1]}"
            data.append({**_points(x, y, _mark(part, colour(place))), "legendgroup": label(name), "text": words})
    keys = [
        {**_points([None], [None], {"color": colour(place), "size": 9}), "name": label(short(name))}
        | {"legendgroup": label(name), "showlegend": True}
        for place, name in enumerate(names)
    ]
    keys += [
        {**_points([None], [None], _mark(part, "@soft")), "name": PARTS[part][1], "showlegend": True} for part in shown
    ]
    bare = {"showticklabels": False, "zeroline": False, "showgrid": False, "ticks": ""}
    legend = {"y": -0.04, "traceorder": "normal"}
    return {"data": data + keys, "layout": {"xaxis": bare, "yaxis": bare, "showlegend": True, "legend": legend}}


def _points(x: Sequence[float | None], y: Sequence[float | None], marker: Figure) -> Figure:
    place = {"type": "scatter", "mode": "markers", "x": x, "y": y, "marker": marker}
    return {**place, "showlegend": False, "hovertemplate": "%{text}<extra></extra>"}


def _mark(part: str, paint: str) -> Figure:
    symbol, _ = PARTS[part]
    if symbol == "star":
        return {"symbol": symbol, "size": 12, "color": paint, "line": {"color": "@text", "width": 1.2}}
    return {"symbol": symbol, "size": 8, "color": paint, "line": {"color": paint, "width": 1.8}}


def intervals(
    names: Sequence[str], values: Sequence[tuple[float, float, float]], told: Sequence[str], x: str
) -> Figure:
    """Draw differences with their intervals, and a line at 0."""
    trace = {
        "type": "scatter",
        "mode": "markers",
        "x": [middle for middle, _, _ in values],
        "y": [label(name) for name in names],
        "customdata": [label(one) for one in told],
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [high - middle for middle, _, high in values],
            "arrayminus": [middle - low for middle, low, _ in values],
            "color": "@0",
            "thickness": 2,
            "width": 5,
        },
        "marker": {"size": 10, "color": "@0"},
        "hovertemplate": "%{y}<br>%{customdata}<extra></extra>",
    }
    axes = {
        "xaxis": {"title": {"text": label(x)}, "zeroline": False},
        "yaxis": {"type": "category", "autorange": "reversed"},
    }
    return {"data": [trace], "layout": {**axes, "shapes": [_upright(0)]}}


def _across(y: float) -> Figure:
    line = {"color": "@soft", "width": 1, "dash": "dot"}
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y, "line": line}


def _upright(x: float) -> Figure:
    line = {"color": "@soft", "width": 1, "dash": "dot"}
    return {"type": "line", "yref": "paper", "y0": 0, "y1": 1, "x0": x, "x1": x, "line": line}


def finite(values: Sequence[float | None]) -> list[float | None]:
    """Round numbers to five digits; None for what JSON cannot hold.

    >>> finite([1.23456, float("nan"), None])
    [1.2346, None, None]
    """
    return [float(f"{value:.5g}") if value is not None and math.isfinite(value) else None for value in values]
