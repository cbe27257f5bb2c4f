"""Two runs side by side: their accuracies, and what they say about the images that both were tested on."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from ..data.names import printable
from ..reporting.pages.run_images import stored_images
from ..reporting.pages.run_pictures import Sample, answers
from ..runs.calibration_file import read_calibration
from ..runs.description import DESCRIPTION, accuracy_name, read_report, values_of

MOST_SHOWN = 60
"""Images on which the runs differ that are listed."""
MOST_RUNS = 200
"""Runs beside a run that are offered."""


def runs_beside(run: Path, classes: Sequence[str]) -> list[Path]:
    """List the finished runs of the same classes in the folder around a run, by name, without the run itself."""
    found = (folder for folder in sorted(run.absolute().parent.iterdir()) if _has_classes(folder, classes))
    return list(islice((folder for folder in found if not folder.samefile(run)), MOST_RUNS))


def _has_classes(folder: Path, classes: Sequence[str]) -> bool:
    try:
        report = read_report(folder) if (folder / DESCRIPTION).is_file() else None
        return report is not None and tuple(report["data"]["classes"]) == tuple(classes)
    except (OSError, ValueError, LookupError, TypeError):  # somebody else's folder, or a damaged run
        return False


def compare(first: Path, second: Path) -> dict[str, Any]:
    """Compare two runs.

    Args:
        first: The folder of a run.
        second: That of another one.

    Returns:
        As JSON values: the accuracy of each on its own test images; and for the images that both were tested on, how
        many each gets right, in all and by class, and those on which their answers differ.

    Raises:
        ValueError: A run has no test, or no test image is in both.
    """
    one, two = _answers(first), _answers(second)
    both = [(one[key], two[key]) for key in one if key in two and one[key].truth == two[key].truth]
    if not both:
        raise ValueError(f"no image tested both {first.name} and {second.name}, so their answers cannot be compared")
    different = [pair for pair in both if pair[0].answer != pair[1].answer]
    different.sort(key=lambda pair: (pair[0].right == pair[1].right, pair[0].right))  # gains, losses, the others
    return {
        "first": _own_test(first),
        "second": _own_test(second),
        "images": len(both),
        "right": [sum(pair[run].right for pair in both) for run in (0, 1)],
        "classes": list(_by_class(both)),
        "differ": len(different),
        "different": [_as_json(*pair) for pair in different[:MOST_SHOWN]],
    }


def _answers(folder: Path) -> Mapping[tuple[Path, str], Sample]:
    """Return the answers of a run to its test images, by their files and parts."""
    run = stored_images(folder)
    if run is None or run.outputs.logits is None:
        raise ValueError(f"{folder.name} keeps no answers to test images, so it cannot be compared")
    images, calibration = run.images["test"], read_calibration(folder)
    found = answers(images, run.outputs.logits / (1.0 if calibration is None else calibration.temperature))
    by_row = sorted(found, key=lambda sample: sample.row)
    return {(images.files[one.row].resolve(), images.part(one.row)): one for one in by_row}


def _own_test(folder: Path) -> dict[str, Any]:
    with values_of(folder):
        report = read_report(folder) or {}
        accuracy = report.get("accuracy")
        return {
            "name": printable(folder.name),
            "accuracy_name": accuracy_name(report.get("protocol")),
            "accuracy": accuracy and accuracy["micro"],
            "interval95": accuracy and accuracy["interval95"],
            "images": accuracy and accuracy["rows"],
        }


def _by_class(both: list[tuple[Sample, Sample]]) -> Iterator[dict[str, Any]]:
    for name in dict.fromkeys(pair[0].truth for pair in both):
        own = [pair for pair in both if pair[0].truth == name]
        right = [sum(pair[run].right for pair in own) for run in (0, 1)]
        yield {"name": name, "images": len(own), "right": right}


def _as_json(one: Sample, two: Sample) -> dict[str, Any]:
    said = [{"label": said.answer, "probability": said.probability, "right": said.right} for said in (one, two)]
    return {"row": one.row, "truth": one.truth, "said": said}
