"""`sohot features` and `sohot fit-features`: what they take. What they do is imported when they are called."""

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or mps.")]
Workers = Annotated[int | None, typer.Option("--workers", min=0, help="Threads that read images.")]


def features(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Class folders of images, or a known data set.")],
    out: Annotated[Path, typer.Option("--out", help="File of features to write, .npz.", show_default=False)],
    backbone: Annotated[str, typer.Option("--backbone", help="Network that makes the features.")] = "lite0",
    weights: Annotated[Path | None, typer.Option("--weights", help="File of its weights.", show_default=False)] = None,
    dataset: Annotated[
        str | None, typer.Option("--dataset", help="The data set in DIR, as office31; its domains are kept apart.")
    ] = None,
    tap: Annotated[str | None, typer.Option("--tap", help="before-relu, after-relu or output.")] = None,
    image_size: Annotated[int | None, typer.Option("--image-size", help="Side of the images.")] = None,
    channels: Annotated[int, typer.Option("--channels", help="3 (colour) or 1 (grey, depth).")] = 3,
    device: Device = "auto",
    workers: Workers = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Let images pass a network once and keep its features in one file, for `sohot fit-features` and for scikit-learn.

    Images that cannot be read are listed and skipped.

    For example:

        sohot features photos --backbone lite0 --out photos.npz
    """
    from .feature_files import make_features

    make_features(
        folder,
        out,
        backbone=backbone,
        weights=weights,
        dataset=dataset,
        tap=tap,
        image_size=image_size,
        channels=channels,
        device=device,
        workers=workers,
        quiet=quiet,
        json=json,
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
    shots: Annotated[
        int | None, typer.Option("--shots", min=1, help="Train on this many target rows per class, test on the rest.")
    ] = None,
    source_domain: Annotated[
        str | None, typer.Option("--source-domain", help="Domain in --source, where it holds several.")
    ] = None,
    target_domain: Annotated[
        str | None, typer.Option("--target-domain", help="Domain in --target and --test, where they hold several.")
    ] = None,
    method: Annotated[
        str, typer.Option("--method", help="As in `sohot fit`; auto chooses by leave-one-shot-out on the target rows.")
    ] = "so",
    orders: Annotated[str | None, typer.Option("--orders", help="Orders in place of the method's, as 2,3.")] = None,
    sigma1: Annotated[str | None, typer.Option("--sigma1", help="Weight of the scatters, or one per order.")] = None,
    sigma2: Annotated[float | None, typer.Option("--sigma2", help="Weight of the means.")] = None,
    estimator: Annotated[str | None, typer.Option("--estimator", help="plugin or unbiased.")] = None,
    rival_weight: Annotated[float | None, typer.Option("--rival-weight", help="Weight of a rival's loss.")] = None,
    margin: Annotated[float | None, typer.Option("--margin", help="Margin of ccsa and dsne.")] = None,
    temperature: Annotated[float | None, typer.Option("--temperature", help="Temperature of supcon.")] = None,
    l2_sp: Annotated[
        float | None, typer.Option("--l2-sp", help="Hold the network at where it started, this strongly.")
    ] = None,
    head_first: Annotated[
        float | None, typer.Option("--head-first", help="Share of the steps in which the classifier learns alone.")
    ] = None,
    streams: Annotated[str | None, typer.Option("--streams", help="shared or separate.")] = None,
    heads: Annotated[str | None, typer.Option("--heads", help="shared or coupled.")] = None,
    hidden: Annotated[int | None, typer.Option("--hidden", help="Size of a hidden layer; none without it.")] = None,
    components: Annotated[int | None, typer.Option("--components", help="Principal axes that are kept.")] = None,
    norm_bound: Annotated[float | None, typer.Option("--norm-bound", help="Bound τ on the squared norm.")] = None,
    learning_rate: Annotated[float | None, typer.Option("--learning-rate", help="Highest learning rate.")] = None,
    steps: Annotated[int | None, typer.Option("--steps", help="Steps to train.")] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the shots and of the network.")] = 0,
    leave_out: Annotated[bool, typer.Option("--leave-out", help="Leave out classes of one domain only.")] = False,
    device: Annotated[str, typer.Option("--device", help="auto, cpu or cuda.")] = "auto",
    json: Json = False,
) -> None:
    """Train a classifier on features that `sohot features` has made, in seconds, and test it.

    For example:

        sohot fit-features --source photos.npz --target sketches.npz --shots 3 --method auto --out heads/first
    """
    from .feature_files import fit_feature_files

    settings = {
        "method": method,
        "orders": orders,
        "sigma1": sigma1,
        "sigma2": sigma2,
        "estimator": estimator,
        "rival_weight": rival_weight,
        "margin": margin,
        "temperature": temperature,
        "l2_sp": l2_sp,
        "head_first": head_first,
        "streams": streams,
        "heads": heads,
        "hidden": hidden,
        "components": components,
        "norm_bound": norm_bound,
        "learning_rate": learning_rate,
        "steps": steps,
    }
    fit_feature_files(
        source,
        target,
        out,
        test=test,
        source_domain=source_domain,
        target_domain=target_domain,
        shots=shots,
        seed=seed,
        leave_out=leave_out,
        device=device,
        settings=settings,
        json=json,
    )
