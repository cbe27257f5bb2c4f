"""Checkpoints: folders of safetensors files with a JSON description, always complete.

A checkpoint is written to a hidden folder, flushed to disk, and renamed. The description is the last file written; it
lists every other file with its size and checksum and bears one itself, so that damage is noticed before anything is
loaded.
"""

import os
import shutil
import warnings
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as read_tensors
from safetensors.torch import save as tensors_to_bytes
from torch import Tensor

from .._files import hidden_beside, refuse_link, sealed, sync_folder, to_json, write_bytes
from .._reading import inside, read_regular
from .errors import CheckpointError, CorruptCheckpoint
from .run_files import FORMAT, checkpoint_folders, how_to_go_on, read_description, remove_folder

DESCRIPTION = "checkpoint.json"

Tensors = Mapping[str, Mapping[str, Tensor]]


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint in memory: tensors by file and name, and its description."""

    folder: Path
    step: int
    tensors: dict[str, dict[str, Tensor]]
    description: dict[str, Any]


def save_checkpoint(root: Path, step: int, tensors: Tensors, description: Mapping[str, Any], keep: int = 2) -> Path:
    """Write a checkpoint and remove the oldest ones.

    Args:
        root: Folder that holds the checkpoints of a run.
        step: Number of steps done.
        tensors: Tensors by file name (without its suffix) and by name.
        description: The rest of the state, as JSON values.
        keep: How many of the newest checkpoints to keep.

    Returns:
        The folder of the checkpoint.
    """
    final = root / _name(step)
    temporary = hidden_beside(final)
    try:
        refuse_link(root).mkdir(parents=True, exist_ok=True)
        temporary.mkdir()
        files = {f"{name}.safetensors": _write_tensors(temporary, name, content) for name, content in tensors.items()}
        head = {"format": FORMAT, "step": step, "files": files}
        write_bytes(temporary / DESCRIPTION, to_json(sealed({**head, **description})))
        sync_folder(temporary)
        if final.exists():  # a damaged one of the same step
            remove_folder(final)
        os.replace(temporary, final)
        sync_folder(root)
        for old in checkpoint_folders(root)[keep:]:
            remove_folder(old)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        good = next((folder.name for folder in checkpoint_folders(root)), None)
        kept = f"the last good one is {good}" if good else "there is none before it"
        raise CheckpointError(
            f"the checkpoint of step {step} could not be written to {root}: {error.strerror or error}; {kept}"
            f"{how_to_go_on(error)}"
        ) from error
    return final


def latest_checkpoint(root: Path) -> Checkpoint | None:
    """Load the newest complete checkpoint; None if there is none.

    A damaged checkpoint is skipped with a warning. One of another format is refused.
    """
    damaged: dict[Path, str] = {}
    while folders := [folder for folder in checkpoint_folders(root) if folder not in damaged]:
        try:
            return load_checkpoint(folders[0])
        except CorruptCheckpoint as error:
            if os.path.lexists(folders[0]):  # else the run that trains here has removed it, after writing a newer one
                damaged[folders[0]] = str(error)
                warnings.warn(f"{error}; falling back to the previous checkpoint", stacklevel=2)
    if damaged:
        raise CorruptCheckpoint(f"no checkpoint in {root} can be used: {'; '.join(damaged.values())}")
    return None


def load_checkpoint(folder: Path) -> Checkpoint:
    """Load one checkpoint after checking each of its files."""
    description = read_description(folder / DESCRIPTION)
    try:
        step, files = int(description["step"]), dict(description["files"])
        tensors = {
            Path(name).stem: _read_tensors(inside(folder, name), int(stamp["bytes"]), int(stamp["crc32"]))
            for name, stamp in files.items()
        }
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CorruptCheckpoint(f"{folder / DESCRIPTION} is damaged: {error!r}") from error
    if folder.name != _name(step):
        raise CorruptCheckpoint(f"{folder} is damaged: its description is that of step {step}")
    return Checkpoint(folder, step, tensors, description)


def _name(step: int) -> str:
    return f"step-{step:08d}"


def _write_tensors(folder: Path, name: str, tensors: Mapping[str, Tensor]) -> dict[str, int]:
    content = tensors_to_bytes(_each_by_itself(tensors))
    write_bytes(folder / f"{name}.safetensors", content)
    return {"bytes": len(content), "crc32": zlib.crc32(content)}


def _each_by_itself(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copy tensors that share memory with another (two streams may share layers): safetensors needs each separately."""
    seen: set[int] = set()
    result = {}
    for name, tensor in tensors.items():
        own = tensor.detach().cpu().contiguous()
        address = own.untyped_storage().data_ptr()
        result[name] = own.clone() if address in seen else own
        seen.add(address)
    return result


def _read_tensors(file: Path, size: int, checksum: int) -> dict[str, Tensor]:
    try:
        content = read_regular(file, most=size)
        if len(content) != size or zlib.crc32(content) != checksum:
            raise CorruptCheckpoint(f"{file} is damaged: its checksum differs from the one in {DESCRIPTION}")
        return read_tensors(content)
    except (OSError, SafetensorError) as error:
        raise CorruptCheckpoint(f"{file} cannot be read: {error}") from error
