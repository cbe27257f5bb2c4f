"""A fitted classifier in one file: tensors and JSON, no pickle."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
from safetensors import SafetensorError, safe_open

from .._files import write_atomically
from ..stacked import StackedFit
from .domains import Labels

FORMAT = "sohot classifier of features, 1"


def write_fit(file: Path, fit: StackedFit, classes: Labels, about: dict[str, Any]) -> None:
    """Write a fit so that the file is there whole or not at all.

    Args:
        file: The file, usually `.safetensors`.
        fit: The trained networks.
        classes: Labels of the classes: numbers, texts or truth values.
        about: What else to keep; of what JSON does not know, arrays become lists and anything else None.
    """
    if not file.parent.is_dir():
        raise FileNotFoundError(f"{file}: its folder does not exist")
    tensors, config = fit.state()
    kind = "U" if classes.dtype.kind == "O" else classes.dtype.str
    values = [str(one) for one in classes] if kind == "U" else classes.tolist()
    content = {"config": config, "classes": values, "label_type": kind, "about": about}
    metadata = {"format": FORMAT, "content": json.dumps(content, default=_plain)}
    write_atomically(file, safetensors.torch.save(tensors, metadata))


def read_fit(file: Path) -> tuple[StackedFit, Labels, dict[str, Any]]:
    """Read what `write_fit` wrote: the fit, the classes and the rest.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It holds something else or is damaged.
    """
    if not file.is_file():
        raise FileNotFoundError(f"{file}: there is no such file")
    try:
        with safe_open(file, framework="pt") as stored:
            metadata = stored.metadata() or {}
            if metadata.get("format") != FORMAT:
                raise ValueError(f"its format is {metadata.get('format', 'unknown')!r}")
            content = json.loads(metadata["content"])
            tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118 - it is no dict
        fit = StackedFit.from_state(tensors, content["config"])
        return fit, np.asarray(content["classes"], dtype=content["label_type"]), dict(content["about"])
    except (SafetensorError, ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{file} is no classifier that sohot has saved: {' '.join(str(error).split())}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    return str(value) if type(value).__module__ == "torch" else None
