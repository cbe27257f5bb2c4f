"""Labels of images predicted by a run, and a CSV file of them that is safe to open in a spreadsheet."""

import csv
import io
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from .._escapes import unescaped
from .._files import harmless_cell, to_csv, write_atomically
from .._reading import read_regular
from ..data.decode import SUFFIXES, UnreadableImage, default_workers
from ..data.folders import LeftOut
from ..data.image_batches import load_image, read_ahead
from ..data.image_shards import images_in, shards_at
from ..data.input_spec import InputSpec
from ..data.labelled import LabelledImages, Progress
from ..data.manifest import read_manifest
from ..data.manifest_rows import FILE, PATH, is_manifest
from ..data.names import enumerate_words, natural_key, printable
from .loaded_run import LoadedModel

BATCH = 32
UNKNOWN = "unknown"
"""What an image is called whose answer is refused."""


@dataclass(frozen=True)
class Prediction:
    """The most likely classes of one image, with their probabilities, most likely first.

    Attributes:
        file: The image.
        labels: The classes.
        probabilities: Their probabilities.
        truth: Its true class, if known.
        refused: Whether the most likely class is too unlikely to be given as an answer; None if nothing is refused.
    """

    file: Path
    labels: tuple[str, ...]
    probabilities: tuple[float, ...]
    truth: str | None = None
    refused: bool | None = None

    @property
    def answer(self) -> str:
        """The most likely class, or `UNKNOWN` if it is refused."""
        return UNKNOWN if self.refused else self.labels[0]


def find_images(paths: Sequence[Path]) -> list[Path]:
    """List the images among files and folders, with everything inside the folders, and what lists or shards hold.

    A file is accepted whatever its name. Links to folders are not followed, which avoids endless loops; hidden files
    are skipped. A path given twice is listed once.

    Raises:
        FileNotFoundError: There is no such file or folder.
        ValueError: A folder holds no images, or a list is wrong.
    """
    images: dict[Path, None] = {}
    for path in paths:
        if shards := shards_at(path):
            images.update(dict.fromkeys(image.file for shard in shards for image in images_in(shard)))
        elif path.is_dir():
            inside = list(_below(path))
            if not inside:
                raise ValueError(f"{printable(path)} holds no images")
            images.update(dict.fromkeys(inside))
        elif is_manifest(path) and path.exists():
            images.update(dict.fromkeys(read_manifest(path).files))
        elif path.exists():
            images[path] = None
        else:
            raise FileNotFoundError(f"{printable(path)}: there is no such file or folder")
    return list(images)


def _refuse(error: OSError) -> None:
    raise error


def _below(folder: Path) -> Iterator[Path]:
    for inner, folders, files in os.walk(folder, onerror=_refuse):
        folders[:] = sorted((name for name in folders if not name.startswith(".")), key=natural_key)
        for name in sorted(files, key=natural_key):
            if Path(name).suffix.lower() in SUFFIXES and not name.startswith("."):
                yield Path(inner) / name


def classify(
    run: LoadedModel,
    files: Sequence[Path],
    top: int = 1,
    workers: int | None = None,
    progress: Progress | None = None,
    *,
    others: Sequence[LoadedModel] = (),
) -> tuple[list[Prediction], list[LeftOut]]:
    """Label images.

    Args:
        run: The run, or the head.
        files: The image files.
        top: How many of the most likely classes to return.
        workers: Threads that read images.
        progress: Receives the number of images done.
        others: Runs and heads whose answers are averaged with its own: `label_batches`.

    Returns:
        The predictions in the order of the files, and the unreadable files with the reason.
    """
    check_top(top, run.classes)
    runs, images = [run, *others], without_labels(files)
    broken: dict[int, str] = {}

    def passed(number: int) -> Iterator[tuple[list[int], Tensor]]:
        network, done = Network(runs[number].logits, runs[number].input, runs[number].views), number * len(files)
        for rows, logits in pass_readable(network, images, broken, workers):
            yield rows, logits
            done += len(rows)
            if progress is not None:
                progress("labelling images", done + len(broken), len(runs) * len(files))

    batches = label_batches(runs, [passed(number) for number in range(len(runs))], files, top)
    predictions = [prediction for batch in batches for prediction in batch]
    return predictions, [LeftOut(files[row], broken[row]) for row in sorted(broken)]


