"""Command parameters generated from declared options, so that the two always match."""

import inspect
from collections.abc import Callable, Collection, Sequence
from dataclasses import Field
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from .._limits import check_threads
from .._outputs import is_stream
from .._ray_cluster import host_and_port
from ..experiments.engines import ENGINES
from ..methods.options import Rest, flag, in_groups, kinds_of
from ..runs.ray_data import Cluster

MORE = "More options"
"""Panel of the options that few people need, below the main ones."""

Run = Annotated[
    Path,
    typer.Argument(
        metavar="RUN", help="Folder of a run made by `sohot fit`, or of a head made by `sohot fit-features`."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print results only, no progress.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or mps.")]


def _check_read_threads(value: int | None) -> int | None:
    return None if value is None else check_threads(value, "--read-threads", 0)


ReadThreads = Annotated[
    int | None,
    typer.Option(
        "--read-threads", min=0, callback=_check_read_threads, help="Threads that read images.", rich_help_panel=MORE
    ),
]


def _check_threads(value: int | None) -> int | None:
    return None if value is None else check_threads(value)


Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        min=1,
        callback=_check_threads,
        help="CPU threads for computation.",
        show_default="one per core",
        rich_help_panel=MORE,
    ),
]


def _check_engine(value: str) -> str:
    if value not in ENGINES:
        raise ValueError(f"--engine must be one of {', '.join(ENGINES)}, got {value!r}")
    return value


ImageEngine = Annotated[
    str,
    typer.Option(
        "--engine",
        callback=_check_engine,
        help="local: this process; ray: many machines (docs/cluster.md).",
        rich_help_panel=MORE,
    ),
]

Address = Annotated[
    str | None,
    typer.Option("--address", help="Address of the Ray cluster.", show_default="a new local one", rich_help_panel=MORE),
]

Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Import the Python file that RUN names as its network (FILE.py:function).",
        rich_help_panel=MORE,
    ),
]

HeadWeights = Annotated[
    Path | None,
    typer.Option(
        "--weights",
        help="File of the weights of a head's backbone, if it was given one.",
        show_default=False,
        rich_help_panel=MORE,
    ),
]


def _check_share(name: str) -> Callable[[float | None], float | None]:
    def check(value: float | None) -> float | None:
        if value is not None and not 0 < value <= 1:
            raise ValueError(f"{name} must lie above 0 and be at most 1, got {value:g}")
        return value

    return check


UnknownBelow = Annotated[
    float | None,
    typer.Option(
        "--unknown-below",
        metavar="P",
        callback=_check_share("--unknown-below"),
        help="Refuse answers with a probability below P.",
        show_default=False,
    ),
]

RefuseWrong = Annotated[
    float | None,
    typer.Option(
        "--refuse-wrong",
        metavar="SHARE",
        callback=_check_share("--refuse-wrong"),
        help="Choose P by the held-out target images of the run, so that it refuses this share of wrong answers.",
        show_default=False,
    ),
]


def cluster_of(
    engine: str, address: str | None, out: Path | None, device: str, threads: int | None, read_threads: int | None
) -> Cluster | None:
    """Return the cluster that options ask for; None for this process."""
    if engine == "local":
        if address is not None:
            raise ValueError("--address needs --engine ray")
        return None
    if out is None or is_stream(out):
        raise ValueError("--engine ray keeps what is done: give --out a file")
    if device not in ("auto", "cpu", "cuda"):
        raise ValueError(f"--device must be auto, cpu or cuda with --engine ray, got {device!r}")
    if address is not None:
        host_and_port(address)
    return Cluster(address, device, threads, read_threads)


_READ = (int, float, bool, str, Path)


def option_parameters(kind: type, main: Collection[str]) -> list[inspect.Parameter]:
    """Make one parameter of each option of a dataclass; all default to None, which says that it was not given.

    The help shows the `main` options first, and the others in the panels of their groups.
    """
    hints = get_type_hints(kind)
    return [_parameter(declared, _kind(hints[declared.name]), declared.name in main) for declared in in_groups(kind)]


def with_parameters(command: Callable[..., None], parameters: Sequence[inspect.Parameter]) -> Callable[..., None]:
    """Give a function that takes `**options` the signature of a command with these parameters."""
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _parameter(declared: "Field[Any]", kind: Any, is_main: bool) -> inspect.Parameter:
    about, name = declared.metadata, flag(declared.name)
    shown = about["shown"]
    if shown is None:
        shown = "" if declared.default in (None, False) else str(declared.default)
    spelling = f"{name}/--no-{name[2:]}" if kind is bool and about["stored"] else name
    option = typer.Option(
        None,
        spelling,
        help=about["help"],
        rich_help_panel=None if is_main else about["group"],
        show_default=shown or False,
        metavar="<Path>" if kind in (list[Path], list[str]) else None,
    )
    return inspect.Parameter(declared.name, inspect.Parameter.KEYWORD_ONLY, default=option, annotation=kind | None)


def _kind(hint: Any) -> type:
    """Choose the type that the command line reads: lists are comma-separated text."""
    kinds = kinds_of(hint)
    if tuple[Path, ...] in kinds:
        return list[str] if Rest in kinds else list[Path]  # given several times; a Path does not tell ./rest from rest
    return kinds[0] if len(kinds) == 1 and isinstance(kinds[0], type) and kinds[0] in _READ else str
