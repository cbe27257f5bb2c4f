"""The plots of reports, as plain data for plotly.js; colours "@0" … refer to the page's palette, light or dark."""

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

from . import plots
from .blocks import Plot

Figure = dict[str, Any]
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
ABOVE = {"y": 1.02, "yanchor": "bottom"}
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


def heat_map(counts: Sequence[Sequence[int]], names: Sequence[str], shown: Sequence[int]) -> Figure:
    """Draw some rows and columns of a confusion matrix: colours are shares of a whole row, hovering shows counts."""
    totals = [sum(counts[i]) for i in shown]
    shares = [
        [round(counts[i][j] / total, 4) if total else None for j in shown]
        for i, total in zip(shown, totals, strict=True)
    ]
    told = [
        [[label(names[i]), label(names[j]), counts[i][j], total] for j in shown]
        for i, total in zip(shown, totals, strict=True)
    ]
    places = list(range(len(shown)))
    few = len(shown) <= 12
    trace = {
        "type": "heatmap",
        "x": places,
        "y": places,
        "z": shares,
        "customdata": told,
        "zmin": 0,
        "zmax": 1,
        "xgap": 1,
        "ygap": 1,
        "colorscale": [[0, "@scalea"], [1, "@scaleb"]],
        "showscale": not few,
        "colorbar": {"title": {"text": "share"}, "tickformat": ".0%", "thickness": 10, "len": 0.6, "outlinewidth": 0},
        "hovertemplate": "true %{customdata[0]}<br>predicted %{customdata[1]}<br>%{customdata[2]} of %{customdata[3]}"
        " (%{z:.0%})<extra></extra>",
        **({"text": [[str(counts[i][j] or "") for j in shown] for i in shown]} if few else {}),
        **({"texttemplate": "%{text}"} if few else {}),
    }
    axis = {**_named([names[i] for i in shown]), "showgrid": False}
    across = {**axis, "title": {"text": "predicted class"}}
    up = {**axis, "tickangle": 0, "title": {"text": "true class"}, "autorange": "reversed"}
    return {"data": [trace], "layout": {"xaxis": across, "yaxis": up}}


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
    layout = {"xaxis": _named(names), "yaxis": {"title": {"text": label(y)}}, "shapes": [_across(1.0)]}
    return {"data": data, "layout": {**layout, "showlegend": True, "legend": ABOVE}}


def _named(names: Sequence[str]) -> Figure:
    """Make an axis of names; positions are numbers, so that equal names stay apart."""
    few = len(names) <= 12
    ticks = {"tickvals": list(range(len(names))), "ticktext": [label(short(name)) for name in names]}
    return {
        **ticks,
        **({} if few else {"tickangle": -60}),
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


def cloud(points: Sequence[Sequence[float]], classes: Sequence[str], domains: Sequence[str]) -> Figure:
    """Draw points in the plane: colours show classes, markers show domains."""
    data = []
    for place, name in enumerate(dict.fromkeys(classes)):
        for mark, domain in zip(("circle-open", "x-thin"), dict.fromkeys(domains), strict=False):
            rows = [row for row in range(len(points)) if (classes[row], domains[row]) == (name, domain)]
            data.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": label(short(name)),
                    "legendgroup": label(name),
                    "showlegend": mark == "circle-open",
                    "x": [round(float(points[row][0]), 4) for row in rows],
                    "y": [round(float(points[row][1]), 4) for row in rows],
                    "text": [f"{label(name)}<br>{label(domain)}"] * len(rows),
                    "marker": {
                        "symbol": mark,
                        "size": 8,
                        "color": colour(place),
                        "line": {"color": colour(place), "width": 1.8},
                    },
                    "hovertemplate": "%{text}<extra></extra>",
                }
            )
    bare = {"showticklabels": False, "zeroline": False, "showgrid": False, "ticks": ""}
    return {"data": data, "layout": {"xaxis": bare, "yaxis": bare, "showlegend": True, "legend": {"y": -0.04}}}


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


MOST = 60
"""With more classes than this, only those with the most mistakes are shown."""


def confusion_plot(confusion: Sequence[Sequence[int]], names: Sequence[str], title: str) -> Plot:
    """Draw a confusion matrix.

    Args:
        confusion: Images by true class (first) and predicted class.
        names: Names of the classes.
        title: Heading of the plot.
    """
    right = sum(row[place] for place, row in enumerate(confusion))
    told = f"{right:,} of {sum(map(sum, confusion)):,} images are on the diagonal"
    shown = most_mistaken(confusion, MOST)
    which = f"{len(names)} classes" if len(shown) == len(names) else f"the {MOST} most confused of {len(names)} classes"
    size = len(shown)
    return Plot(
        plots.heat_map(confusion, names, shown),
        title,
        f"Confusion matrix of {which}: rows are true classes, columns are predictions; {told}.",
        height=max(300, min(1200, 150 + 20 * size)),
        least_width=0 if size <= 12 else 190 + 16 * size,
    )


def most_mistaken(confusion: Sequence[Sequence[int]], most: int) -> list[int]:
    """Choose the classes involved in the most mistakes, in class order.

    >>> most_mistaken([[5, 0, 2], [0, 9, 0], [1, 0, 7]], 2)
    [0, 2]
    """
    places = range(len(confusion))
    mistakes = [sum(confusion[i]) + sum(row[i] for row in confusion) - 2 * confusion[i][i] for i in places]
    return sorted(sorted(places, key=lambda place: -mistakes[place])[:most])
