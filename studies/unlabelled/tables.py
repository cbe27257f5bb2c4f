"""Tables of the study of unlabelled images, as docs/results/unlabelled.md shows them, from the lists of its cells.

    python studies/unlabelled/tables.py docs/results/unlabelled-cells.csv --chosen docs/results/unlabelled-chosen.csv

For each data set, network and protocol: accuracy in %, by row and shift, and the paired difference from one row. Shifts
are averaged first, split by split, because those of one split share images; only splits that both rows have are
compared. Rows "as chosen" have one pass or two, split by split as the list of chosen.py says. With the lists of
development splits, unlabelled-development.csv and unlabelled-development-chosen.csv, it also prints what other rules
come to there.
"""

import argparse
import csv
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import fmean

from rows import FIRST_STUDY, SHIFTS

from sohot.data.pools import INDUCTIVE, SUPERVISED, TRANSDUCTIVE
from sohot.reporting.statistics import PairedDifference, overall_difference

Accuracies = Mapping[tuple[str, int], float]
Key = tuple[str, str, str, int, str]  # data set, network, protocol, shots, row

HEAD, BOTH, POOLED, ALONE = "frozen head", "s+t", "frozen head with the pool", "pseudo-labels"
TWICE, CHOSEN = "two passes", "as chosen"
DEVELOPMENT = 100
"""Splits above this number are for development."""
ALIGNED = ("m", "means", "so")
ORDER = (
    *(HEAD, f"{HEAD}, {TWICE}", f"{HEAD}, {CHOSEN}", BOTH, *ALIGNED, "so+to+fo+zeta", *FIRST_STUDY),
    *(POOLED, f"{POOLED}, {TWICE}", f"{POOLED}, {CHOSEN}", ALONE, f"{ALONE}, {TWICE}", f"{ALONE}, {CHOSEN}"),
    *(f"{ALONE} + {name}" for name in ALIGNED),
    f"{ALONE} + means, {TWICE}",
    *("adamatch", "fixmatch", "im", "entropy", "mcc", "mme"),
    *(f"{name} over the pool" for name in ALIGNED),
    *(f"{ALONE} + so+to+fo+zeta", f"{ALONE} + so, no bank", f"{ALONE} + so, unbiased", f"{ALONE}, no neighbours"),
)
"""Rows of a table, from top to bottom."""


def read(files: Sequence[Path]) -> dict[Key, dict[tuple[str, int], float]]:
    """Read the accuracy of each row by shift and split."""
    found: defaultdict[Key, dict[tuple[str, int], float]] = defaultdict(dict)
    for file in files:
        with open(file, newline="", encoding="utf-8") as lines:
            for cell in csv.DictReader(lines):
                key = cell["data"], cell["network"], cell["protocol"], int(cell["shots"]), cell["row"]
                found[key][cell["shift"], int(cell["split"])] = float(cell["accuracy"])
    return dict(found)


def add_chosen(cells: dict[Key, dict[tuple[str, int], float]], file: Path) -> None:
    """Add the rows that take one pass or two, as held-out images chose.

    If the chosen way was not measured on all splits, those count on which both ways were: which of them is missing
    depends on the choice.
    """
    chosen: defaultdict[tuple[str, str, int], dict[tuple[str, int], bool]] = defaultdict(dict)
    with open(file, newline="", encoding="utf-8") as lines:
        for line in csv.DictReader(lines):
            where = line["data"], line["protocol"], int(line["shots"])
            chosen[where][line["shift"], int(line["split"])] = line["chosen"] == "both"
    for (data, protocol, shots), twice in chosen.items():
        for name in (HEAD, POOLED, ALONE):
            key = data, "lite0", protocol, shots
            ways = cells.get((*key, name), {}), cells.get((*key, f"{name}, {TWICE}"), {})
            whole = all(place in ways[both] for place, both in twice.items())
            counted = [place for place in twice if whole or all(place in way for way in ways)]
            if counted:
                cells[(*key, f"{name}, {CHOSEN}")] = {place: ways[twice[place]][place] for place in counted}


def mean_of(cells: Accuracies, shifts: Sequence[str]) -> float:
    """Return the mean over the shifts of the means over the splits."""
    return fmean(fmean(value for (one, _), value in cells.items() if one == shift) for shift in shifts)


def difference(one: Accuracies, other: Accuracies, shifts: Sequence[str]) -> str:
    """Return the paired difference in words."""
    found = overall_difference(one, other, shifts)
    return "–" if found is None or found.low is None else in_words(found)


def in_words(found: PairedDifference) -> str:
    """Return a difference with its 95 % interval and p."""
    p = "p < 0.001" if found.p_t is not None and found.p_t < 0.001 else f"p = {found.p_t:.3f}"
    return f"{found.mean:+.2f} [{found.low:+.2f}, {found.high:+.2f}], {p}".replace("-", "−")


def titled(row: str) -> str:
    """Return the name of a row with methods as code.

    >>> titled("pseudo-labels + so, no bank"), titled("m over the pool")
    ('pseudo-labels + `so`, no bank', '`m` over the pool, no pseudo-labels')
    """
    if row.startswith((HEAD, ALONE)):
        return re.sub(r"\+ ([^,]+)", r"+ `\1`", row)
    name, over, _ = row.partition(" over the pool")
    return f"`{name}`{over}{', no pseudo-labels' if over else ''}"


