"""A run as one ONNX file that tells how to feed it and what its outputs mean."""

import json
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..training import export_onnx
from .loading import LoadedRun

_NEEDED = ("onnx", "onnxscript", "onnxruntime")


def metadata(run: LoadedRun) -> dict[str, str]:
    """Give the texts stored in the file: the classes in the order of the logits, and the preprocessing, as JSON."""
    spec = run.input
    steps = {
        **asdict(spec),
        "channels": spec.channels,
        "colour": "RGB" if spec.channels == 3 else "grey",
        "order": "upright, shorter side to `resize`, centre crop of `size`, / 255, − mean, / std",
    }
    return {
        "classes": json.dumps(run.classes, ensure_ascii=False),
        "preprocessing": json.dumps(steps, ensure_ascii=False),
        "producer": "sohot",
        "method": str(run.description["settings"]["method"]),
    }


def export_run(run: LoadedRun, file: Path) -> dict[str, Any]:
    """Write the target stream of a run as ONNX, compared with PyTorch before it is called done.

    Returns:
        The file, the largest difference seen, the classes and the size of the images.
    """
    if missing := [name for name in _NEEDED if find_spec(name) is None]:
        raise ModuleNotFoundError(f"export needs {', '.join(missing)}: pip install 'sohot[onnx]'")
    difference = export_onnx(run.model.target_only(), run.input, file, metadata=metadata(run))
    spec = run.input
    return {
        "onnx": str(file),
        "bytes": file.stat().st_size,
        "largest_difference": difference,
        "input": [spec.channels, spec.size, spec.size],
        "classes": list(run.classes),
    }
