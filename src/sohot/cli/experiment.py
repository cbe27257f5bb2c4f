"""`sohot experiment`: a grid of trainings, its tables, figures and report."""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ..data.manifest_rows import is_manifest
from ..experiments.cell import CELLS, MOST_TRIALS, SELECTIONS, TRIALS
from ..experiments.engines import ENGINES
from ..experiments.grid import COMPLEXITY, Grid, builtin_names, read_grid
from ..experiments.grid_keys import parse_splits, shapes_features
from ..methods.settings import DEVICES
from ..runs.trust import refuse_code
from ..training.errors import Interrupted
from .output import print_json, print_text, results_only
from .stopping import Terminated


def list_experiments(json: bool) -> None:
    """Print the names and titles of the built-in experiments."""
    titles = {name: read_grid(name).title for name in builtin_names()}
    titles[COMPLEXITY] = "Savings of the kernel form, measured and by formula; needs no data"
    if json:
        print_json({"experiments": titles})
        return
    for name, title in titles.items():
        print_text(f"{name:<20}{title}")


def change_grid(
    name: str,
    backbone: str | None,
    shifts: str | None,
    splits: str | None,
    methods: str | None,
    baseline: str | None,
    settings: Sequence[str],
    frozen: bool = False,
    pool: str | None = None,
) -> Grid:
    """Read a grid and change it as the command line says."""
    fixed: dict[str, Any] = {}
    head: dict[str, Any] = {}
    for text in settings:
        key, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"--set must read KEY=VALUE, got {text!r}")
        of_head = frozen and not shapes_features(key.strip().replace("-", "_"))
        (head if of_head else fixed)[key.strip()] = value.strip()
    return read_grid(name).changed(
        fixed,
        head,
        backbone=backbone,
        shifts=_words(shifts),
        splits=None if splits is None else parse_splits(splits),
        methods=_words(methods),
        baseline=baseline,
        pool=_words(pool),
    )


