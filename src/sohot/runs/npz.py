"""Arrays of an `.npz` file that a stranger may have made: without pickle, and never more than fits in memory."""

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import psutil

from .._reading import open_regular


def read_arrays(file: Path, names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    """Read arrays by name; a few bytes that would unpack to more than the free memory are refused beforehand.

    Raises:
        ValueError: It is not such a file, or an array is missing.
        MemoryError: The arrays do not fit in memory.
        zipfile.BadZipFile: The archive is damaged; zlib.error is possible too.
    """
    with _opened(file) as archive:
        if missing := [name for name in names if name not in archive.files]:
            raise ValueError(f"it has no array {missing[0]!r}")
        needed = sum(archive.zip.getinfo(f"{name}.npy").file_size for name in names)
        free = psutil.virtual_memory().available
        if needed > free:
            raise MemoryError(f"its arrays take {needed / 1e9:.1f} GB, but {free / 1e9:.1f} GB of memory are free")
        return {name: archive[name] for name in names}


def array_names(file: Path) -> set[str]:
    """List the names of a file's arrays, without reading them; it raises what `read_arrays` raises."""
    with _opened(file) as archive:
        return set(archive.files)


@contextmanager
def _opened(file: Path) -> Iterator[Any]:
    with open_regular(file) as stream:
        if not zipfile.is_zipfile(stream):
            raise ValueError("it is not an .npz file")
        stream.seek(0)
        with np.load(stream, allow_pickle=False) as archive:
            yield archive
