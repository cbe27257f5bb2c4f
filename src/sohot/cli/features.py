"""Options of `sohot features` and `sohot fit-features`; the work itself is imported when they are called."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from ..data.manifest_rows import LIST
from ..methods.options import DATA, MACHINE
from ..methods.settings import HeadSettings
from ..networks.names import backbone_names
from .options import (
    MORE,
    Address,
    Device,
    ImageEngine,
    Json,
    Quiet,
    ReadThreads,
    Threads,
    cluster_of,
    option_parameters,
    with_parameters,
)


def features(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR_OR_LIST",
            help=f"Images in class folders, in the folder itself, in a {LIST}, or in shards (tar, Parquet); or a known "
            "data set.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            help="Feature file to write, .npz; - for standard output.",
            show_default=False,
        ),
    ],
    backbone: Annotated[str, typer.Option("--backbone", help=f"Network: {', '.join(backbone_names())}.")] = "lite0",
    weights: Annotated[Path | None, typer.Option("--weights", help="File of its weights.", show_default=False)] = None,
    dataset: Annotated[
        str | None, typer.Option("--dataset", help="The data set there, e.g. office31; keeps its domains apart.")
    ] = None,
    tap: Annotated[
        str | None, typer.Option("--tap", help="before-relu, after-relu or output.", rich_help_panel=MORE)
    ] = None,
    image_size: Annotated[int | None, typer.Option("--image-size", help="Side of the images.")] = None,
    channels: Annotated[
        int, typer.Option("--channels", help="3 (colour) or 1 (grey, depth).", rich_help_panel=MORE)
    ] = 3,
    views: Annotated[
        int,
        typer.Option(
            "--views",
            min=1,
            max=10,
            help="Views of each image to average the features over: 1 the centre, 2 also its mirror image, "
            "10 also the four corners and their mirror images.",
        ),
    ] = 1,
    no_labels: Annotated[bool, typer.Option("--no-labels", help="Take all images and store no classes.")] = False,
    device: Device = "auto",
    threads: Threads = None,
    workers: ReadThreads = None,
    quiet: Quiet = False,
    json: Json = False,
    engine: ImageEngine = "local",
    address: Address = None,
) -> None:
    """Pass images through a network once and store the features in a file for `sohot fit-features` and scikit-learn.

    Unreadable images are listed and skipped. Images of a folder without class folders, or of a list without labels,
    get none: such features train with --unlabelled, and `sohot predict` labels them.

    For example:

        sohot features photos --backbone lite0 --out photos.npz

        sohot features many_photos --engine ray --out photos.npz   # continues if it was stopped
    """
    cluster = cluster_of(engine, address, out, device, threads, workers)
    from .._device import use_threads
    from .feature_files import make_features

    use_threads(threads)
    make_features(
        folder,
        out,
        backbone=backbone,
        weights=weights,
        dataset=dataset,
        tap=tap,
        image_size=image_size,
        channels=channels,
        views=views,
        no_labels=no_labels,
        device=device,
        workers=workers,
        quiet=quiet,
        json=json,
        cluster=cluster,
    )


def fit_features(
    source: Annotated[Path, typer.Option("--source", help="Features of the source, .npz.", show_default=False)],
    target: Annotated[Path, typer.Option("--target", help="Features of the target, .npz.", show_default=False)],
    out: Annotated[
        Path, typer.Option("--out", help="Folder for the model, the report and predictions.", show_default=False)
    ],
    test: Annotated[
        Path | None, typer.Option("--test", help="Features of target images to test on.", show_default=False)
    ] = None,
    unlabelled: Annotated[
        list[str] | None,
        typer.Option(
            "--unlabelled",
            metavar="FILE",
            help="Features of target images without labels, to learn from as well; repeatable. Or rest: the target "
            "rows that --shots leaves over, which are then also the test (transductive).",
            show_default=False,
        ),
    ] = None,
    shots: Annotated[
        int | None, typer.Option("--shots", min=1, help="Train on this many target rows per class; test on the rest.")
    ] = None,
    source_domain: Annotated[
        str | None,
        typer.Option("--source-domain", help="Domain in --source, if it holds several.", rich_help_panel=DATA),
    ] = None,
    target_domain: Annotated[
        str | None,
        typer.Option(
            "--target-domain", help="Domain in --target and --test, if they hold several.", rich_help_panel=DATA
        ),
    ] = None,
    leave_out: Annotated[bool, typer.Option("--leave-out", help="Skip classes that only one domain has.")] = False,
    device: Annotated[str, typer.Option("--device", help="auto, cpu or cuda.", rich_help_panel=MACHINE)] = "auto",
    quiet: Quiet = False,
    json: Json = False,
    **settings: Any,
) -> None:
    """Train and test a classifier on features from `sohot features`, in seconds.

    Target rows without labels help where they can: those of --unlabelled, and those of --target that have no label.
    Held-out labels say whether they do; pool.csv holds their labels.

    For example:

        sohot fit-features --source photos.npz --target sketches.npz --shots 3 --method auto --out heads/first

        sohot fit-features --source photos.npz --target sketches.npz --unlabelled more.npz --out heads/second
    """
    from .feature_files import fit_feature_files

    fit_feature_files(
        source,
        target,
        out,
        test=test,
        unlabelled=unlabelled or [],
        source_domain=source_domain,
        target_domain=target_domain,
        shots=shots,
        leave_out=leave_out,
        device=device,
        settings={name: value for name, value in settings.items() if value is not None},
        quiet=quiet,
        json=json,
    )


def make_fit_features() -> Callable[..., None]:
    """Build the command's function, with one parameter per option of training on features."""
    own = [p for p in inspect.signature(fit_features).parameters.values() if p.kind is not p.VAR_KEYWORD]
    named = [parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in own]
    return with_parameters(fit_features, [*named, *option_parameters(HeadSettings, ("method", "seed"))])
