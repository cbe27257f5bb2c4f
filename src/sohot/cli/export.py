"""`sohot export`: the adapted model for other programs; the work itself is imported when it is called."""

from pathlib import Path
from typing import Annotated

import typer

from .._new_folder import require_new
from .options import HeadWeights, Json, Run, Trust


def export(
    run: Run,
    onnx: Annotated[
        Path | None, typer.Option("--onnx", help="ONNX file to write; - for standard output.", show_default=False)
    ] = None,
    package: Annotated[
        Path | None,
        typer.Option("--package", help="New folder for a package that runs without sohot.", show_default=False),
    ] = None,
    json: Json = False,
    trust: Trust = False,
    weights: HeadWeights = None,
) -> None:
    """Write the adapted model for other programs, and check it with onnxruntime.

    --onnx writes one file, which takes batches of any size and holds the class names and the preprocessing.

    --package writes a folder that needs numpy, Pillow and onnxruntime alone: the model, a script, a model card.

    Softmax makes calibrated probabilities of the model's logits, if the run is calibrated (see `sohot info`).

    For example:

        sohot export runs/first --onnx model.onnx

        sohot export runs/first --package sketches-model
    """
    if (onnx is None) == (package is None):
        raise ValueError("export writes one thing: give --onnx FILE or --package DIR")
    if package is not None:
        require_new(package, "--package")
    from .finished_runs import export_file, export_package

    if onnx is not None:
        export_file(run, onnx, json=json, trust=trust, weights=weights)
    elif package is not None:
        export_package(run, package, json=json, trust=trust, weights=weights)
