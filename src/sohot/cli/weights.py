"""`sohot weights`: the networks that we recommend, and their weights for a machine without a connection."""

from contextlib import nullcontext, redirect_stderr
from dataclasses import asdict
from io import StringIO
from pathlib import Path
from typing import Annotated

import typer

from .._outputs import STDOUT, is_stream, write_output
from ..networks.names import check_backbone_name
from ..networks.recommended import RECOMMENDED, RecommendedNetwork
from .options import Json, Quiet
from .output import print_json, print_text, require_one_output, results_only, say

SUFFIX = ".safetensors"


def weights(
    backbone: Annotated[
        str | None,
        typer.Argument(
            metavar="BACKBONE",
            help="Network whose weights are published: dinov2-small, timm:NAME, resnet50, …",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help=f"File to write, {SUFFIX}; - for standard output.", show_default=False),
    ] = None,
    list_networks: Annotated[bool, typer.Option("--list", help="List the networks that we recommend.")] = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """List the networks that we recommend, or carry the weights of one to a machine without a connection.

    Where there is a connection, the weights go into one file. Copy it, and give it to --weights of the other commands.
    The file holds plain tensors, so reading it runs no code; it is refused for any other network.

    For example:

        sohot weights --list

        sohot weights dinov2-small --out dinov2-small.safetensors

        sohot fit --backbone dinov2-small --weights dinov2-small.safetensors --source photos …
    """
    if list_networks:
        if backbone is not None or out is not None:
            raise ValueError("--list prints all networks that we recommend: give it alone")
        _print_networks(json)
        return
    if backbone is None:
        raise ValueError("give a BACKBONE and --out FILE, or --list to see which networks we recommend")
    if out is None:
        raise ValueError(f"--out is missing: give the file to write, e.g. --out {Path(backbone).name}{SUFFIX}")
    _pack(backbone, out, quiet=quiet, json=json)


def _print_networks(json: bool) -> None:
    if json:
        print_json({"networks": [asdict(network) for network in RECOMMENDED]})
        return
    rows = [COLUMNS, *(_cells(network) for network in RECOMMENDED)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print_text("  ".join(map(str.ljust, row, widths)).rstrip())
    print_text("cost: CPU time for an image, as a multiple of that of lite0")


COLUMNS = ("name", "side", "features", "MB", "weights", "cost", "licence", "publisher", "trained on")


def _cells(network: RecommendedNetwork) -> tuple[str, ...]:
    return (
        network.name,
        str(network.side),
        network.features,
        str(network.megabytes),
        network.weights,
        f"{network.cost:g}",
        network.licence,
        network.publisher,
        network.trained_on,
    )


def _pack(backbone: str, out: Path, *, quiet: bool, json: bool) -> None:
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
        say(f"use them by: --backbone {backbone} --weights {'FILE' if out == STDOUT else out}")