def label_batches(
    runs: Sequence[LoadedModel], passes: Sequence[Iterable[tuple[list[int], Tensor]]], files: Sequence[Path], top: int
) -> Iterator[list[Prediction]]:
    """Label images by their logits, batch by batch; those of several runs by the mean of their log-probabilities.

    Each run is calibrated before the mean is taken, and an image that one of them cannot read gets no label.

    Args:
        runs: The runs and heads; the order of the first one's classes decides between equals.
        passes: For each the rows and logits of batches.
        files: All images.
        top: How many of the most likely classes to return.
    """
    classes = runs[0].classes
    if len(runs) == 1:
        for rows, logits in passes[0]:
            yield likeliest([files[row] for row in rows], logits, classes, top, runs[0].temperature)
        return
    total, times = torch.zeros(len(files), len(classes)), torch.zeros(len(files), dtype=torch.int64)
    for run, passed in zip(runs, passes, strict=True):
        order = [run.classes.index(name) for name in classes]
        for rows, logits in passed:
            total[rows] += (logits.float() / run.temperature).log_softmax(1)[:, order]
            times[rows] += 1
    readable = torch.nonzero(times == len(runs)).flatten()
    yield likeliest([files[row] for row in readable.tolist()], total[readable] / len(runs), classes, top)


def check_same_classes(run: LoadedModel, others: Mapping[Path, LoadedModel]) -> None:
    """Require that runs whose answers are averaged know the same classes, in any order.

    Args:
        run: The first run.
        others: The others, by their folders.
    """
    for folder, other in others.items():
        if lacking := [name for name in run.classes if name not in other.classes]:
            raise ValueError(f"--with {printable(folder)} lacks classes of the first run: {_named(lacking)}")
        if strange := [name for name in other.classes if name not in run.classes]:
            raise ValueError(f"--with {printable(folder)} has classes that the first run lacks: {_named(strange)}")


def _named(classes: Sequence[str]) -> str:
    return enumerate_words(map(repr, classes))


class Network(NamedTuple):
    """What images pass: batches to outputs, on the CPU; the form of its images, and the views of each that pass."""

    outputs: Callable[[Iterator[Tensor]], Iterator[Tensor]]
    input: InputSpec
    views: int


def without_labels(files: Sequence[Path]) -> LabelledImages:
    """Return files as a list of images whose classes are not known."""
    return LabelledImages(tuple(files), (0,) * len(files), ("",)).without_labels()


