"""`sohot app`: a page to label images, correct labels, train again and compare runs; its parts are imported later."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..data.names import printable
from ..runs.description import DESCRIPTION, is_head
from .options import Device, HeadWeights, Json, Run, Threads, Trust
from .output import print_json, say

if TYPE_CHECKING:
    from ..app.session import Session
    from ..runs.loaded_run import LoadedModel

_NEEDED = ("starlette", "uvicorn")


def app_command(
    run: Run,
    other: Annotated[
        Path | None,
        typer.Argument(metavar="OTHER_RUN", help="A second run to compare with.", show_default="those beside RUN"),
    ] = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port on this machine.", show_default="any that is free")
    ] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address, and open no browser.")] = False,
    folder: Annotated[
        Path | None,
        typer.Option("--folder", help="Folder for dropped and labelled images.", show_default="app in RUN"),
    ] = None,
    device: Device = "auto",
    threads: Threads = None,
    json: Json = False,
    trust: Trust = False,
    weights: HeadWeights = None,
) -> None:
    """Open a page in the browser: label images, correct labels, train again, compare runs.

    Drop images or a folder on the page: it shows their labels, with calibrated confidences.

    It also shows the nearest training images of both domains, and where an image lies on a map of features.

    Confirm or correct labels, or ask which images to label next (as `sohot suggest`): they go into a labelled folder.

    "Train again" trains a new run beside RUN, with these labels among its target images; then the page can use it.

    Only this machine can open the page, and only with the address that is printed. Nothing is sent anywhere.

    Ctrl-C ends it. Images and labels are there again the next time.

    For example:

        sohot app runs/first

        sohot app runs/first runs/chosen --port 8400 --no-browser
    """
    if missing := [name for name in _NEEDED if find_spec(name) is None]:
        raise ModuleNotFoundError(f"the app needs {' and '.join(missing)}: pip install 'sohot[app]'")
    for one in (run, other):
        if one is not None:
            _require_run(one)
    place = run / "app" if folder is None else folder
    if is_head(run) and run.is_file() and folder is None:
        raise ValueError(f"{run} is a file: give a folder for images as --folder")

    from .._device import use_threads
    from .._files import holding_folder, refuse_link
    from ..app.guard import new_token
    from ..app.routes import make_app
    from ..app.server import address, has_browser, listen, serve
    from ..app.session import Session
    from .finished_runs import open_for_use

    def open_model(path: Path) -> "LoadedModel":
        return open_for_use(path, device, trust, weights if is_head(path) else None)

    def ready() -> None:
        if json:
            print_json({"run": str(run), "folder": str(place), "address": where})
        else:
            say(f"open {where}\nCtrl-C ends the app; it stores images and labels in {printable(place)}")
        if not (no_browser or json) and has_browser():
            import webbrowser

            webbrowser.open(where)

    use_threads(threads)
    with holding_folder(refuse_link(place)), listen(port) as taken:
        token = new_token()
        where = address(taken, token)
        session = Session(run, place, open_model, other, trust)
        try:
            serve(make_app(session, token), taken, ready)
        finally:
            _say_end(session)


def _require_run(path: Path) -> None:
    if not path.exists():
        raise FileNotFoundError(f"{printable(path)}: there is no such run folder")
    if not is_head(path) and not (path / DESCRIPTION).is_file():
        raise FileNotFoundError(f"{printable(path)} is not a run folder: it has no {DESCRIPTION}")


def _say_end(session: "Session") -> None:
    """Stop a training, and say what there is."""
    if (unfinished := session.close()) is not None:
        say(f"the training was stopped; continue it with: sohot fit --out {printable(unfinished)} --resume")
    labels = len(session.labelled)
    images = "image is" if labels == 1 else "images are"
    kept = f"; {labels} labelled {images} in {printable(session.labelled.folder)}" if labels else ""
    say(f"the app has ended{kept}")
