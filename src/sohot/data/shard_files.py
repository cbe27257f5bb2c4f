"""Files that hold many images: tar files as WebDataset writes them, Parquet files with a column of images.

To everything else, an image in such a file is a path below it, as if the file were a folder: `000.tar/0001.jpg`.
"""

import errno
import io
import os
import tarfile
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import Any, BinaryIO, NamedTuple

from .._reading import MOST_BYTES, UnsuitableFile, open_regular, require_regular
from .names import printable

TAR, PARQUET = ".tar", ".parquet"
IMAGE_COLUMNS = ("image", "img", "jpg", "jpeg", "png", "webp", "bytes")
"""Names of a column of images: their bytes, or, as Hugging Face stores them, a struct with a field `bytes`."""
_lock = Lock()  # threads that read a new shard together wait for the first to look it through


class Place(NamedTuple):
    """Where an entry of a tar file lies in it, in bytes."""

    offset: int
    size: int


def shard_of(path: Path) -> Path | None:
    """Return the file that a path lies in, as if it were a folder; None if there is none.

    >>> shard_of(Path("nowhere/0001.jpg"))
    """
    return next((outer for outer in path.parents if outer.suffix.lower() in (TAR, PARQUET) and outer.is_file()), None)


def open_image(path: str | os.PathLike[str]) -> BinaryIO:
    """Open an image file, or an image in a shard; see `open_regular`."""
    try:
        return open_regular(path)
    except NotADirectoryError:
        if (shard := shard_of(Path(path))) is None:
            raise
    name = Path(path).relative_to(shard).as_posix()
    content = _in_tar(shard, name) if shard.suffix.lower() == TAR else _in_parquet(shard, name)
    if content is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
    return io.BytesIO(content)


def tar_entries(shard: Path) -> Mapping[str, Place]:
    """Look a tar file through; return where each file in it lies, in its order.

    Entries that lead out of a folder, and those that are no plain files, are passed over.

    Raises:
        ValueError: It is not a tar file, or a compressed one, in which no image can be found without reading all.
    """
    found = require_regular(shard)
    with _lock:
        return _tar_entries(shard, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=64)
def _tar_entries(shard: Path, _size: int, _changed: int) -> Mapping[str, Place]:
    entries: dict[str, Place] = {}
    try:
        with tarfile.open(shard, "r:") as opened:
            for entry in opened:
                name = PurePosixPath(entry.name)
                if entry.isfile() and not entry.issparse() and not name.is_absolute() and ".." not in name.parts:
                    entries[name.as_posix()] = Place(entry.offset_data, entry.size)
    except (tarfile.TarError, EOFError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{printable(shard)} is not an uncompressed tar file: {reason}") from None
    return entries


def _in_tar(shard: Path, name: str) -> bytes | None:
    place = tar_entries(shard).get(name)
    return None if place is None else read_entry(shard, place)


def read_entry(shard: Path, place: Place) -> bytes:
    """Read an entry of a tar file."""
    if place.size > MOST_BYTES:
        raise UnsuitableFile(errno.EFBIG, f"it has {place.size} bytes, more than {MOST_BYTES}", os.fspath(shard))
    with open(shard, "rb") as stream:
        stream.seek(place.offset)
        return stream.read(place.size)


def image_column(shard: Path) -> str | None:
    """Return the name of the column of a Parquet file that holds images; None if none does, or it lists paths.

    Raises:
        ModuleNotFoundError: pyarrow is not installed.
        ValueError: It is not a Parquet file.
    """
    names = list(_opened(shard).schema_arrow.names)
    return None if "path" in names else next((name for name in IMAGE_COLUMNS if name in names), None)


def parquet_rows(shard: Path, column: str) -> list[Any] | None:
    """Read a column of plain values; None if there is no such column."""
    opened = _opened(shard)
    there = column in opened.schema_arrow.names
    return list(opened.read([column]).column(0).to_pylist()) if there else None


def count_rows(shard: Path) -> int:
    """Count the rows of a Parquet file."""
    return int(_opened(shard).metadata.num_rows)


def _opened(shard: Path) -> Any:
    require_regular(shard)
    try:
        return import_module("pyarrow.parquet").ParquetFile(shard)
    except ImportError:
        raise ModuleNotFoundError(
            f"reading {printable(shard)} needs pyarrow: pip install 'sohot[parquet]'", name="pyarrow"
        ) from None
    except Exception as error:  # pyarrow has errors of its own for a damaged file
        raise ValueError(f"{printable(shard)} is not a Parquet file: {' '.join(str(error).split())}") from None


def _in_parquet(shard: Path, name: str) -> bytes | None:
    column = image_column(shard) if name.isdecimal() else None
    if column is None:
        return None
    row, found = int(name), require_regular(shard)
    with _lock:
        groups = _group_ends(shard, found.st_size, found.st_mtime_ns)
        group = next((number for number, end in enumerate(groups) if row < end), None)
        if group is None:
            return None
        images = _row_group(shard, found.st_size, found.st_mtime_ns, column, group)
    value = images[row - (groups[group - 1] if group else 0)]
    content = value.get("bytes") if isinstance(value, dict) else value
    return content if isinstance(content, bytes) else b""


@lru_cache(maxsize=64)
def _group_ends(shard: Path, _size: int, _changed: int) -> list[int]:
    about = _opened(shard).metadata
    ends, total = [], 0
    for group in range(about.num_row_groups):
        total += about.row_group(group).num_rows
        ends.append(total)
    return ends


@lru_cache(maxsize=2)  # images are read in order, by threads that may be in two groups
def _row_group(shard: Path, _size: int, _changed: int, column: str, group: int) -> list[Any]:
    return list(_opened(shard).read_row_group(group, [column]).column(0).to_pylist())
