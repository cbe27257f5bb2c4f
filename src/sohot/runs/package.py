"""A folder with a trained model that labels images elsewhere, with numpy, Pillow and onnxruntime alone."""

import hashlib
from dataclasses import asdict
from datetime import datetime, timezone
from importlib import import_module
from pathlib import Path
from typing import Any

from .. import __version__
from .._files import to_json, write_bytes
from .._new_folder import building, require_new
from ..training.errors import ExportError
from . import packaged_predict
from .loaded_run import LoadedModel, export_run
from .model_card import about_network, describe_model, model_card

MODEL, ABOUT = "model.onnx", "package.json"
REQUIREMENTS = {"numpy": "numpy", "pillow": "PIL", "onnxruntime": "onnxruntime"}
"""All that the package needs besides Python: what is installed, and what is imported."""
_FORMAT = 1


def write_package(run: LoadedModel, path: Path, folder: Path) -> dict[str, Any]:
    """Write a model, its labels, its preprocessing, a script that applies it and a model card to a new folder.

    The folder appears once it is complete, and after onnxruntime has returned the same logits as PyTorch.

    Args:
        run: The run, or the head, on the CPU.
        path: Where it was loaded from; its files tell what the model card says.
        folder: The folder to write, missing or empty.

    Returns:
        The folder, and what `package.json` says: a checksum of each file, the temperature, and how closely
        onnxruntime agrees.

    Raises:
        ValueError: The folder holds something.
        ExportError: The model cannot be exported.
    """
    require_new(folder, "--package")
    made = datetime.now(timezone.utc)
    card = model_card(path, run.input, f"made by sohot {__version__} on {made:%Y-%m-%d}")
    with building(folder) as draft:
        try:
            result = export_run(run, draft / MODEL)
        except ExportError as error:  # the draft is of no interest
            raise ExportError(str(error).replace(str(draft), str(folder))) from error
        contents = {
            "labels.json": to_json(list(run.classes)),
            "preprocessing.json": to_json({**asdict(run.input), "channels": run.input.channels}),
            "predict.py": Path(packaged_predict.__file__).read_bytes(),
            "requirements.txt": _requirements().encode(),
            "README.md": card.encode(),
        }
        for name, content in contents.items():
            write_bytes(draft / name, content)
        about = {
            "format": _FORMAT,
            "sohot": __version__,
            "made": made.isoformat(timespec="seconds"),
            "method": run.method,
            "network": about_network(describe_model(path)["network"]),
            "classes": len(run.classes),
            "input": result["input"],
            "temperature": result["temperature"],
            "largest_difference": result["largest_difference"],
            "files": {name: _stamp(draft / name) for name in (MODEL, *contents)},
        }
        write_bytes(draft / ABOUT, to_json(about))
    return {"package": str(folder), **about}


def _requirements() -> str:
    """Pin the versions in use here; asked of the modules, because onnxruntime is installed under several names."""
    versions = {name: str(import_module(module).__version__) for name, module in REQUIREMENTS.items()}
    return "".join(f"{name}=={version.partition('+')[0]}\n" for name, version in versions.items())


def _stamp(file: Path) -> dict[str, Any]:
    content = file.read_bytes()
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
