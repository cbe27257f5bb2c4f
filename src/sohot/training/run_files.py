"""Files of a run, without torch: which exist, and what they say besides tensors."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .._files import hidden_beside, is_full, is_intact
from .._reading import read_json
from .errors import CorruptCheckpoint, OtherVersion


def remove_folder(folder: Path) -> None:
    """Remove a folder atomically, so that its name never refers to half of it."""
    doomed = hidden_beside(folder, "old")
    os.replace(folder, doomed)
    shutil.rmtree(doomed, ignore_errors=True)


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
    """Read the JSON file of a checkpoint or a run, and check that it is intact and of our format."""
    try:
        description = read_json(file)
    except FileNotFoundError as error:
        raise CorruptCheckpoint(f"{file.parent} is incomplete: {file.name} is missing") from error
    except (OSError, ValueError) as error:
        raise CorruptCheckpoint(f"{file} cannot be read: {error}") from error
    if not isinstance(description, dict) or "format" not in description:
        raise CorruptCheckpoint(f"{file} is damaged: it does not state its format")
    if not is_intact(description):
        raise CorruptCheckpoint(f"{file} is damaged: its content differs from its checksum")
    if description["format"] != FORMAT:
        versions = description.get("versions")
        version = versions.get("sohot", "unknown") if isinstance(versions, dict) else "unknown"
        raise OtherVersion(
            f"{file.parent} was written by sohot {version} in format {description['format']}, "
            f"this version reads format {FORMAT}: use that version, or start a new run in another folder"
        )
    return description


def how_to_go_on(error: OSError) -> str:
    """Say what to do about an error of writing, if we know; to be appended to a sentence."""
    return "; free some space and resume" if is_full(error) else ""


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
