"""The commands of `sohot`."""

from pathlib import Path
from typing import Annotated

import typer

from .. import __version__
from ..data.manifest_rows import LIST
from .app import app_command
from .data import data_app
from .experiment import HELP, experiment
from .export import export
from .features import features, make_fit_features
from .fit import make_fit
from .one_value import OneValueCommand
from .options import (
    Address,
    Device,
    HeadWeights,
    ImageEngine,
    Json,
    Quiet,
    ReadThreads,
    RefuseWrong,
    Run,
    Threads,
    Trust,
    UnknownBelow,
    cluster_of,
)
from .output import print_json, print_text, say
from .suggest import suggest
from .weights import weights

app = typer.Typer(
    name="sohot",
    help="Adapt an image classifier to a domain with a handful of labels per class.",
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("fit", cls=OneValueCommand)(make_fit())
app.command("experiment", help=HELP, cls=OneValueCommand)(experiment)
app.command("export", cls=OneValueCommand)(export)
app.command("suggest", cls=OneValueCommand)(suggest)
app.command("app", cls=OneValueCommand)(app_command)
app.command("features", cls=OneValueCommand)(features)
app.command("fit-features", cls=OneValueCommand)(make_fit_features())
app.add_typer(data_app)
app.command("weights", cls=OneValueCommand)(weights)


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    if version or context.invoked_subcommand is None:
        typer.echo(f"sohot {__version__}" if version else context.get_help())
        raise typer.Exit


@app.command(cls=OneValueCommand)
def evaluate(
    run: Run,
    folder: Annotated[
        Path, typer.Argument(metavar="DIR_OR_LIST", help=f"Target images: one folder per class, or a {LIST}.")
    ],
    leave_out: Annotated[bool, typer.Option("--leave-out", help="Skip classes the run does not know.")] = False,
    unknown_below: UnknownBelow = None,
    refuse_wrong: RefuseWrong = None,
    device: Device = "auto",
    threads: Threads = None,
    workers: ReadThreads = None,
    quiet: Quiet = False,
    json: Json = False,
    trust: Trust = False,
    weights: HeadWeights = None,
) -> None:
    """Measure the accuracy of a run on images in class folders, or in a list of paths and labels.

    Images that the run trained on are left out.

    With --unknown-below or --refuse-wrong also how many images are answered, and how well.

    For example:

        sohot evaluate runs/first more_sketches

        sohot evaluate runs/first more_sketches --refuse-wrong 0.8
    """
    from .._device import use_threads
    from .finished_runs import evaluate_run

    use_threads(threads)
    evaluate_run(
        run,
        folder,
        leave_out=leave_out,
        unknown_below=unknown_below,
        refuse_wrong=refuse_wrong,
        device=device,
        workers=workers,
        quiet=quiet,
        json=json,
        trust=trust,
        weights=weights,
    )


@app.command(cls=OneValueCommand)
def predict(
    run: Run,
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILES_OR_DIRS...",
            help=f"Image files, folders, any {LIST} that names images, and shards of images (tar, Parquet); or feature "
            "files, for a head.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="CSV file to write; - for standard output, the default.",
            show_default=False,
        ),
    ] = None,
    top: Annotated[int, typer.Option("--top", help="Number of most likely classes to give.")] = 1,
    unknown_below: UnknownBelow = None,
    refuse_wrong: RefuseWrong = None,
    device: Device = "auto",
    threads: Threads = None,
    workers: ReadThreads = None,
    quiet: Quiet = False,
    json: Json = False,
    trust: Trust = False,
    weights: HeadWeights = None,
    others: Annotated[
        list[Path] | None,
        typer.Option(
            "--with",
            metavar="RUN",
            help="Another run of the same classes, whose answers are averaged with those of RUN. May be given several "
            "times.",
            show_default=False,
        ),
    ] = None,
    engine: ImageEngine = "local",
    address: Address = None,
) -> None:
    """Label images: path, label and probability; with --top also the next most likely classes.

    Unreadable files are listed, skipped and counted. A head also labels the rows of feature files (.npz).

    With --unknown-below or --refuse-wrong, unsure answers become `unknown`; the column `guess` keeps the class.

    For example:

        sohot predict runs/first new_sketches --out labels.csv --top 3

        sohot predict runs/first new_sketches --refuse-wrong 0.8

        sohot predict runs/first new_sketches --with runs/second

        sohot predict heads/first new_sketches.npz

        sohot predict runs/first many_sketches --engine ray --out labels.csv   # continues if it was stopped
    """
    cluster = cluster_of(engine, address, out, device, threads, workers)
    from .._device import use_threads
    from .finished_runs import predict_run

    use_threads(threads)
    predict_run(
        run,
        paths,
        out=out,
        top=top,
        unknown_below=unknown_below,
        refuse_wrong=refuse_wrong,
        device=device,
        workers=workers,
        quiet=quiet,
        json=json,
        trust=trust,
        weights=weights,
        cluster=cluster,
        others=others or (),
    )


@app.command(cls=OneValueCommand)
def info(run: Run, json: Json = False) -> None:
    """Show what a run or a head was trained on, its settings, its accuracy, and how to repeat it.

    For example:

        sohot info runs/first
    """
    from .info import show_info

    show_info(run, json=json)


@app.command(cls=OneValueCommand)
def report(
    folder: Annotated[
        Path, typer.Argument(metavar="PATH", help="Folder of a run, a demo or an experiment, finished or not.")
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="HTML file to write; - for standard output.", show_default="report.html in PATH"),
    ] = None,
    images: Annotated[
        int, typer.Option("--images", min=0, help="Number of sample images to show for a run; 0 reads no images.")
    ] = 24,
    figures: Annotated[
        Path | None,
        typer.Option(
            "--figures",
            help="Folder for a run's figures (confusion, confidence, features) as PNG and SVG.",
            show_default=False,
        ),
    ] = None,
    threads: Threads = None,
    quiet: Quiet = False,
    json: Json = False,
    trust: Trust = False,
) -> None:
    """Write one HTML page about a run, a demo or an experiment: results, charts, samples, how to repeat it.

    The page is self-contained and needs no network, so you can archive or send it as a single file.

    For example:

        sohot report runs/first
    """
    from .._device import use_threads
    from .finished_runs import report_on

    use_threads(threads)
    report_on(folder, out, images=images, figures=figures, quiet=quiet, json=json, trust=trust)


@app.command(cls=OneValueCommand)
def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the pictures and the table.")] = Path("sohot-demo"),
    splits: Annotated[int, typer.Option("--splits", min=1, help="Number of random splits.")] = 3,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Random seed.")] = 0,
    methods: Annotated[
        str | None,
        typer.Option("--methods", help="Comma-separated methods; by default those of the paper, and means."),
    ] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Compare methods on digits: fonts are the source, handwriting with 3 labels per class is the target.

    For example:

        sohot demo --out sohot-demo
    """
    from ..demo import DemoProgress, describe, run_demo

    def tell(progress: DemoProgress) -> None:
        if not quiet:
            say(
                f"[{progress.done}/{progress.total}] split {progress.split + 1}, {progress.method}: "
                f"{progress.accuracy:.1f} % correct"
            )

    chosen = None if methods is None else [name.strip() for name in methods.split(",") if name.strip()]
    result = run_demo(out, splits=splits, seed=seed, methods=chosen, on_progress=tell)
    if json:
        print_json(result.as_json())
    else:
        print_text(describe(result))
