"""`sohot weights`: carry a network's weights to a machine without a connection."""

from contextlib import nullcontext, redirect_stderr
from dataclasses import asdict
from io import StringIO
from pathlib import Path
from typing import Annotated

import typer

from .._outputs import STDOUT, is_stream, write_output
from ..networks.names import check_backbone_name
from .one_value import OneValueCommand
from .options import Json, Quiet
from .output import print_json, print_text, require_one_output, results_only, say

weights_app = typer.Typer(
    name="weights",
    help="Carry a network's weights to a machine without a connection.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
SUFFIX = ".safetensors"


@weights_app.command("pack", cls=OneValueCommand)
def pack(
    backbone: Annotated[
        str,
        typer.Argument(
            metavar="BACKBONE",
            help="Network whose weights are published: timm:NAME, resnet50, alexnet, vgg16, lite2, …",
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", help=f"File to write, {SUFFIX}; - for standard output.", show_default=False)
    ],
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Download the trained weights of a network into one file, which also says what they are for.

    Run it where there is a connection, then copy the file and give it to --weights of the other commands.

    The file holds plain tensors, so reading it runs no code; it is refused for any other network.

    For example:

        sohot weights pack timm:vit_small_patch14_dinov2.lvd142m --out dinov2.safetensors

        sohot fit --backbone timm:vit_small_patch14_dinov2.lvd142m --weights dinov2.safetensors --source photos …
    """
    check_backbone_name(backbone, "BACKBONE")
    require_one_output(out, "--out", json)
    if out.suffix != SUFFIX and not is_stream(out):
        raise ValueError(f"--out {out} must end in {SUFFIX}")
    from ..networks.packed_weights import pack_weights  # takes a moment, as it imports torch
    from ..runs.predictions import require_writable

    require_writable(out)
    if not quiet:
        say(f"fetching the weights of {backbone}")
    with results_only(), redirect_stderr(StringIO()) if quiet else nullcontext():  # hubs show bars of their own
        packed = pack_weights(backbone)
    content = packed.to_bytes()
    write_output(out, content)
    if json:
        print_json(
            {
                "out": str(out),
                "backbone": packed.backbone,
                "input": asdict(packed.input),
                "tensors": len(packed.state),
                "bytes": len(content),
            }
        )
        return
    tell = say if out == STDOUT else print_text
    side = packed.input.size
    tell(f"{out}: weights of {packed.backbone}, {len(content) / 1e6:.1f} MB, for images of {side} x {side}")
    if not quiet:
        say(f"use them by: --backbone {packed.backbone} --weights {'FILE' if out == STDOUT else out}")
