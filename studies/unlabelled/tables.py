"""Tables of the study of unlabelled images, from the lists of its cells.

    python studies/unlabelled/tables.py docs/results/unlabelled-cells.csv --chosen docs/results/unlabelled-chosen.csv

For each data set and protocol: accuracy in %, by row and shift, and paired differences from other rows. Shifts are
averaged first, split by split, because those of one split share images; only splits that both rows have are compared.
Rows "as chosen" have one pass or two, split by split as the list of chosen.py says.
"""

import argparse
import csv
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import fmean

from rows import SHIFTS

from sohot.data.pools import INDUCTIVE, SUPERVISED, TRANSDUCTIVE
from sohot.reporting.statistics import PairedDifference, overall_difference

Accuracies = Mapping[tuple[str, int], float]
Key = tuple[str, str, str, int, str]  # data set, network, protocol, shots, row

HEAD, BOTH, ALONE = "frozen head", "s+t", "pseudo-labels"
OTHER_PASSES = (f"{ALONE}, two passes", f"{ALONE}, as chosen", f"{HEAD} with the pool, as chosen")


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
    """Add the rows that take one pass or two, as held-out images chose."""
    chosen: defaultdict[tuple[str, str, int], dict[tuple[str, int], bool]] = defaultdict(dict)
    with open(file, newline="", encoding="utf-8") as lines:
        for line in csv.DictReader(lines):
            where = line["data"], line["protocol"], int(line["shots"])
            chosen[where][line["shift"], int(line["split"])] = line["chosen"] == "both"
    for (data, protocol, shots), twice in chosen.items():
        for name in (f"{HEAD} with the pool", ALONE):
            key = data, "lite0", protocol, shots
            ways = cells.get((*key, name), {}), cells.get((*key, f"{name}, two passes"), {})
            found = {place: ways[both][place] for place, both in twice.items() if all(place in way for way in ways)}
            if found:
                cells[(*key, f"{name}, as chosen")] = found


def mean_of(cells: Accuracies, shifts: Sequence[str]) -> float:
    """Return the mean over the shifts of the means over the splits."""
    return fmean(fmean(value for (one, _), value in cells.items() if one == shift) for shift in shifts)


def difference(one: Accuracies, other: Accuracies, shifts: Sequence[str]) -> str:
    """Return the paired difference in words."""
    found = overall_difference(one, other, shifts)
    return "–" if found is None or found.low is None else in_words(found)


def in_words(found: PairedDifference) -> str:
    """Return a difference with its 95 % interval, p and the number of splits that are better."""
    p = "p < 0.001" if found.p_t is not None and found.p_t < 0.001 else f"p = {found.p_t:.3f}"
    return f"{found.mean:+.2f} [{found.low:+.2f}, {found.high:+.2f}], {p}, {found.wins} of {found.pairs}"


def table(cells: Mapping[Key, Accuracies], data: str, network: str, protocol: str, shots: int) -> Iterator[str]:
    """Yield a table of a data set and a network under a protocol."""
    rows = {name: found for (*where, name), found in cells.items() if where == [data, network, protocol, shots]}
    shifts = [shift for shift in SHIFTS[data] if any(shift == one for found in rows.values() for one, _ in found)]
    compared = [HEAD, BOTH] if protocol != INDUCTIVE else [HEAD]
    baselines = {name: cells.get((data, network, SUPERVISED, shots, name)) for name in compared}
    baselines |= {} if protocol == SUPERVISED else {ALONE: rows.get(ALONE)}
    yield f"{data}, {network}, {protocol}, {shots} shots"
    yield ""
    yield "| | splits | " + " | ".join(shifts) + " | mean | " + " | ".join(f"− {name}" for name in baselines) + " |"
    yield "| --- |" + " ---: |" * (2 + len(shifts)) + " --- |" * len(baselines)
    for name, found in rows.items():
        done = {shift: [value for (one, _), value in found.items() if one == shift] for shift in shifts}
        whole = all(done.values())
        told = [f"{fmean(values):.1f}" if values else "–" for values in done.values()]
        told.append(f"{mean_of(found, shifts):.2f}" if whole else "–")
        told += [
            "" if other is None or other is found else difference(found, other, shifts) for other in baselines.values()
        ]
        yield f"| {name} | {min(map(len, done.values()))} | " + " | ".join(told) + " |"
    yield ""


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--chosen", type=Path, help="list of what held-out images chose, by chosen.py")
    given = parser.parse_args()
    cells = read(given.files)
    if given.chosen is not None:
        add_chosen(cells, given.chosen)
    for where in dict.fromkeys(key[:4] for key in cells):
        print(*table(cells, *where), sep="\n")
    for data, network in dict.fromkeys(key[:2] for key in cells):
        print(f"{data}, {network}, transductive, single comparisons\n")
        for name in ("means", "m"):
            pair = [cells.get((data, network, TRANSDUCTIVE, 3, f"{ALONE} + {one}")) for one in ("so", name)]
            if all(pair):
                print(f"- so − {name}, both with pseudo-labels: {difference(*pair, SHIFTS[data])}")  # type: ignore[misc]
        for protocol, shift, name in product((TRANSDUCTIVE, INDUCTIVE), SHIFTS[data], (ALONE, *OTHER_PASSES)):
            found = cells.get((data, network, protocol, 3, name), {})
            for baseline in (HEAD, BOTH):
                other = cells.get((data, network, SUPERVISED, 3, baseline), {})
                if len(SHIFTS[data]) == 2 and found and other:
                    print(f"- {protocol}, {shift}: {name} − {baseline}: {difference(found, other, [shift])}")
        print()


if __name__ == "__main__":
    main()
