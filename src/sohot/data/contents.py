"""Which images are byte-identical copies of one another."""

import hashlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .._reading import open_regular
from .decode import UnreadableImage, default_workers, file_state, system_reason
from .labelled import LabelledImages
from .readers import find_reader

_CHUNK = 1 << 20


def content_keys(lists: Sequence[LabelledImages]) -> list[list[str]]:
    """Return a key for each image; two keys are equal exactly if the images' bytes are.

    Only files of equal size are read, so this is quick even for a large data set. Keys are comparable within one call,
    not across calls. Two boxes in one file are two images; images in a file that holds many are compared by their own
    bytes.

    Args:
        lists: Lists of images, also compared with one another.

    Raises:
        UnreadableImage: A file is missing or cannot be read.
    """
    file_keys = _file_keys({file for images in lists if not _holds_many(images) for file in images.files})
    return [[_key(images, row, file_keys) for row in range(len(images))] for images in lists]


def new_rows(images: LabelledImages, known: Sequence[LabelledImages]) -> list[int]:
    """Return the rows whose images are byte-identical to none of the known ones."""
    *others, own = content_keys([*known, images])
    seen = {key for keys in others for key in keys}
    return [row for row, key in enumerate(own) if key not in seen]


def _holds_many(images: LabelledImages) -> bool:
    return find_reader(images.reader).content is not None


def _key(images: LabelledImages, row: int, file_keys: dict[Path, str]) -> str:
    content, part = find_reader(images.reader).content, images.part(row)
    if content is not None:
        return hashlib.sha256(content(images.files[row], part)).hexdigest()
    return f"{file_keys[images.files[row]]}#{part}"


def _file_keys(files: Iterable[Path]) -> dict[Path, str]:
    by_size: dict[int, list[Path]] = {}
    for file in files:
        by_size.setdefault(file_state(file).st_size, []).append(file)
    keys = {same[0]: f"the only file of {size} bytes" for size, same in by_size.items() if len(same) == 1}
    doubtful = [file for same in by_size.values() if len(same) > 1 for file in same]
    with ThreadPoolExecutor(default_workers(), thread_name_prefix="sohot-hash") as pool:
        keys.update(zip(doubtful, pool.map(_hash, doubtful), strict=True))
    return keys


def _hash(file: Path) -> str:
    digest = hashlib.sha256()
    try:
        with open_regular(file) as stream:
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
    except OSError as error:
        raise UnreadableImage(file, system_reason(error)) from error
    return digest.hexdigest()
