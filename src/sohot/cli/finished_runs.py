"""Commands that use finished work: evaluate, predict, export, report."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .._device import choose_device
from .._outputs import STDOUT, is_stream, write_output
from ..data.folders import LeftOut
from ..data.names import printable
from ..runs.description import accuracy_name, is_head
from ..runs.loaded_run import LoadedModel, export_run, images_for, open_model
from ..runs.predictions import (
    UNKNOWN,
    Prediction,
    check_top,
    classify,
    find_images,
    predictions_csv,
    refuse,
    require_writable,
)
from ..runs.ray_data import Cluster, parts_of
from ..runs.run_outputs import logits_of
from ..runs.run_pool import fit_to_test
from ..selection.answers import Answers
from ..selection.calibration import Effect
from ..selection.held_out import HeldOut
from ..training.evaluation import evaluate
from ..training.run_files import remove_folder
from .output import (
    bar,
    percent,
    print_accuracy,
    print_json,
    print_text,
    require_one_output,
    results_only,
    say,
    say_left_out,
)
from .unknown import limit_of, limit_of_average, refusal_as_json, refusal_in_words

if TYPE_CHECKING:
    from ..runs.stored_head import StoredHead


def open_for_use(folder: Path, device: str, trust: bool, weights: Path | None) -> LoadedModel:
    """Load a run or a head, and say what the user should know before using it."""
    with results_only():
        run = open_model(folder, choose_device(device), weights=weights, trust=trust)
    if caution := run.caution():
        say(f"note: {caution}")
    return run


def evaluate_run(
    folder: Path,
    images: Path,
    *,
    leave_out: bool,
    unknown_below: float | None = None,
    refuse_wrong: float | None = None,
    device: str,
    workers: int | None,
    quiet: bool,
    json: bool,
    trust: bool = False,
    weights: Path | None = None,
) -> None:
    """Test a run on images in class folders or in a list, and print its accuracy."""
    run = open_for_use(folder, device, trust, weights)
    limit = limit_of(folder, run.calibration, unknown_below, refuse_wrong, run.folded_temperature)
    with bar(quiet) as progress:
        tested, left_out, notes = images_for(run, images, leave_out=leave_out, workers=workers, progress=progress)
        tested, protocol = fit_to_test(folder, tested, notes)
        if not quiet:
            say(f"{len(tested)} images from {tested.origin}")
        for note in notes:
            say(f"note: {note}")
        say_left_out(left_out)
        logits = logits_of(run, tested, workers, progress)
    accuracy = evaluate(logits, torch.tensor(tested.labels), tested.classes).as_json()
    rows = HeldOut(logits.numpy(), np.array(tested.labels))
    accuracy["calibration"] = Effect.of(rows, run.calibration, run.folded_temperature)._asdict()
    refused = None if limit is None else Answers.of(rows, run.temperature).refuse(limit)
    if json:
        out = [path.as_json() for path in left_out]
        unknown = {} if refused is None else {"unknown": refusal_as_json(refused)}
        result = {"run": str(folder), "step": run.step, "protocol": protocol, "accuracy": accuracy, **unknown}
        print_json({**result, "left_out": out, "notes": notes})
        return
    name = accuracy_name(protocol)
    print_accuracy(accuracy, name)
    low, high = accuracy["interval95"]
    print_text(
        f"{name} {percent(accuracy['micro'])} % ({percent(low)} to {percent(high)}) on {accuracy['rows']} images"
    )
    if refused is not None:
        print_text(refusal_in_words(refused))


def predict_run(
    folder: Path,
    paths: Sequence[Path],
    *,
    out: Path | None,
    top: int,
    unknown_below: float | None = None,
    refuse_wrong: float | None = None,
    device: str,
    workers: int | None,
    quiet: bool,
    json: bool,
    trust: bool = False,
    weights: Path | None = None,
    cluster: Cluster | None = None,
    others: Sequence[Path] = (),
) -> None:
    """Label images, or the rows of feature files, and write the labels as CSV; of several runs their average."""
    if out == STDOUT:
        out = None
    if out is not None:
        require_writable(out)
    unreadable: list[LeftOut] = []
    predictions: list[Prediction] = []
    if tables := [path for path in paths if path.suffix.lower() == ".npz"]:
        from ..runs.stored_head import label_files  # what only a head needs takes a moment to import

        if cluster is not None:
            raise ValueError("feature files (.npz) are labelled in a moment: leave out --engine ray")
        if others:
            raise ValueError("--with averages runs that label images: leave it out for feature files (.npz)")
        head = _head_for(tables, folder, paths)
        limit = limit_of(folder, None, unknown_below, refuse_wrong, head.fit.temperature)
        predictions, classes = label_files(head, tables, top), head.classes
    else:
        files = find_images(paths)
        places = {place: weights if place == folder or is_head(place) else None for place in (folder, *others)}
        runs = {
            place: open_for_use(place, device if cluster is None else "cpu", trust, file)
            for place, file in places.items()
        }
        limit, classes = limit_of_average(runs, unknown_below, refuse_wrong), runs[folder].classes
        refuse([], limit, classes)  # before images are read
        check_top(top, classes)
        with bar(quiet) as progress:
            if cluster is None or out is None:
                run, *rest = runs.values()
                predictions, unreadable = classify(run, files, top, workers, progress, others=rest)
            else:
                from ..runs.cluster import label_on  # what only a cluster needs

                options = {"weights": places, "trust": trust, "progress": progress}
                predictions, unreadable = label_on(cluster, runs, files, top, out, **options)
        say_left_out(unreadable)
        if not predictions:
            raise ValueError(f"none of the {len(files)} files can be read")
    predictions = refuse(predictions, limit, classes)
    if out is not None:
        write_output(out, predictions_csv(predictions, top).encode())
        if cluster is not None:
            remove_folder(parts_of(out))
    labelled, unknown = len(predictions), sum(bool(prediction.refused) for prediction in predictions)
    result: dict[str, Any] = {
        "run": str(folder),
        **({"with": [*map(str, others)]} if others else {}),
        "out": None if out is None else str(out),
        "labelled": labelled,
        **({} if limit is None else {"unknown": {"below": limit, "images": unknown}}),
        "unreadable": [path.as_json() for path in unreadable],
    }
    if json:
        listed = {"predictions": [_as_json(prediction) for prediction in predictions]} if out is None else {}
        print_json({**result, **listed})
    elif out is None:
        sys.stdout.write(predictions_csv(predictions, top))
    else:
        what = "rows" if tables else "images"
        refused = "" if limit is None else f", {unknown} of them {UNKNOWN}"
        print_text(f"{labelled} {what} labelled in {out}{refused}, {len(unreadable)} could not be read")


def _head_for(tables: list[Path], folder: Path, paths: Sequence[Path]) -> "StoredHead":
    """Read the head that labels the rows of feature files, which need no images."""
    if len(tables) < len(paths):
        raise ValueError("feature files (.npz) and images cannot be labelled together: call predict for each")
    if not is_head(folder):
        raise ValueError(
            f"{tables[0]} holds features, which a head made by `sohot fit-features` labels; {folder} is none: "
            "give it images"
        )
    from ..runs.stored_head import read_head  # takes a moment, too

    return read_head(folder)


def _as_json(prediction: Prediction) -> dict[str, Any]:
    likeliest = zip(prediction.labels, prediction.probabilities, strict=True)
    top = [{"label": label, "probability": share} for label, share in likeliest]
    truth = {} if prediction.truth is None else {"truth": prediction.truth}
    answer = {} if prediction.refused is None else {"label": prediction.answer, "guess": prediction.labels[0]}
    return {"path": printable(prediction.file), **truth, **top[0], **answer, "top": top}


def export_file(folder: Path, file: Path, *, json: bool, trust: bool = False, weights: Path | None = None) -> None:
    """Write a run as ONNX and print how closely it agrees."""
    require_one_output(file, "--onnx", json)
    run = open_for_use(folder, "cpu", trust, weights)
    with results_only():
        result = export_run(run, file)
    if json:
        print_json({"run": str(folder), **result})
        return
    size = " x ".join(map(str, result["input"]))
    tell = say if file == STDOUT else print_text
    temperature = run.temperature * run.folded_temperature
    weight = "" if result["bytes"] is None else f"{result['bytes'] / 1e6:.1f} MB, "
    tell(
        f"{file}: {weight}images of {size}, {len(result['classes'])} classes; "
        f"onnxruntime agrees to {result['largest_difference']:.1e}"
        + ("" if temperature == 1 else f"; logits are divided by the temperature {temperature:.3g}")
    )


def export_package(
    folder: Path,
    out: Path,
    *,
    json: bool,
    trust: bool = False,
    weights: Path | None = None,
) -> None:
    """Write a run as a folder that labels images without sohot, and say how to use it."""
    from ..runs.package import write_package  # what only a package needs

    run = open_for_use(folder, "cpu", trust, weights)
    with results_only():
        result = write_package(run, folder, out)
    if json:
        print_json({"run": str(folder), **result})
        return
    size = sum(file["bytes"] for file in result["files"].values())
    print_text(
        f"{out}: {size / 1e6:.1f} MB, {result['classes']} classes; "
        f"onnxruntime agrees to {result['largest_difference']:.1e}; README.md there tells how to use it"
    )


def report_on(
    folder: Path,
    out: Path | None,
    *,
    images: int,
    figures: Path | None,
    quiet: bool,
    json: bool,
    trust: bool = False,
) -> None:
    """Write the report of a folder and say where it is."""
    require_one_output(out, "--out", json)
    from ..reporting.pages import kind_of, write_report  # what draws takes a moment to import

    with results_only(), bar(quiet) as progress:
        file = write_report(folder, out, images=images, figures=figures, progress=progress, trust=trust)
    size = None if is_stream(file) else file.stat().st_size
    if json:
        print_json({"path": str(folder), "kind": kind_of(folder), "report": str(file), "bytes": size})
    elif size is None:
        say(f"{file}: report of the {kind_of(folder)}")
    else:
        print_text(f"{file}: report of the {kind_of(folder)}, {size / 1e6:.1f} MB; open it in a browser")
