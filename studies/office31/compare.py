"""Compare a method of one experiment with a method of another, split by split: say, fine-tuned with frozen features.

    python studies/office31/compare.py experiments/lite0 m experiments/office-alexnet s+t

Both must have the same shifts. Only splits that both have are compared; shifts are averaged first.
"""

import argparse
import json
from pathlib import Path

from sohot.reporting.statistics import PairedDifference, overall_difference

Accuracies = dict[tuple[str, int], float]


def accuracies(folder: Path, method: str) -> tuple[Accuracies, list[str]]:
    """Read the accuracies of a method by shift and split, and the shifts.

    Raises:
        ValueError: The experiment does not have the method, or has it several times.
    """
    table = json.loads((folder / "table.json").read_text(encoding="utf-8"))
    rows = [row for row in table["rows"] if row["method"] == method]
    if len(rows) != 1:
        known = ", ".join(dict.fromkeys(row["method"] for row in table["rows"]))
        raise ValueError(f"{folder} has {len(rows)} rows for {method!r}; it has {known}")
    cells = rows[0]["cells"]
    found = {(shift, int(split)): value for shift, cell in cells.items() for split, value in cell["splits"].items()}
    return found, table["shifts"]


def compare(ours: tuple[Path, str], theirs: tuple[Path, str]) -> PairedDifference:
    """Return the difference between two methods on the splits that both have.

    Raises:
        ValueError: The experiments have different shifts, or share no split.
    """
    (values, shifts), (others, their_shifts) = accuracies(*ours), accuracies(*theirs)
    if set(shifts) != set(their_shifts):
        raise ValueError(f"{theirs[0]} has other shifts than {ours[0]}")
    difference = overall_difference(values, others, shifts)
    if difference is None:
        raise ValueError(f"{ours[0]} and {theirs[0]} share no split")
    return difference


def main() -> None:
    """Print the difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, kind in (("folder", Path), ("method", str), ("other_folder", Path), ("other_method", str)):
        parser.add_argument(name, type=kind)
    given = parser.parse_args()
    try:
        found = compare((given.folder, given.method), (given.other_folder, given.other_method))
    except (OSError, ValueError) as error:
        parser.error(str(error))
    names = f"{given.method} of {given.folder} minus {given.other_method} of {given.other_folder}"
    print(f"{names}: {json.dumps(found.as_json())}")


if __name__ == "__main__":
    main()
