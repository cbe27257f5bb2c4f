"""`sohot export`: the adapted model for other programs; the work itself is imported when it is called."""

from pathlib import Path
from typing import Annotated

import typer

from .._new_folder import require_new
from ..runs.package_hub import check_repository_name
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
    hub: Annotated[
        str | None,
        typer.Option(
            "--hub",
            metavar="OWNER/NAME",
            help="Also upload the package to this repository of the Hugging Face hub; it is private, unless --public.",
            show_default=False,
        ),
    ] = None,
    public: Annotated[bool, typer.Option("--public", help="With --hub: let everybody see and use it.")] = False,
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

        sohot export runs/first --package sketches-model --hub me/sketches-model
    """
    if (onnx is None) == (package is None):
        raise ValueError("export writes one thing: give --onnx FILE or --package DIR")
    if hub is not None:
        if package is None:
            raise ValueError("--hub uploads a package: give --package DIR instead of --onnx")
        check_repository_name(hub)
    elif public:
        raise ValueError("--public is about --hub: give --hub OWNER/NAME, too")
    if package is not None:
        require_new(package, "--package")
    from .finished_runs import export_file, export_package

    if onnx is not None:
        export_file(run, onnx, json=json, trust=trust, weights=weights)
    elif package is not None:
        export_package(run, package, hub=hub, public=public, json=json, trust=trust, weights=weights)
