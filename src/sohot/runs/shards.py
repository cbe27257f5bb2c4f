"""A folder of Parquet shards: what was computed of many images, block by block, kept when the command is killed."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from .._files import holding_folder, is_intact, sealed, write_atomically, write_json
from .._reading import read_json, require_regular
from ..data.folders import LeftOut

JOB = "_job.json"
"""What the shards of a folder are; readers of Parquet folders pass over names that begin like this."""
_LEFT_OUT = b"sohot_left_out"
_LEAST, _MOST, _SHARDS = 256, 4096, 1000


def rows_per_shard(images: int, batch: int) -> int:
    """Return how many images share a shard: a thousand shards where that is possible, of 256 to 4096 images each.

    Args:
        images: Number of images.
        batch: Images that pass the network together. Shards are cut between batches, so that those are the same, and
            the results are too, to the bit.

    Example:
        >>> rows_per_shard(20_000, 32), rows_per_shard(1_000_000, 32), rows_per_shard(20_000, 3)
        (256, 992, 255)
    """
    return max(min(max(images // _SHARDS, _LEAST), _MOST) // batch, 1) * batch


def digest_of(texts: Iterable[str]) -> str:
    """Return a short digest of texts, to tell one list of images from another.

    >>> digest_of(["a", "b"]) == digest_of(["ab"])
    False
    """
    digest = hashlib.sha256()
    for text in texts:
        digest.update(json.dumps(text).encode() + b"\n")
    return digest.hexdigest()[:16]


def import_parquet() -> Any:
    """Import what reads and writes Parquet.

    Raises:
        ModuleNotFoundError: It is not installed.
    """
    try:
        return import_module("pyarrow.parquet")
    except ImportError:
        raise ModuleNotFoundError("Parquet shards need pyarrow: pip install 'sohot[ray]'", name="pyarrow") from None


def encode(columns: Mapping[str, Any], left_out: Sequence[LeftOut]) -> bytes:
    """Write a shard: its rows as Parquet, and what was left out of it, with the reasons.

    Args:
        columns: The values of each column, as lists or Arrow arrays.
        left_out: The images that have no row.
    """
    parquet = import_parquet()
    arrow = import_module("pyarrow")
    about = {_LEFT_OUT: json.dumps([[str(one.path), one.reason] for one in left_out])}
    stream = arrow.BufferOutputStream()
    parquet.write_table(arrow.table(dict(columns)).replace_schema_metadata(about), stream)
    content: bytes = stream.getvalue().to_pybytes()
    return content


@dataclass(frozen=True)
class Shards:
    """The shards of one job, in a folder that this process has locked.

    Attributes:
        folder: The folder.
        count: How many shards the job has.
    """

    folder: Path
    count: int

    def file(self, number: int) -> Path:
        """Name a shard; names sort in the order of the images."""
        return self.folder / f"part-{number:05d}-of-{self.count:05d}.parquet"

    def missing(self) -> list[int]:
        """Return the numbers of the shards that are still to be computed."""
        return [number for number in range(self.count) if not self.file(number).exists()]

    def add(self, number: int, content: bytes) -> None:
        """Put a shard in place, whole or not at all."""
        write_atomically(self.file(number), content)

    def tables(self, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """Read the shards in order, one at a time, all columns or some; yields Arrow tables."""
        for number in range(self.count):
            yield self._opened(number).read(columns)

    def rows(self) -> int:
        """Count the rows of all shards."""
        return sum(self._opened(number).metadata.num_rows for number in range(self.count))

    def left_out(self) -> list[LeftOut]:
        """List the images that have no row, in order."""
        texts = (self._opened(number).schema_arrow.metadata[_LEFT_OUT] for number in range(self.count))
        return [LeftOut(Path(path), reason) for text in texts for path, reason in json.loads(text)]

    def _opened(self, number: int) -> Any:
        file = self.file(number)
        require_regular(file)
        try:
            return import_parquet().ParquetFile(file)
        except Exception as error:  # pyarrow has errors of its own for a damaged file
            reason = " ".join(str(error).split())
            raise ValueError(f"{file} is damaged ({reason}): remove it and run the same command again") from None


@contextmanager
def open_shards(folder: Path, job: Mapping[str, Any], count: int) -> Iterator[Shards]:
    """Lock a folder for the shards of a job; those that the same job has left there are kept.

    Args:
        folder: The folder; it is made if it is missing.
        job: All that the shards depend on, as JSON values.
        count: How many shards there will be.

    Raises:
        FileNotFoundError: The folder around it does not exist.
        FolderInUse: Another process holds it.
        ValueError: The folder holds something else.
    """
    import_parquet()
    if not folder.parent.is_dir():
        raise FileNotFoundError(f"--out {folder}: the folder around it does not exist")
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--out {folder} is a file: with --engine ray, give a folder")
    with holding_folder(folder):
        _claim(folder, dict(job))
        yield Shards(folder, count)


def _claim(folder: Path, job: dict[str, Any]) -> None:
    """Note what the shards of a folder are, or check that those that it has are this job's."""
    names = {entry.name for entry in folder.iterdir() if not entry.name.startswith(".")} - {JOB}
    if not names:
        write_json(folder / JOB, sealed(job))
        return
    if not (folder / JOB).exists():
        raise ValueError(f"--out {folder} is a folder with other things in it: give a new or an empty folder")
    advice = "give another folder, or remove this one"
    try:
        found = read_json(folder / JOB)
        intact = isinstance(found, dict) and is_intact(found)
    except (OSError, ValueError):
        intact = False
    if not intact:
        raise ValueError(f"{folder / JOB} is damaged: {advice}")
    if other := [name for name, value in job.items() if found.get(name) != value]:
        was, now = found.get(other[0]), job[other[0]]
        raise ValueError(f"--out {folder} holds shards of another call ({other[0]} {was}, now {now}): {advice}")
