"""Labels of many images, block by block: what a worker does with a block, and the files that are made of its shards."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._device import choose_device
from .._outputs import writing
from ..data.folders import LeftOut
from ..data.names import printable
from ..data.shard_files import shard_of
from ..training.run_files import checkpoint_folders
from .calibration_file import CALIBRATION
from .description import HEAD, is_head
from .loaded_run import open_model
from .predictions import UNKNOWN, Prediction, classify, predictions_csv, refuse
from .shards import Shards, encode


@dataclass(frozen=True)
class Labelling:
    """Labels blocks of image files with a run or a head; a `BlockWork`.

    Attributes:
        run: The run or the head, under the same path on every machine.
        stamp: Its `model_stamp`.
        top: How many of the most likely classes to give.
        below: The confidence below which answers are refused; None to refuse none.
        weights: File of the weights of a head's backbone, if it needs one.
        trust: Import the Python file that the run names.
    """

    run: Path
    stamp: str
    top: int = 1
    below: float | None = None
    weights: Path | None = None
    trust: bool = False

    def open(self, device: str, read_threads: int) -> Callable[[Sequence[Path]], bytes]:
        """Load the model; return what makes a shard of a block."""
        model = open_model(self.run, choose_device(device), weights=self.weights, trust=self.trust)
        if model_stamp(self.run) != self.stamp:
            raise ValueError(f"{self.run} holds another model here than where the command runs")

        def label(files: Sequence[Path]) -> bytes:
            predictions, left_out = classify(model, files, self.top, read_threads)
            require_seen(files, left_out)
            answers = refuse(predictions, self.below, model.classes)
            return encode(as_columns(answers, self.top, refusing=self.below is not None), left_out)

        return label


def model_stamp(path: Path) -> str:
    """Return a digest of what the answers of a run or a head depend on: its weights and its temperature."""
    if is_head(path):
        files = [path / HEAD if path.is_dir() else path]
    else:
        files = [*sorted(checkpoint_folders(path / "checkpoints")[0].iterdir()), path / CALIBRATION]
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes() if file.is_file() else b"")
    return digest.hexdigest()[:16]


def require_seen(files: Sequence[Path], left_out: Sequence[LeftOut]) -> None:
    """Require that this machine sees the images at all: a folder that is not mounted is no damage to be listed.

    Raises:
        FileNotFoundError: It sees none of them.
    """
    if len(left_out) == len(files) and not any(file.exists() or shard_of(file) for file in files):
        raise FileNotFoundError(
            f"{printable(files[0])} cannot be found: images must have the same path on every machine (docs/cluster.md)"
        )


def as_columns(predictions: Sequence[Prediction], top: int, *, refusing: bool = False) -> dict[str, Any]:
    """Arrange predictions in columns, under the names of the CSV file; see `predictions_csv`."""
    import pyarrow as arrow  # type: ignore[import-not-found,import-untyped,unused-ignore]

    columns = {"file": arrow.array([printable(one.file) for one in predictions], arrow.string())}
    if refusing:
        columns["label"] = arrow.array([one.answer for one in predictions], arrow.string())
    for rank in range(top):
        name = f"label_{rank + 1}" if rank else "guess" if refusing else "label"
        columns[name] = arrow.array([one.labels[rank] for one in predictions], arrow.string())
        share = f"probability_{rank + 1}" if rank else "probability"
        columns[share] = arrow.array([one.probabilities[rank] for one in predictions], arrow.float32())
    return columns


def predictions_in(table: Any) -> list[Prediction]:
    """Return the predictions that a shard holds."""
    columns = table.to_pydict()
    first = "guess" if "guess" in columns else "label"
    labels = zip(
        *(columns[name] for name in (first, *(name for name in columns if name.startswith("label_")))), strict=True
    )
    shares = zip(*(values for name, values in columns.items() if name.startswith("probability")), strict=True)
    refused = [None if first == "label" else label == UNKNOWN for label in columns["label"]]
    rows = zip(columns["file"], labels, shares, refused, strict=True)
    return [Prediction(Path(file), label, share, refused=said) for file, label, share, said in rows]


def write_csv(shards: Shards, out: Path, top: int) -> None:
    """Write the CSV file that one process would have written, shard by shard, so that memory does not grow."""
    begun = False
    with writing(out) as stream:
        for table in shards.tables():
            if table.num_rows:
                stream.write(predictions_csv(predictions_in(table), top, header=not begun).encode())
                begun = True


def count_refused(shards: Shards) -> int:
    """Count the answers that were refused."""
    return sum(
        table.column("label").to_pylist().count(UNKNOWN) for table in shards.tables() if "guess" in table.column_names
    )
