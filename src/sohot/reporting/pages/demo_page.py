"""The report of a demo."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from ... import __version__
from ...experiments.demo_result import DemoSettings, FirstSplit, SavedDemo, SplitAccuracies, read_demo
from ...experiments.grid import BASELINE
from ..figures.comparison import split_figure
from ..figures.curves import lines_figure
from ..statistics import PairedDifference, paired_difference
from .blocks import (
    Block,
    Chart,
    Entry,
    Fact,
    Gallery,
    Listing,
    Number,
    Page,
    Pairs,
    Points,
    Section,
    Side,
    Table,
    Words,
    embed_pictures,
    number,
)
from .words import count, differences_in_words, method_in_words, pairs_of, points

_CAPTIONS = {
    "samples.png": "Digits of both domains: some of the printed ones and all labelled handwritten ones",
    "scatters.png": "Features of both domains in the plane: before training, and after it without and with alignment",
    "zeta.png": "Learned weights of each digit: how strongly it is aligned between the domains",
}
Methods = Mapping[str, SplitAccuracies]
Differences = Mapping[str, PairedDifference | None]


def demo_page(folder: Path) -> Page:
    """Build the report of a demo."""
    demo = read_demo(folder)
    methods, settings = demo.result.methods, demo.settings
    differences = {name: _difference(name, methods) for name in methods if name != BASELINE}
    sections = [
        Section("Accuracy", [_table(methods, differences), _explanations(methods), _splits(methods)]),
        *_picture_sections(folder, demo.result.pictures),
        *_curve_sections(demo.first_split),
        Section("Configuration", [Pairs(pairs_of({**asdict(settings), **demo.versions}))]),
        Section("Repeat it", [_command(demo.command)]),
    ]
    title, summary = "From printed to handwritten digits", _summary(methods, settings, differences)
    return Page(title, "demo", summary, _facts(demo), sections, f"Written by sohot {__version__}")


def _difference(name: str, methods: Methods) -> PairedDifference | None:
    """Compare with the baseline split by split: both have the same images and initial weights."""
    if BASELINE not in methods:
        return None
    mine, its = (dict(enumerate(methods[one].splits)) for one in (name, BASELINE))
    return paired_difference(mine, its)


def _summary(methods: Methods, settings: DemoSettings, differences: Differences) -> list[str]:
    splits = count(settings.splits, "random split")
    first = (
        f"A small network was trained on {count(10 * settings.source_per_class, 'printed image')} and {settings.shots} "
        f"handwritten images of each digit, with {count(len(methods), 'method')} on {splits}, and tested on unseen "
        "handwritten digits."
    )
    means = {name: values.mean for name, values in methods.items()}
    return [first, differences_in_words(means, BASELINE, differences)]


def _facts(demo: SavedDemo) -> list[Fact]:
    methods, settings = demo.result.methods, demo.settings
    best = max(methods, key=lambda name: methods[name].mean)
    facts = [Fact(f"{methods[best].mean:.1f} %", "highest accuracy", f"{best}, ± {methods[best].std:.1f}")]
    if BASELINE in methods and best != BASELINE:
        base = methods[BASELINE]
        facts.append(Fact(f"{base.mean:.1f} %", "nothing aligned", f"{BASELINE}, ± {base.std:.1f}"))
    facts.append(Fact(str(settings.splits), "splits", "± is the spread over them"))
    return [*facts, Fact(f"{demo.result.seconds:.0f} s", "time", f"{settings.steps} steps each")]


def _table(methods: Methods, differences: Differences) -> Table:
    rows: list[list[Entry]] = []
    for name, values in methods.items():
        one = differences.get(name)
        gain = number(None if one is None else one.mean, sign=True)
        rows.append([name, number(values.mean), number(values.std), gain, _interval(one)])
    columns = ["method", "accuracy %", "± std", f"against {BASELINE}", "95 % interval"]
    caption = f"Mean over the splits, and the paired difference from {BASELINE} with its 95 % interval, in points"
    marked = frozenset(place for place, name in enumerate(methods) if name == BASELINE)
    return Table(caption, columns, rows, marked)


def _explanations(methods: Methods) -> Points:
    """Say what each method does, below the table, which has no room for it on a phone."""
    return Points([f"{name}: {method_in_words(name)}" for name in methods], shown=len(methods))


def _interval(one: PairedDifference | None) -> Number:
    if one is None or one.low is None or one.high is None:
        return number(None)
    return Number(f"{points(one.low)} to\N{NO-BREAK SPACE}{points(one.high)}", one.low)


def _splits(methods: Methods) -> Chart:
    lowest = min(min(values.splits) for values in methods.values())
    highest = max(max(values.splits) for values in methods.values())
    told = f"Accuracy of each method on each split, between {lowest:.1f} and {highest:.1f} %."
    return Chart(
        split_figure({name: {"handwritten digits": values.splits} for name, values in methods.items()}),
        "Every split",
        told,
    )


def _picture_sections(folder: Path, names: list[str]) -> list[Section]:
    files = {folder / Path(name).name: _CAPTIONS.get(name, name) for name in names}
    pictures, left_out = embed_pictures(files)
    blocks: list[Block] = [Gallery(pictures, wide=True)] if pictures else []
    if left_out:
        blocks.append(Words(f"Missing, or too large for a page: {', '.join(left_out)}.", True))
    return [Section("Pictures", blocks)] if blocks else []


def _curve_sections(first: Mapping[str, FirstSplit]) -> list[Section]:
    parts = {"cross_entropy": "Cross-entropy", "alignment": "Alignment"}
    drawn = []
    for part, title in parts.items():
        series = {}
        for name, one in first.items():
            points = zip(one.curve["step"], one.curve.get(part, ()), strict=False)
            if known := [(step, value) for step, value in points if step is not None and value is not None]:
                series[name] = ([step for step, _ in known], [value for _, value in known])
        if series:
            told = f"{title} of each method over the steps of the first split."
            drawn.append(Chart(lines_figure(series, part.replace("_", "-")), title, told))
    return [Section("Training", [Side(drawn)])] if drawn else []


def _command(command: str | None) -> Block:
    if command is None:
        return Words("It was run from Python with a different number of steps, so no command repeats it.")
    return Listing(command, "The command that repeats the demo:")
