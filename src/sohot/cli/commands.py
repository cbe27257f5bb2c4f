"""The commands of `sohot`."""

from pathlib import Path
from typing import Annotated

import typer

from .. import __version__
from .fit import make_fit

app = typer.Typer(
    name="sohot",
    help="Adapt an image classifier to a domain with a handful of labels per class.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

Run = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run, made by `sohot fit`.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or mps.")]
Workers = Annotated[int | None, typer.Option("--workers", min=0, help="Threads that read images.")]

app.command("fit")(make_fit())


@app.callback(invoke_without_command=True)
def _top(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        typer.echo(f"sohot {__version__}")
        raise typer.Exit
