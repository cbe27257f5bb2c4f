"""Arrays of an `.npz` file that a stranger may have made: without pickle, and never more than fits in memory."""

import math
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy.typing as npt
import psutil
from numpy.lib import format as npy

from .._reading import open_regular

_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_ENCRYPTED = 0x1
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # what numpy writes


def read_arrays(file: Path, names: Iterable[str]) -> dict[str, npt.NDArray[Any]]:
    """Read arrays by name; a few bytes that would unpack to more than the free memory are refused beforehand.

    Raises:
        ValueError: It is not such a file, an array is missing, or they do not fit in memory.
        zipfile.BadZipFile: The archive is damaged; zlib.error is possible too.
    """
    with _opened(file) as archive:
        there = {info.filename: info for info in archive.infolist()}
        wanted = {name: there.get(f"{name}.npy") for name in names}
        parts = {name: _whole(name, info) for name, info in wanted.items()}
        needed, free = sum(info.file_size for info in parts.values()), psutil.virtual_memory().available
        if needed > free:
            raise ValueError(f"its arrays take {needed / 1e9:.1f} GB, but {free / 1e9:.1f} GB of memory are free")
        return {name: _read_array(archive, name, info) for name, info in parts.items()}


def array_names(file: Path) -> set[str]:
    """List the names of a file's arrays, without reading them; it raises what `read_arrays` raises."""
    with _opened(file) as archive:
        return {name.removesuffix(".npy") for name in archive.namelist()}


@contextmanager
def _opened(file: Path) -> Iterator[zipfile.ZipFile]:
    with open_regular(file) as stream:
        if not zipfile.is_zipfile(stream):
            raise ValueError("it is not an .npz file")
        with zipfile.ZipFile(stream) as archive:
            yield archive


def _whole(name: str, info: zipfile.ZipInfo | None) -> zipfile.ZipInfo:
    if info is None:
        raise ValueError(f"it has no array {name!r}")
    if info.flag_bits & _ENCRYPTED or info.compress_type not in _PACKED:
        raise ValueError(f"the array {name!r} is not packed as numpy packs it")
    return info


def _read_array(archive: zipfile.ZipFile, name: str, info: zipfile.ZipInfo) -> npt.NDArray[Any]:
    with archive.open(info) as part:
        header = _HEADERS.get(npy.read_magic(part))  # type: ignore[no-untyped-call,unused-ignore]
        if header is None:
            raise ValueError(f"the array {name!r} has an unknown version")
        shape, _, dtype = header(part)  # type: ignore[no-untyped-call,unused-ignore]
        if dtype.hasobject:
            raise ValueError(f"the array {name!r} holds pickled objects")
        if math.prod(shape) * dtype.itemsize != info.file_size - part.tell():
            raise ValueError(f"the array {name!r} has another size than its header declares")
    with archive.open(info) as part:
        array: npt.NDArray[Any] = npy.read_array(part, allow_pickle=False)  # type: ignore[no-untyped-call,unused-ignore]
    return array
