"""Predictions as a CSV file that a spreadsheet may open without harm."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from ..data.names import printable
from ..training.files import write_atomically
from .classifying import Prediction

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def predictions_csv(predictions: Sequence[Prediction], top: int = 1) -> str:
    r"""Write predictions as CSV: file, label, probability, and label_2, probability_2, … for the next ones.

    Names with commas, quotes or line breaks are quoted. A spreadsheet takes a cell that begins like a formula for one:
    a file of such a name is written with ./ before it, a label with an apostrophe.

    >>> print(predictions_csv([Prediction(Path("=a,b.png"), ("mug",), (0.75,))]), end="")
    file,label,probability
    "./=a,b.png",mug,0.750000
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    more = [name for place in range(2, top + 1) for name in (f"label_{place}", f"probability_{place}")]
    writer.writerow(["file", "label", "probability", *more])
    for one in predictions:
        pairs = zip(one.labels, one.probabilities, strict=True)
        cells = [cell for label, share in pairs for cell in (_safe(label, "'"), f"{share:.6f}")]
        writer.writerow([_safe(printable(one.file), "./"), *cells])
    return text.getvalue()


def _safe(cell: str, before: str) -> str:
    return before + cell if cell.startswith(_FORMULA) else cell


def require_writable(file: Path) -> None:
    """Check early that a file can be written there."""
    if not file.parent.is_dir():
        raise FileNotFoundError(f"--out {file}: its folder does not exist")
    if file.is_dir():
        raise ValueError(f"--out {file} is a folder")


def write_predictions(file: Path, predictions: Sequence[Prediction], top: int = 1) -> None:
    """Write predictions to a CSV file that is there whole or not at all."""
    require_writable(file)
    write_atomically(file, predictions_csv(predictions, top).encode())
