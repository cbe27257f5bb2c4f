"""The report of a demo."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ... import __version__
from ...experiments.demo import read_demo
from ...experiments.grid import BASELINE
from ..statistics import paired_difference
from . import plots
from .blocks import Block, Entry, Fact, Gallery, Listing, Page, Pairs, Plot, Section, Side, Table, Words, number
from .pictures import embed_figures
from .words import count, differences_in_words, method_in_words, pairs_of

_CAPTIONS = {
    "samples.png": "Digits of both domains: printed ones to learn from, and all handwritten ones that are labelled",
    "scatters.png": "Features of both domains in the plane, before training, without and with alignment",
    "zeta.png": "Learned weights of each digit: how strongly its domains are aligned",
}
_DIGITS = [str(digit) for digit in range(10)]


def demo_page(folder: Path) -> Page:
    """Put together the report of a demo."""
    demo = read_demo(folder)
    try:
        methods, settings = demo["methods"], demo["settings"]
        differences = {name: _difference(name, methods) for name in methods if name != BASELINE}
        best = max(methods, key=lambda name: methods[name]["mean"])
        sections = [
            Section("Accuracy", [_table(methods, differences), _dots(methods)]),
            *_picture_sections(folder, demo["pictures"]),
            *_curve_sections(demo["first_split"]),
            Section("Configuration", [Pairs(pairs_of({**settings, **demo["versions"]}))]),
            Section("Repeat it", [_command(demo["command"])]),
        ]
        facts = _facts(demo, best)
        summary = _summary(methods, settings, differences)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{folder / 'demo.json'} is damaged: {error!r}") from None
    return Page(
        "From printed to handwritten digits", "demo", summary, facts, sections, f"Written by sohot {__version__}"
    )


def _difference(name: str, methods: Mapping[str, Any]) -> dict[str, Any] | None:
    """Compare with the baseline split by split: both have the same images and the same first weights."""
    if BASELINE not in methods:
        return None
    mine, its = (dict(enumerate(methods[one]["splits"])) for one in (name, BASELINE))
    found = paired_difference(mine, its)
    return None if found is None else found.as_json()


def _summary(methods: Mapping[str, Any], settings: Mapping[str, Any], differences: Mapping[str, Any]) -> list[str]:
    splits = count(settings["splits"], "random split")
    first = (
        f"A small network learned digits from {count(10 * settings['source_per_class'], 'printed image')} and "
        f"{settings['shots']} handwritten ones of each digit, by {count(len(methods), 'method')} on {splits}, and was "
        "tested on handwritten digits that it never saw."
    )
    means = {name: values["mean"] for name, values in methods.items()}
    return [first, differences_in_words(means, BASELINE, differences)]


def _facts(demo: Mapping[str, Any], best: str) -> list[Fact]:
    methods, settings = demo["methods"], demo["settings"]
    facts = [Fact(f"{methods[best]['mean']:.1f} %", "highest accuracy", f"{best}, ± {methods[best]['std']:.1f}")]
    if BASELINE in methods and best != BASELINE:
        base = methods[BASELINE]
        facts.append(Fact(f"{base['mean']:.1f} %", "nothing aligned", f"{BASELINE}, ± {base['std']:.1f}"))
    facts.append(Fact(str(settings["splits"]), "splits", "± is the spread over them"))
    return [*facts, Fact(f"{demo['seconds']:.0f} s", "time", f"{settings['steps']} steps each")]


def _table(methods: Mapping[str, Any], differences: Mapping[str, Any]) -> Table:
    rows: list[list[Entry]] = []
    for name, values in methods.items():
        one = differences.get(name)
        ends = [None, None] if one is None else [one["low"], one["high"]]
        gain = number(None if one is None else one["mean"], sign=True)
        entries = [number(values["mean"]), number(values["std"]), gain, *(number(end, sign=True) for end in ends)]
        rows.append([name, *entries, method_in_words(name)])
    columns = ["method", "accuracy %", "± std", f"against {BASELINE}", "from", "to", "what it does"]
    caption = f"Mean over the splits, and the difference to {BASELINE} split by split with its 95 % interval, in points"
    marked = frozenset(place for place, name in enumerate(methods) if name == BASELINE)
    return Table(caption, columns, rows, marked)


def _dots(methods: Mapping[str, Any]) -> Plot:
    told = {
        f"split {split + 1}": [(name, values["splits"][split], name) for name, values in methods.items()]
        for split in range(len(next(iter(methods.values()))["splits"]))
    }
    lowest = min(min(values["splits"]) for values in methods.values())
    highest = max(max(values["splits"]) for values in methods.values())
    what = f"Accuracy of each method on each split, between {lowest:.1f} and {highest:.1f} %."
    return Plot(plots.dots(told, "%"), "Every split", what, 400)


def _picture_sections(folder: Path, names: list[str]) -> list[Section]:
    files = [folder / Path(name).name for name in names]
    pictures, left_out = embed_figures(files, _CAPTIONS)
    blocks: list[Block] = [Gallery(pictures, wide=True)] if pictures else []
    if left_out:
        blocks.append(Words(f"Not there any more, or too large for a page: {', '.join(left_out)}.", True))
    return [Section("Pictures", blocks)] if blocks else []


def _curve_sections(first: Mapping[str, Any]) -> list[Section]:
    parts = {"cross_entropy": "Cross-entropy", "alignment": "Alignment"}
    drawn = []
    for part, title in parts.items():
        series = {
            name: (one["curve"]["step"], one["curve"][part]) for name, one in first.items() if one["curve"].get(part)
        }
        if series:
            figure = plots.lines(series, "step", part.replace("_", "-"))
            drawn.append(Plot(figure, title, f"{title} of each method over the steps of the first split."))
    sections = [Section("Training", [Side(drawn)])] if drawn else []
    learned = {
        f"{name}, {'means' if part == 'means' else part.replace('order', 'order ')}": values
        for name, one in first.items()
        for part, values in (one["zeta"] or {}).items()
    }
    if learned:
        what = "Weights of each digit at the end of the first split; all begin at 1."
        plot = Plot(plots.weights(learned, _DIGITS, "weight"), "ζ of each digit", what, 400)
        sections.append(Section("Learned class weights", [plot]))
    return sections


def _command(command: str | None) -> Block:
    if command is None:
        return Words("It was run from a program with a number of steps of its own, so no command repeats it.")
    return Listing(command, "The command that does the same again:")