def table(cells: Mapping[Key, Accuracies], data: str, network: str, protocol: str, shots: int) -> Iterator[str]:
    """Yield a table of a data set and a network under a protocol."""
    rows = {name: cells[key] for name in ORDER if (key := (data, network, protocol, shots, name)) in cells}
    baseline, shifts = HEAD if protocol == SUPERVISED else ALONE, SHIFTS[data]
    shown = [shift.replace("-", " → ") if data == "pacs" else shift for shift in shifts]
    yield f"{data}, {network}, {protocol}, {shots} shots"
    yield ""
    yield f"| | splits | {' | '.join(shown)} | mean | − {baseline} |"
    yield "| --- " * (4 + len(shifts)) + "|"
    for name, found in rows.items():
        done = {shift: [value for (one, _), value in found.items() if one == shift] for shift in shifts}
        fewest, most = (choose(map(len, done.values())) for choose in (min, max))
        told = [f"{fmean(values):.1f}" if values else "–" for values in done.values()]
        told.append(f"{mean_of(found, shifts):.2f}" if fewest else "–")
        told.append("" if name == baseline else difference(found, rows.get(baseline, {}), shifts))
        splits = str(most) if fewest == most else f"{fewest} to {most}"
        yield f"| {titled(name)} | {splits} | {' | '.join(told)} |".replace("|  |", "| |")
    yield ""


def comparisons(cells: Mapping[Key, Accuracies], data: str, network: str) -> Iterator[str]:
    """Yield single comparisons of a data set and a network, 3 shots."""
    shifts = SHIFTS[data]
    for name in ("means", "m"):
        pair = [cells.get((data, network, TRANSDUCTIVE, 3, f"{ALONE} + {one}"), {}) for one in ("so", name)]
        yield f"- so − {name}, both with pseudo-labels: {difference(*pair, shifts)}"  # type: ignore[misc]
    for name in ALIGNED:
        pair = [
            cells.get((data, network, TRANSDUCTIVE, 3, row), {})
            for row in (f"{ALONE} + {name}", f"{name} over the pool")
        ]
        yield f"- {name} over the pool, with pseudo-labels − without: {difference(*pair, shifts)}"  # type: ignore[misc]
    parts = [("", shifts), *((f", {shift}", [shift]) for shift in (shifts if len(shifts) == 2 else ()))]
    rows = tuple(f"{name}{passes}" for name in (HEAD, POOLED, ALONE) for passes in ("", f", {TWICE}", f", {CHOSEN}"))
    for protocol, (part, averaged), name in product((SUPERVISED, TRANSDUCTIVE, INDUCTIVE), parts, rows):
        for baseline in (HEAD, BOTH):
            found = cells.get((data, network, protocol, 3, name), {})
            other = cells.get((data, network, SUPERVISED, 3, baseline), {})
            yield f"- {protocol}{part}: {name} − {baseline}: {difference(found, other, averaged)}"


RULES = {"never": -math.inf, "if likelier": 0.0, "if not less likely by half a standard error": 0.5, "always": math.inf}
"""When to take two passes: how many standard errors they may be less likely than one."""


def rules(cells: Mapping[Key, Accuracies], file: Path) -> Iterator[str]:
    """Yield what rules for two passes come to on frozen features, by data set and protocol, on development splits."""
    found: defaultdict[tuple[str, str], list[tuple[float, float, float, float]]] = defaultdict(list)
    with open(file, newline="", encoding="utf-8") as lines:
        for line in csv.DictReader(lines):
            name = HEAD if line["protocol"] == SUPERVISED else POOLED
            key = line["data"], "lite0", line["protocol"], int(line["shots"])
            place = line["shift"], int(line["split"])
            if place[1] > DEVELOPMENT:
                ways = cells[(*key, name)][place], cells[(*key, f"{name}, {TWICE}")][place]
                found[line["data"], line["protocol"]].append((*ways, float(line["gain"]), float(line["error"])))
    if found:
        yield f"| two passes | {' | '.join(f'{data}, {protocol}' for data, protocol in found)} |"
        yield "| --- " * (1 + len(found)) + "|"
        for rule, lenience in RULES.items():
            means = (
                fmean(two if gain > -lenience * error else one for one, two, gain, error in draws)
                for draws in found.values()
            )
            yield f"| {rule} | {' | '.join(f'{mean:.2f}' for mean in means)} |"


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--chosen", type=Path, help="list of what held-out images chose, by chosen.py")
    given = parser.parse_args()
    cells = read(given.files)
    if given.chosen is not None:
        add_chosen(cells, given.chosen)
    for where in sorted(dict.fromkeys(key[:4] for key in cells)):
        print(*table(cells, *where), sep="\n")
    for data, network in sorted(dict.fromkeys(key[:2] for key in cells)):
        told = [line for line in comparisons(cells, data, network) if not line.endswith(" –")]
        print(f"{data}, {network}, single comparisons", "", *told, "", sep="\n")
    if given.chosen is not None:
        for line in rules(cells, given.chosen):
            print(line)


if __name__ == "__main__":
    main()
