"""Chooses the settings of each method by held-out labels of other targets, and writes them into a grid.

    python studies/office31/choose.py studies/office31/lite0.toml chosen/plain chosen/aligned chosen/means chosen/rivals

The folders are those of the experiments `choose-*.toml`. A label that chooses settings must not be a test image, and
each target image is one in some split. So what is taken on a shift is what did best on the shifts to the *other*
targets: no label of a Webcam image scores what Amazon to Webcam is trained with (as source images, with their labels,
they do train in some of the runs that are scored). Of equals the first candidate is taken, and none whose training has
diverged on some fold. The other alignments of class scatters take what `so` has chosen: they differ from it in orders
and class weights alone.
"""

import argparse
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from sohot._files import write_atomically
from sohot.experiments.grid import read_grid

LIKE = {"so+zeta": "so", "so+to": "so", "so+to+fo+zeta": "so"}
HEADING = "# Below: what choose.py chose, on each shift by folds of labelled images of the other targets.\n"

Settings = dict[str, Any]


def choose(tables: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Mapping[str, Any]]]:
    """Give the row of the best candidate by method and shift; its `values` are the settings.

    Args:
        tables: Contents of `table.json` of experiments.

    Raises:
        ValueError: Some cells of a candidate are not there.
    """
    candidates: dict[str, list[Mapping[str, Any]]] = {}
    for table in tables:
        for row in table["rows"]:
            cells = row["cells"].values()
            if any(cell["failed"] for cell in cells):  # training has diverged: nobody would take such settings
                continue
            if any(cell["count"] < cell["expected"] for cell in cells):
                raise ValueError(f"{table['name']}: {row['label']} is not complete, run its experiment again")
            candidates.setdefault(row["method"], []).append(row)
    return {method: {shift: _best(rows, shift) for shift in rows[0]["cells"]} for method, rows in candidates.items()}


def held_out_score(chosen: Mapping[str, Mapping[str, Any]]) -> float:
    """Give what the choices of a method reach on the labels that had no part in them, averaged over the shifts."""
    return fmean(row["cells"][shift]["mean"] for shift, row in chosen.items())


def _best(rows: list[Mapping[str, Any]], shift: str) -> Mapping[str, Any]:
    others = [other for other in rows[0]["cells"] if _target(other) != _target(shift)]
    # Rounded, for a sum of shares may differ in its last digit where the numbers of right images are the same.
    return max(rows, key=lambda row: round(sum(row["cells"][other]["mean"] for other in others), 6))


def _target(shift: str) -> str:
    return shift.rpartition("-")[2]


def grid_with(text: str, chosen: Mapping[str, Mapping[str, Settings]], methods: Iterable[str]) -> str:
    """Put chosen settings at the end of a grid's text, in place of what an earlier choice has left there.

    Raises:
        ValueError: A method of the grid had no candidates.
    """
    tables = []
    for method in methods:
        if LIKE.get(method, method) not in chosen:
            raise ValueError(f"the experiments given hold no candidates for {LIKE.get(method, method)!r}")
        by_shift = chosen[LIKE.get(method, method)]
        first = next(iter(by_shift.values()))
        if all(settings == first for settings in by_shift.values()):
            lines = [f'[method."{method}"]', *_lines(first)]
        else:
            lines = [f'[method."{method}".shift]']
            lines += [f'"{shift}" = {{ {", ".join(_lines(settings))} }}' for shift, settings in by_shift.items()]
        tables.append("\n".join(lines))
    return text.split(HEADING)[0].rstrip() + "\n\n" + HEADING + "\n\n".join(tables) + "\n"


def _lines(settings: Settings) -> list[str]:
    return [f"{name} = {json.dumps(value)}" for name, value in settings.items()]


def main() -> None:
    """Write the chosen settings into the grid that the first argument names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("grid", type=Path, help="the grid to write into")
    parser.add_argument("folders", type=Path, nargs="+", help="folders of the experiments that tried candidates")
    given = parser.parse_args()
    try:
        rows = choose(json.loads((folder / "table.json").read_text(encoding="utf-8")) for folder in given.folders)
        chosen = {method: {shift: row["values"] for shift, row in found.items()} for method, found in rows.items()}
        text = grid_with(given.grid.read_text(encoding="utf-8"), chosen, read_grid(given.grid).methods)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    write_atomically(given.grid, text.encode())
    print("What is chosen reaches, on held-out labels of its own target:")
    for method, found in sorted(rows.items(), key=lambda one: -held_out_score(one[1])):
        print(f"{method:<10} {held_out_score(found):.2f}")


if __name__ == "__main__":
    main()
