"""`sohot fit`: its options are the fields of `RunConfig`, so the command line and the TOML file always match."""

import inspect
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from ..runs.auto import choice_in_words
from ..runs.config import RunConfig
from ..runs.description import POOL_LABELS, accuracy_name, head_in_words
from ..runs.given_options import resolve
from ..training.errors import Interrupted
from .options import option_parameters, with_parameters
from .output import bar, percent, print_accuracy, print_json, print_text, results_only, say

_HELP = """Adapt an image classifier from a source domain to a target domain with few labels.

Both hold one folder of images per class. Your labels decide what is kept; test images never influence a choice.

A TOML file (--config) can set any option; the command line wins.

For example:

    sohot fit --source photos --target sketches --shots 3 --out runs/first

    sohot fit --source photos --target sketches --unlabelled more --out runs/pool

    sohot fit --source photos.csv --target sketches.csv --trains head --out runs/quick

    sohot predict runs/first new_sketches --out labels.csv
"""


_MAIN = ("source", "target", "shots", "target_test", "unlabelled", "out", "method", "trains", "backbone", "resume")


def fit_command(config: Path | None, given: dict[str, Any], trust: bool = False) -> None:
    """Resolve the configuration, train, print."""
    resolved, asked = resolve(config, given, trust)

    from ..runs.pipeline import fit_run  # these import torch, so wrong options are reported first
    from .live_progress import TerminalWatcher

    try:
        with results_only(), bar(resolved.quiet) as progress:
            report = fit_run(resolved, TerminalWatcher(progress), asked)
    except Interrupted as error:
        again = shlex.join(["sohot", "fit", "--out", str(resolved.out), "--resume"])
        raise Interrupted(f"{error}: {again}", error.signal) from None
    if not report:  # another process prints it
        return
    if resolved.json:
        print_json(report)
        return
    if report["accuracy"] is None:
        say("there are no test images, so there is no accuracy")
    else:
        print_accuracy(report["accuracy"], accuracy_name(report["protocol"]))
    if report["selection"] is not None:
        print_text(choice_in_words(report["selection"]))
    accuracy = report["accuracy"]
    result = "" if accuracy is None else f", {accuracy_name(report['protocol'])} {percent(accuracy['micro'])} %"
    if report["head"] is not None:
        right = head_in_words(report["head"], report["protocol"])
        print_text(f"the classifier on frozen features gets {right} right")
    target = report["data"]["target"]
    if report["selection"] is None and target and max(target["per_class"]) < 2:
        print_text("no class has two labelled target images, so none can be held out: probabilities are not calibrated")
    if report["pool"] is not None and (report["selection"] is None or report["pool"]["collapse"] is not None):
        print_text(report["pool"]["sentence"])
    if pool := report["data"]["pool"]:
        print_text(f"labels of {pool['images']} unlabelled images: {Path(report['run']) / POOL_LABELS}")
    steps = f"{report['steps']} steps" if report["steps"] else "a classifier on frozen features"
    print_text(f"{report['method']}: {steps} in {report['seconds']:.0f} s{result}, run in {report['run']}")


def make_fit() -> Callable[..., None]:
    """Build the command's function, with one parameter per option."""

    def fit(config: Path | None, trust: bool, **options: Any) -> None:
        fit_command(config, {name: value for name, value in options.items() if value not in (None, [])}, trust)

    file = typer.Option(None, "--config", help="TOML file of options.", rich_help_panel="Run", show_default=False)
    first = inspect.Parameter("config", inspect.Parameter.KEYWORD_ONLY, default=file, annotation=Path | None)
    parameters = option_parameters(RunConfig, _MAIN)
    parameters.insert([parameter.name for parameter in parameters].index("out"), first)
    asked = typer.Option(
        False,
        "--trust",
        help="With --resume: import the Python file that the run names as its network.",
        rich_help_panel="Run",
    )
    last = inspect.Parameter("trust", inspect.Parameter.KEYWORD_ONLY, default=asked, annotation=bool)
    parameters.insert([parameter.name for parameter in parameters].index("resume") + 1, last)
    fit.__doc__ = _HELP
    return with_parameters(fit, parameters)
