"""Files of digits: IDX, the format of MNIST, and USPS in the format of LIBSVM's site."""

import bz2
import gzip
import threading
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from .._reading import read_regular
from .decode import UnreadableImage, file_state

_UNSIGNED_BYTES = 0x08
_lock = threading.Lock()


def read_idx(file: Path) -> npt.NDArray[np.uint8]:
    """Read an IDX file of unsigned bytes: images (n, height, width) or labels (n,). The last few files are cached.

    Raises:
        UnreadableImage: It is missing, cut short or not such a file.
    """
    stat = file_state(file)
    with _lock:  # concurrent threads wait for one read
        return _read_compressed(file, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=8)
def _read_compressed(file: Path, _size: int, _changed: int) -> npt.NDArray[np.uint8]:
    try:
        content = read_regular(file)
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
    except (OSError, EOFError) as error:
        raise UnreadableImage(file, f"it cannot be unpacked: {error}") from error
    return parse_idx(content, file)


def parse_idx(content: bytes, file: Path) -> npt.NDArray[np.uint8]:
    """Read the content of an IDX file; `file` is for messages.

    >>> parse_idx(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]), Path("labels")).tolist()
    [7, 9]
    """
    if len(content) < 4 or content[:2] != b"\0\0":
        raise UnreadableImage(file, "it is not an IDX file")
    kind, dimensions = content[2], content[3]
    if kind != _UNSIGNED_BYTES:
        raise UnreadableImage(file, f"it holds values of IDX type {kind:#04x}; images and labels are bytes (0x08)")
    start = 4 + 4 * dimensions
    shape = [int.from_bytes(content[offset : offset + 4], "big") for offset in range(4, start, 4)]
    wanted = start + int(np.prod(shape, dtype=object))
    if len(content) != wanted:
        raise UnreadableImage(file, f"its header declares {wanted} bytes, but it has {len(content)}")
    values: npt.NDArray[np.uint8] = np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)
    return values


SIDE = 16
_Bytes = npt.NDArray[np.uint8]
_parse_lock = threading.Lock()


def read_usps(file: Path) -> tuple[_Bytes, _Bytes]:
    """Read `usps.bz2` or `usps.t.bz2`, or the unpacked text: images (n, 16, 16) and their digits (n,).

    A line reads `LABEL 1:VALUE 2:VALUE … 256:VALUE`: the label is the digit plus one, the values run from −1 (paper) to
    1 (ink). The last few files are cached.

    Raises:
        UnreadableImage: It is missing, cut short or not such a file.
    """
    stat = file_state(file)
    with _parse_lock:
        return _read_lines(file, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=4)
def _read_lines(file: Path, _size: int, _changed: int) -> tuple[_Bytes, _Bytes]:
    try:
        content = read_regular(file)
        text = (bz2.decompress(content) if content.startswith(b"BZh") else content).decode("ascii")
    except (OSError, EOFError, ValueError) as error:
        raise UnreadableImage(file, f"it cannot be unpacked: {error}") from error
    lines = [line for line in text.splitlines() if line.strip()]
    images = np.zeros((len(lines), SIDE * SIDE))  # in this format an omitted value is 0
    digits = np.zeros(len(lines), dtype=np.uint8)
    for number, line in enumerate(lines):
        try:
            label, values = _parse(line)
            images[number, values[0]] = values[1]
            digits[number] = label
        except (ValueError, IndexError) as error:
            raise UnreadableImage(file, f"line {number + 1} is not 'LABEL 1:VALUE … 256:VALUE' ({error})") from None
    scaled = np.round((images.clip(-1, 1) + 1) * 127.5).astype(np.uint8)
    return scaled.reshape(-1, SIDE, SIDE), digits


def _parse(line: str) -> tuple[int, tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]]:
    label, *pairs = line.split()
    numbers = np.array(" ".join(pairs).replace(":", " ").split(), dtype=np.float64).reshape(-1, 2)
    places = numbers[:, 0].astype(np.int64) - 1
    digit = int(float(label)) - 1
    if not 0 <= digit <= 9:
        raise ValueError(f"the label must lie in 1 … 10, got {label}")
    if len(places) and not (places.min() >= 0 and places.max() < SIDE * SIDE):
        raise ValueError(f"indices must lie in 1 … {SIDE * SIDE}")
    return digit, (places, numbers[:, 1])
