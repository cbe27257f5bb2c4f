"""`sohot suggest`: which images to label next; the work itself is imported when it is called."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .._new_folder import require_new
from ..data.manifest_rows import LIST
from .options import MORE, Device, HeadWeights, Json, Quiet, ReadThreads, Run, Threads, Trust
from .output import bar, percent, print_json, print_text, require_one_output, say, say_left_out

if TYPE_CHECKING:
    from ..runs.suggest import SuggestedImage


def suggest(
    run: Run,
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR_OR_LIST",
            help=f"Unlabelled images: a folder, with any folders in it, or a {LIST}.",
            show_default="the run's pool",
        ),
    ] = None,
    count: Annotated[int, typer.Option("--count", min=1, help="How many images to suggest.")] = 20,
    out: Annotated[
        Path | None, typer.Option("--out", help="CSV file to write; - for standard output.", show_default=False)
    ] = None,
    copy_to: Annotated[
        Path | None,
        typer.Option("--copy-to", help="New folder for copies, with an empty folder per class.", show_default=False),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", min=0, max=2**32 - 1, help="Random seed of the choice.", rich_help_panel=MORE)
    ] = 0,
    device: Device = "auto",
    threads: Threads = None,
    workers: ReadThreads = None,
    quiet: Quiet = False,
    json: Json = False,
    trust: Trust = False,
    weights: HeadWeights = None,
) -> None:
    """Say which images to label next: those that the run doubts, each standing for others that look alike.

    The list gives the two likeliest classes, the calibrated probability, and why the image was chosen.

    Images that trained with a label are left out, and so are copies. Unreadable files are listed and skipped.

    Label the images, add them to your target images, and fit again.

    For example:

        sohot suggest runs/first new_sketches --count 20 --copy-to to_label

        sohot suggest runs/first new_sketches --out to_label.csv
    """
    from .._device import use_threads
    from .._outputs import STDOUT, write_output
    from ..runs.predictions import require_writable
    from ..runs.suggest import copy_images, suggest_images, suggestions_csv
    from ..runs.suggest_candidates import find_candidates
    from .finished_runs import open_for_use

    require_one_output(out, "--out", json)
    if out is not None:
        require_writable(out)
    if copy_to is not None:
        require_new(copy_to, "--copy-to")
    use_threads(threads)
    model = open_for_use(run, device, trust, weights)
    with bar(quiet) as progress:
        found = find_candidates(run, folder, workers, progress)
        for note in found.notes:
            say(f"note: {note}")
        say_left_out(found.left_out)
        chosen = suggest_images(model, run, found.images, count, seed=seed, workers=workers, progress=progress)
    if count > len(chosen):
        say(f"note: there are only {len(chosen)} images to choose from: all are listed, the most doubtful first")
    if out is not None:
        write_output(out, suggestions_csv(chosen).encode())
    if copy_to is not None:
        copy_images([one.prediction.file for one in chosen], copy_to, model.classes)
    if json:
        places = {"out": None if out is None else str(out), "copied_to": None if copy_to is None else str(copy_to)}
        listed = [{"rank": rank, **one.as_json()} for rank, one in enumerate(chosen, start=1)]
        left_out = [path.as_json() for path in found.left_out]
        about = {"run": str(run), "images": len(found.images), **places, "suggestions": listed}
        print_json({**about, "left_out": left_out, "notes": found.notes})
        return
    if out != STDOUT:
        _print(chosen)
        print_text(
            f"{len(chosen)} of {len(found.images)} images to label next" + ("" if out is None else f", in {out}")
        )
    if copy_to is not None:
        say(f"copied to {copy_to}: move each into the folder of its class, add these to your target images, fit again")


def _print(chosen: "Sequence[SuggestedImage]") -> None:
    """Print one line for each image."""
    width = len(str(len(chosen)))
    for rank, one in enumerate(chosen, start=1):
        file, label, share, *_, why = one.cells()
        print_text(f"{rank:{width}}  {file}  {label} {percent(share)} %: {why}")