def pass_readable(
    network: Network, images: LabelledImages, broken: dict[int, str], workers: int | None = None
) -> Iterator[tuple[list[int], Tensor]]:
    """Pass images through a network, but for those that cannot be read.

    Args:
        network: The network.
        images: The images.
        broken: Receives the rows that cannot be read, with the reason.
        workers: Threads that read images.

    Yields:
        The rows of each batch and their outputs.
    """
    waiting: deque[list[int]] = deque()

    def read(row: int) -> Tensor | str:
        try:
            return load_image(images, row, network.input, views=network.views)
        except UnreadableImage as error:
            return error.reason

    def batches() -> Iterator[Tensor]:
        size = max(BATCH // network.views, 1)
        chunks = [range(first, min(first + size, len(images))) for first in range(0, len(images), size)]
        for chunk, contents in zip(chunks, read_ahead(chunks, read, workers or default_workers()), strict=True):
            read_of = dict(zip(chunk, contents, strict=True))
            broken.update((row, content) for row, content in read_of.items() if isinstance(content, str))
            whole = {row: content for row, content in read_of.items() if isinstance(content, Tensor)}
            if whole:
                waiting.append([*whole])
                yield torch.stack([*whole.values()])

    for outputs in network.outputs(batches()):
        yield waiting.popleft(), outputs


def check_top(top: int, classes: Sequence[str]) -> None:
    """Require a number of likely classes that there are."""
    if not 1 <= top <= len(classes):
        raise ValueError(f"--top must lie in 1 … {len(classes)}, the number of classes, got {top}")


def likeliest(
    files: Iterable[Path], logits: Tensor, classes: Sequence[str], top: int, temperature: float = 1.0
) -> list[Prediction]:
    """Return the predictions that logits, divided by a temperature, stand for: the `top` most likely classes."""
    probabilities, places = (logits.float() / temperature).softmax(1).topk(top, dim=1)
    return [
        Prediction(file, tuple(classes[label] for label in row), tuple(values))
        for file, row, values in zip(files, places.tolist(), probabilities.tolist(), strict=True)
    ]


def refuse(predictions: Sequence[Prediction], below: float | None, classes: Sequence[str]) -> list[Prediction]:
    """Refuse the answers of a probability below a limit.

    Args:
        predictions: The predictions.
        below: The limit; None to refuse none.
        classes: All classes, none of which may have the name that refused answers get.

    Example:
        >>> one = Prediction(Path("a.png"), ("mug",), (0.4,))
        >>> [found.answer for limit in (0.3, 0.5) for found in refuse([one], limit, ["mug", "pen"])]
        ['mug', 'unknown']
    """
    if below is None:
        return list(predictions)
    if UNKNOWN in classes:
        raise ValueError(
            f"a class of the run is named {UNKNOWN!r}, which refused answers would be called, too: "
            "label without a limit, and refuse by the column `probability`"
        )
    return [replace(prediction, refused=prediction.probabilities[0] < below) for prediction in predictions]


def labels_of(
    images: LabelledImages, logits: Tensor, classes: Sequence[str], temperature: float = 1.0
) -> list[Prediction]:
    """Return the two most likely of some classes for each image of a list, with its name below its folder."""
    names = (Path(images.name(row)) for row in range(len(images)))
    return likeliest(names, logits, classes, 2, temperature)


def predictions_of(images: LabelledImages, logits: Tensor, temperature: float = 1.0) -> list[Prediction]:
    """Return the two most likely classes of each test image, with its true class and its name below its folder."""
    found = labels_of(images, logits, images.classes, temperature)
    truths = (images.classes[label] for label in images.labels)
    return [replace(prediction, truth=truth) for prediction, truth in zip(found, truths, strict=True)]


def predictions_csv(predictions: Sequence[Prediction], top: int = 1) -> str:
    r"""Write predictions as CSV: file, label, probability, and label_2, probability_2, … for the next ones.

    If true classes are known, a column `truth` follows the path. If answers may be refused, `label` is `unknown` for
    those that are, and a column `guess` holds the most likely class, to which `probability` belongs.

    Names with commas or quotes are quoted, and control characters, such as line breaks, `escaped`. So that spreadsheets
    do not evaluate names that look like formulas, such a file gets the prefix ./ and such a label an apostrophe.

    >>> print(predictions_csv([Prediction(Path("=a,b.png"), ("mug",), (0.75,))]), end="")
    path,label,probability
    "./=a,b.png",mug,0.750000
    """
    known = any(prediction.truth is not None for prediction in predictions)
    refusing = any(prediction.refused is not None for prediction in predictions)
    more = [name for rank in range(2, top + 1) for name in (f"label_{rank}", f"probability_{rank}")]
    first = ["label", "guess", "probability"] if refusing else ["label", "probability"]
    rows = [[PATH, *(["truth"] if known else []), *first, *more]]
    for prediction in predictions:
        pairs = zip(prediction.labels, prediction.probabilities, strict=True)
        cells = [cell for label, share in pairs for cell in (label, f"{share:.6f}")]
        before = [*([prediction.truth or ""] if known else []), *([prediction.answer] if refusing else [])]
        rows.append([harmless_cell(printable(prediction.file), "./"), *before, *cells])
    return to_csv(rows)


def read_predictions(file: Path) -> list[Prediction]:
    """Read predictions from a CSV file as `predictions_csv` writes it.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It holds something else; the message says what.
    """
    try:
        text = read_regular(file).decode()
        rows = list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
        return [_prediction(row) for row in rows]
    except FileNotFoundError:
        raise FileNotFoundError(f"{printable(file)}: there is no such file") from None
    except (csv.Error, KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{printable(file)} does not hold predictions: {type(error).__name__} {error}") from None


def _prediction(row: dict[str, str]) -> Prediction:
    ranks = ["", *(name.removeprefix("label") for name in row if name.startswith("label_"))]
    labels = [_as_named(row[f"label{rank}"]) for rank in ranks]
    probabilities = tuple(float(row[f"probability{rank}"]) for rank in ranks)
    refused = labels[0] == UNKNOWN if "guess" in row else None
    labels[0] = _as_named(row.get("guess", row["label"]))
    truth = _as_named(row["truth"]) if "truth" in row else None
    return Prediction(Path(unescaped(row[PATH if PATH in row else FILE])), tuple(labels), probabilities, truth, refused)


def _as_named(cell: str) -> str:
    """Undo `harmless_cell` and `escaped`."""
    return unescaped(cell[1:] if cell.startswith("'") and harmless_cell(cell[1:]) == cell else cell)


def require_writable(file: Path) -> None:
    """Check early that a file can be written."""
    if not file.parent.is_dir():
        raise FileNotFoundError(f"--out {file}: its folder does not exist")
    if file.is_dir():
        raise ValueError(f"--out {file} is a folder")


def write_predictions(file: Path, predictions: Sequence[Prediction], top: int = 1) -> None:
    """Write predictions to a CSV file atomically."""
    require_writable(file)
    write_atomically(file, predictions_csv(predictions, top).encode())