def _words(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(part.strip() for part in text.split(",") if part.strip())


_grid = partial(typer.Option, rich_help_panel="Grid: what to compute")
_of_grid = partial(_grid, show_default="the grid's")
_run = partial(typer.Option, rich_help_panel="Run")
_machine = partial(typer.Option, rich_help_panel="Machine: where to compute")


HELP = """Compute a grid of trainings (data set x shifts x splits x methods x settings) and compare them in tables.

The paper's tables and figures are built in (--list); your own grid is a short TOML file.

Finished cells are kept in --out: after a stop or kill the same command continues. Several commands may compute one grid
in one folder.

A small part of the paper's first table, then more splits of it:

    sohot experiment office-alexnet --data office31 --backbone lite0 --shifts A-W --splits 2

    sohot experiment office-alexnet --data office31 --backbone lite0 --shifts A-W --splits 5

Show what is computed and how long the rest will take:

    sohot experiment office-alexnet --data office31 --dry-run

Train with unlabelled target images, tested on them and on images never seen, in tables apart:

    sohot experiment mine.toml --data ROOT --pool transductive,inductive

Your own grid in mine.toml, for a folder of domains with one folder per class each:

\b
    dataset = "domains"
    protocol = "k-shot"
    splits = 3
    methods = ["s+t", "so"]
    \\[settings]
    target_shots = 3
    \\[vary]
    sigma1 = [0.01, 0.1, 1.0]
"""


def experiment(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME_OR_TOML", show_default=False, help=f"{', '.join([*builtin_names(), COMPLEXITY])}, or a file."
        ),
    ] = None,
    list_all: Annotated[bool, typer.Option("--list", help="List the built-in experiments and exit.")] = False,
    data: Annotated[
        Path | None, _grid("--data", help="Folder of the data set; of `domains` also a list.", show_default=False)
    ] = None,
    backbone: Annotated[str | None, _of_grid("--backbone", help="Network.")] = None,
    shifts: Annotated[str | None, _of_grid("--shifts", help="Sources and targets, such as A-W,W-A.")] = None,
    splits: Annotated[
        str | None,
        _of_grid("--splits", help="How many, or which: 1-3 or 1,4."),
    ] = None,
    methods: Annotated[str | None, _of_grid("--methods", help="Methods to compare, such as s+t,m,so.")] = None,
    pool: Annotated[
        str | None,
        _of_grid(
            "--pool",
            help="Target images that training sees without labels: supervised (none), transductive (those that test), "
            "inductive (half of those that would test; the others test), or several: each gets tables of its own.",
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        _grid("--baseline", help="Method that tables compare the others with.", show_default="the grid's, else s+t"),
    ] = None,
    settings: Annotated[
        list[str] | None,
        _grid(
            "--set",
            metavar="KEY=VALUE",
            help="Setting for all cells: an option of `sohot fit` (with --frozen a field of "
            "`sohot.methods.HeadSettings`) or a number of the protocol. Repeatable.",
            show_default=False,
        ),
    ] = None,
    select: Annotated[
        str,
        _grid(
            "--select",
            help="How to choose each cell's settings: none (the grid's), cv (few-shot cross-validation on its labelled "
            "target images) or validation (images that the protocol sets aside). Test images are never used.",
        ),
    ] = "none",
    trials: Annotated[
        int, _grid("--trials", min=1, max=MOST_TRIALS, help="Settings tried per cell with --select.")
    ] = TRIALS,
    frozen: Annotated[
        bool,
        _grid("--frozen", help="Train heads on frozen features, many cells at once."),
    ] = False,
    out: Annotated[
        Path | None,
        _run("--out", help="Folder of the experiment.", show_default="experiments/NAME"),
    ] = None,
    retry: Annotated[
        bool,
        _run("--retry", help="Try failed cells again, and cells of other machines on which no command runs any more."),
    ] = False,
    trust: Annotated[
        bool, _run("--trust", help="Import the Python file that a grid in an experiment's folder names as its network.")
    ] = False,
    dry_run: Annotated[bool, _run("--dry-run", help="Print the cells, and the time that the rest will take.")] = False,
    quiet: Annotated[bool, _run("--quiet", help="No progress.")] = False,
    json: Annotated[bool, _run("--json", help="Print one JSON object.")] = False,
    engine: Annotated[
        str,
        _machine("--engine", help="local: processes on this machine; ray: many machines."),
    ] = "local",
    workers: Annotated[
        int | None,
        _machine(
            "--workers",
            min=1,
            help="Processes that compute cells.",
            show_default="one per core, or up to 8 per GPU",
        ),
    ] = None,
    threads: Annotated[
        int | None,
        _machine("--threads", min=1, help="Threads per cell.", show_default="its share"),
    ] = None,
    address: Annotated[
        str | None,
        _machine("--address", help="Address of the Ray cluster.", show_default="a new local one"),
    ] = None,
    device: Annotated[str, _machine("--device", help="auto, cpu, cuda or mps.")] = "auto",
) -> None:
    """Compute a grid, show it, or list the built-in ones; the help text is `HELP`."""
    if list_all:
        list_experiments(json)
        return
    if name is None:
        raise ValueError("NAME_OR_TOML is missing: name an experiment (see --list) or give a TOML file")
    if engine not in ENGINES:
        raise ValueError(f"--engine must be one of {', '.join(ENGINES)}, got {engine!r}")
    if select not in SELECTIONS:
        raise ValueError(f"--select must be one of {', '.join(SELECTIONS)}, got {select!r}")
    if device not in DEVICES:
        raise ValueError(f"--device must be one of {', '.join(DEVICES)}, got {device!r}")
    if name == COMPLEXITY:
        from .experiment_run import run_complexity

        run_complexity(out or Path("experiments") / COMPLEXITY, json)
        return
    if frozen and engine == "ray":
        raise ValueError("--frozen trains many cells together in one process: omit --engine ray")
    grid = change_grid(name, backbone, shifts, splits, methods, baseline, settings or [], frozen, pool)
    if not trust and (Path(name).parent / CELLS).exists():  # the grid of a folder, which may be a stranger's
        refuse_code({**vars(read_grid(name)), "backbone": backbone}, Path(name))
    if data is None:
        where = f" (`sohot data fetch {grid.dataset}` says where to get it)" if grid.dataset != "domains" else ""
        raise ValueError(f"--data is missing: give the folder of the data set {grid.dataset}{where}")
    if data.exists() and not data.is_dir() and not (is_manifest(data) and grid.dataset == "domains"):
        raise ValueError(f"--data must be a folder, but {data} is a file")
    if out is not None and out.exists() and not out.is_dir():
        raise ValueError(f"--out must be a folder, but {out} is a file")

    folder, again = out or Path("experiments") / grid.name, command(context)
    with _saying_how_to_continue(folder, again):
        from ..experiments.engines import make_engine  # these import torch, so wrong options are reported first
        from ..experiments.grid_run import plan_grid
        from .experiment_run import run_experiment, show_plan

        made = make_engine(engine, workers=workers, device=device, address=address, threads=threads)
        with results_only():
            plan = plan_grid(grid, data, folder, device=device, select=select, trials=trials, frozen=frozen)
        if dry_run:
            show_plan(plan, workers=workers, retry=retry, json=json)
        else:
            run_experiment(plan, made, again, retry=retry, quiet=quiet, json=json)


def command(context: typer.Context) -> str:
    """Return the command line that was given, so that it can be repeated."""
    words = ["sohot", "experiment", str(context.params["name"])]
    for option in context.command.params:
        value = context.params.get(option.name or "")
        if option.name == "name" or value in (None, False, []) or value == option.get_default(context):
            continue
        for one in value if isinstance(value, (list, tuple)) else [value]:
            words += [option.opts[0]] if one is True else [option.opts[0], str(one)]
    return shlex.join(words)


@contextmanager
def _saying_how_to_continue(folder: Path, again: str) -> Iterator[None]:
    """Turn Ctrl-C and SIGTERM, at any moment, into a sentence that says how to continue."""
    try:
        yield
    except (KeyboardInterrupt, Terminated, Interrupted) as error:
        sent = "SIGTERM" if isinstance(error, Terminated) else getattr(error, "signal", "SIGINT")
        by = "Ctrl-C" if sent == "SIGINT" else sent
        kept = f"finished cells are kept in {folder.absolute()}" if folder.exists() else "nothing was computed"
        raise Interrupted(f"stopped by {by}; {kept}; continue with: {again}", sent) from None
