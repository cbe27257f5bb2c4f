"""Files of a run, without torch: which exist, and what they say besides tensors."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .._reading import read_json
from .errors import CorruptCheckpoint, OtherVersion


def remove_folder(folder: Path) -> None:
    """Remove a folder atomically, so that its name never refers to half of it."""
    doomed = folder.with_name(f".{folder.name}.{os.getpid()}.old")
    os.replace(folder, doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def remove_leftovers(folder: Path) -> None:
    """Remove what a process killed while writing left in a folder."""
    for pattern in (".*.tmp", ".*.old"):
        for path in folder.glob(pattern):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


FORMAT = 1
"""Number of the format; any other is refused."""

_NAME = re.compile(r"step-(\d+)")


def checkpoint_folders(root: Path) -> list[Path]:
    """List the checkpoints in a folder, the newest first."""
    if not root.is_dir():
        return []
    numbered = [(int(match[1]), path) for path in root.iterdir() if (match := _NAME.fullmatch(path.name))]
    return [path for _, path in sorted(numbered, reverse=True)]


def read_description(file: Path) -> dict[str, Any]:
    """Read the JSON file of a checkpoint or a run and check its format."""
    try:
        description = read_json(file)
    except FileNotFoundError as error:
        raise CorruptCheckpoint(f"{file.parent} is incomplete: {file.name} is missing") from error
    except (OSError, ValueError) as error:
        raise CorruptCheckpoint(f"{file} cannot be read: {error}") from error
    if not isinstance(description, dict) or "format" not in description:
        raise CorruptCheckpoint(f"{file} is damaged: it does not state its format")
    if description["format"] != FORMAT:
        version = description.get("versions", {}).get("sohot", "unknown")
        raise OtherVersion(
            f"{file.parent} was written by sohot {version} in format {description['format']}, "
            f"this version reads format {FORMAT}: use that version, or start a new run in another folder"
        )
    return description


def differences(before: Any, now: Any, name: str) -> Iterator[str]:
    """Name the differences between two JSON values.

    >>> list(differences({"lr": 0.1, "steps": 5}, {"lr": 0.2, "steps": 5}, "settings"))
    ['settings.lr was 0.1, is 0.2']
    """
    if isinstance(before, dict) and isinstance(now, dict):
        for key in sorted({*before, *now}):
            yield from differences(before.get(key), now.get(key), f"{name}.{key}")
    elif before != now:
        yield f"{name} was {before!r}, is {now!r}"
