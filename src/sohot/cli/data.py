"""`sohot data`: check, split and fetch data sets."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from .._outputs import STDOUT, write_output
from ..data.check import CheckReport, check_dataset
from ..data.datasets import dataset_names, open_dataset
from ..data.datasets.class_table import read_class_table
from ..data.datasets.dataset import DataSet
from ..data.datasets.sources import Source, dataset_sources
from ..data.fetch import fetch_file
from ..data.protocols import POOL, PROTOCOLS, SUPERVISED, make_split
from ..data.protocols.split import split_bytes
from .one_value import OneValueCommand
from .options import MORE, Json, Quiet
from .output import MOST_LISTED, bar, print_json, print_text, say

data_app = typer.Typer(
    name="data", help="Check, split and fetch data sets.", no_args_is_help=True, pretty_exceptions_enable=False
)

Name = Annotated[str, typer.Argument(metavar="NAME", help=f"The data set: {', '.join(dataset_names())}.")]
Root = Annotated[
    Path, typer.Argument(metavar="ROOT", help="The folder it was unpacked in; of `domains` also a list of images.")
]
Classes = Annotated[
    Path | None,
    typer.Option("--classes", help="JSON table of class names, instead of the built-in one.", rich_help_panel=MORE),
]
Options = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="KEY=VALUE",
        help="Option of the data set: whole, difficult, truncated; part.",
        rich_help_panel=MORE,
    ),
]


@data_app.command("check", cls=OneValueCommand)
def check(
    name: Name,
    root: Root,
    as_json: Json = False,
    quick: Annotated[bool, typer.Option("--quick", help="Count and compare, but do not decode the images.")] = False,
    classes: Classes = None,
    option: Options = None,
    quiet: Quiet = False,
) -> None:
    """Count, compare with the official release, decode every image, find exact duplicates. Exit code 1 on problems."""
    dataset = _open(name, root, classes, option)
    with bar(quiet) as progress:
        report = check_dataset(dataset, decode=not quick, progress=progress)
    if as_json:
        print_json(report.as_dict())
    else:
        _print_report(report)
    if report.problems():
        raise typer.Exit(1)


@data_app.command("split", cls=OneValueCommand)
def split(
    name: Name,
    root: Root,
    shift: Annotated[str | None, typer.Option("--shift", help="Source and target domain, such as A-W.")] = None,
    number: Annotated[int, typer.Option("--split", help="Number of the split.")] = 1,
    protocol: Annotated[str, typer.Option("--protocol", help=f"{', '.join(PROTOCOLS)}.")] = "paper",
    target_shots: Annotated[int | None, typer.Option("--target-shots", help="Target images per class.")] = None,
    source_shots: Annotated[int | None, typer.Option("--source-shots", help="Source images per class.")] = None,
    validation_shots: Annotated[
        int | None, typer.Option("--validation-shots", help="Validation images.", rich_help_panel=MORE)
    ] = None,
    pool: Annotated[
        str,
        typer.Option(
            "--pool",
            help="Target images that training sees without labels: supervised (none), transductive (those that test) "
            "or inductive (half of those that would test; the others test).",
        ),
    ] = SUPERVISED,
    leave_out: Annotated[bool, typer.Option("--leave-out", help="Skip classes that only one domain has.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the split to this file, as JSON; - for standard output.")
    ] = None,
    as_json: Json = False,
    classes: Classes = None,
    option: Options = None,
) -> None:
    """Split a data set into images that train, validate, are seen without labels, and test; the same everywhere.

    For example:

        sohot data split office31 office31 --shift A-W --split 1 --out split.json
    """
    numbers = {"target_shots": target_shots, "source_shots": source_shots, "validation_shots": validation_shots}
    given: dict[str, Any] = {key: value for key, value in numbers.items() if value is not None}
    opened = _open(name, root, classes, option)
    drawn = make_split(protocol, opened, shift, number, pool=pool, leave_out=leave_out, **given)
    if out is not None and (out != STDOUT or not as_json):  # both would be the same
        write_output(out, split_bytes(drawn))
    if as_json:
        sys.stdout.write(split_bytes(drawn).decode("ascii"))
    else:
        aside = out == STDOUT
        for side, images in drawn.sides.items():
            counts = images.counts()
            spread = "without labels" if side == POOL else f"{min(counts)} to {max(counts)} per class"
            typer.echo(f"{side}: {len(images)} images, {spread}", err=aside)
        typer.echo(f"fingerprint: {drawn.fingerprint}", err=aside)
    for note in drawn.notes:
        say(f"note: {note}")


@data_app.command("fetch", cls=OneValueCommand)
def fetch(
    name: Name,
    to: Annotated[Path | None, typer.Option("--to", help="The folder to put it in.", show_default="./NAME")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Download a data set if its terms allow it and a stable link exists; otherwise say where to get it."""
    root = Path(name) if to is None else to
    sources = dataset_sources(name)
    root.mkdir(parents=True, exist_ok=True)  # the steps below unpack into it
    if not as_json:  # first, so that a failed download does not hide the rest
        _print_sources(sources, root)
    with bar(quiet) as progress:
        files = [str(fetch_file(each, root, progress=progress)) for source in sources for each in source.downloads]
    if as_json:
        print_json({"dataset": name, "files": files, "sources": [_source(source, root) for source in sources]})
    else:
        for file in files:
            typer.echo(f"fetched: {file}")
        typer.echo(f"then: sohot data check {name} {root}")


def _print_sources(sources: Sequence[Source], root: Path) -> None:
    for source in sources:
        typer.echo(f"{source.title}; terms: {source.terms}" + (f"; page: {source.page}" if source.page else ""))
        steps = [f"Fetched by this command: {download.url}" for download in source.downloads]
        for number, step in enumerate([*steps, *_source(source, root)["steps"]], start=1):
            typer.echo(f"  {number}. {step}")


def _open(name: str, root: Path, classes: Path | None, options: list[str] | None) -> DataSet:
    table = None if classes is None else read_class_table(classes)
    return open_dataset(name, root, classes=table, **dict(_option(each) for each in options or []))


def _option(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"--option must read KEY=VALUE, got {text!r}")
    return key, {"true": True, "false": False}.get(value.casefold(), value)


def _source(source: Source, root: Path) -> dict[str, Any]:
    steps = [step.replace("ROOT", str(root)) for step in source.steps]
    return {"title": source.title, "terms": source.terms, "page": source.page, "steps": steps}


def _print_report(report: CheckReport) -> None:
    repeats = report.repeats()
    for domain, images in report.dataset.domains.items():
        official = report.dataset.official.get(domain)
        of = "" if official is None else f" (official: {official})"
        counts = images.counts()
        print_text(
            f"{domain}: {len(images)} images{of}, {len(images.classes)} classes of {min(counts)} to {max(counts)}, "
            f"{repeats[domain]} repeats"
        )
    for kind, sentences in (("note", report.remarks()), ("wrong", report.problems())):
        for sentence in sentences[:MOST_LISTED]:
            print_text(f"{kind}: {sentence}")
        if len(sentences) > MOST_LISTED:
            print_text(f"{kind}: … and {len(sentences) - MOST_LISTED} more; --json lists all")
    if not report.problems():
        print_text(
            "no problems found" if report.decoded else "no problems found in the counts; images were not decoded"
        )
