"""IDX files, the format of MNIST: a small head, then bytes; compressed with gzip or not."""

import gzip
import threading
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from .decode import UnreadableImage, file_state

_UNSIGNED_BYTES = 0x08
_lock = threading.Lock()


def read_idx(file: Path) -> npt.NDArray[np.uint8]:
    """Read an IDX file of unsigned bytes: images (n, height, width) or labels (n,). The last few files are remembered.

    Raises:
        UnreadableImage: It is missing, cut short or no such file.
    """
    stat = file_state(file)
    with _lock:  # threads that ask at once wait for one reading
        return _read(file, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=8)
def _read(file: Path, _size: int, _changed: int) -> npt.NDArray[np.uint8]:
    try:
        content = file.read_bytes()
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
    shape = [int.from_bytes(content[place : place + 4], "big") for place in range(4, start, 4)]
    wanted = start + int(np.prod(shape, dtype=object))
    if len(content) != wanted:
        raise UnreadableImage(file, f"its head promises {wanted} bytes, it has {len(content)}")
    values: npt.NDArray[np.uint8] = np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)
    return values
