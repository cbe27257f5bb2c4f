"""Choose the settings of each method by held-out labels of other targets, and write them into a grid.

    python studies/office31/choose.py studies/office31/lite0.toml chosen/plain chosen/aligned chosen/means chosen/others

The folders are those of the experiments `choose-*.toml`. A label that helps to choose settings must not belong to a
test image, and every target image is a test image in some split. So each shift takes the settings that did best on the
shifts to the *other* targets: no label of a Webcam image scores the settings used for Amazon to Webcam (although Webcam
images, as source images with their labels, do train in some of the scored runs). Ties go to the first candidate, and a
candidate whose training diverged on some fold is never taken. The other alignments of class scatters take the choice of
`so`: they differ from it only in orders and class weights.
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
HEADING = "# Chosen by choose.py, for each shift on folds of the labelled images of the other targets:\n"

Settings = dict[str, Any]


def choose(tables: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Mapping[str, Any]]]:
    """Return the row of the best candidate by method and shift; its `values` are the settings.

    Args:
        tables: Contents of the experiments' `table.json`.

    Raises:
        ValueError: Some cells of a candidate are missing.
    """
    candidates: dict[str, list[Mapping[str, Any]]] = {}
    for table in tables:
        for row in table["rows"]:
            cells = row["cells"].values()
            if any(cell["failed"] for cell in cells):  # training diverged: nobody would use such settings
                continue
            if any(cell["count"] < cell["expected"] for cell in cells):
                raise ValueError(f"{table['name']}: {row['label']} is not complete; run its experiment again")
            candidates.setdefault(row["method"], []).append(row)
    return {method: {shift: _best(rows, shift) for shift in rows[0]["cells"]} for method, rows in candidates.items()}


def held_out_score(chosen: Mapping[str, Mapping[str, Any]]) -> float:
    """Return the accuracy of a method's choices on the labels that had no part in them, averaged over the shifts."""
    return fmean(row["cells"][shift]["mean"] for shift, row in chosen.items())


def _best(rows: list[Mapping[str, Any]], shift: str) -> Mapping[str, Any]:
    others = [other for other in rows[0]["cells"] if _target(other) != _target(shift)]
    # Rounded, because sums of shares may differ in the last digit when the numbers of correct images are the same.
    return max(rows, key=lambda row: round(sum(row["cells"][other]["mean"] for other in others), 6))


def _target(shift: str) -> str:
    return shift.rpartition("-")[2]


def grid_with(text: str, chosen: Mapping[str, Mapping[str, Settings]], methods: Iterable[str]) -> str:
    """Append the chosen settings to the text of a grid, replacing those of an earlier choice.

    Raises:
        ValueError: A method of the grid has no candidates.
    """
    tables = []
    for method in methods:
        if LIKE.get(method, method) not in chosen:
            raise ValueError(f"these experiments have no candidates for {LIKE.get(method, method)!r}")
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
    """Write the chosen settings into the grid named by the first argument."""
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
    print("Accuracy of the chosen settings on held-out labels of their own target:")
    for method, found in sorted(rows.items(), key=lambda one: -held_out_score(one[1])):
        print(f"{method:<10} {held_out_score(found):.2f}")


if __name__ == "__main__":
    main()
