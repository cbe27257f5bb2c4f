"""What `sohot features` and `sohot fit-features` do: extract features once, train many classifiers on them."""

import shlex
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, get_type_hints

import numpy as np

from .._device import choose_device
from .._outputs import STDOUT, is_stream
from ..data.folders import LeftOut
from ..data.names import printable
from ..methods.options import WIDTH, convert, flag
from ..methods.settings import HeadSettings
from ..networks.names import absolute_name
from ..networks.registry import find_builder
from ..runs.auto import AUTO
from ..runs.feature_extraction import extract, find_domains, find_unlabelled, is_flat
from ..runs.feature_network import FeatureNetwork, create_feature_backbone
from ..runs.feature_run import POOL, fit_features, require_new_folder
from ..runs.feature_set import FeatureSet, read_features, read_rows, write_features
from ..runs.feature_split import REST, split_features
from ..runs.predictions import require_writable
from ..runs.ray_data import Cluster, parts_of
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


def make_features(
    folder: Path,
    out: Path,
    *,
    backbone: str,
    weights: Path | None,
    dataset: str | None,
    tap: str | None,
    image_size: int | None,
    channels: int,
    views: int,
    no_labels: bool,
    device: str,
    workers: int | None,
    quiet: bool,
    json: bool,
    cluster: Cluster | None = None,
) -> None:
    """Extract the features of all images of a folder or a list into one file."""
    require_one_output(out, "--out", json)
    if out.suffix != ".npz" and not is_stream(out):
        raise ValueError(f"--out {out} must end in .npz")
    require_writable(out)
    if image_size is not None:
        WIDTH.check(image_size, "--image-size")
    if no_labels and dataset is not None:
        raise ValueError("--no-labels takes all images of a folder alike: leave out --dataset, or --no-labels")
    find_builder(backbone)
    where = choose_device(device if cluster is None else "cpu")
    labelled = not (no_labels or (dataset is None and is_flat(folder)))
    with results_only(), bar(quiet) as progress:
        check = cluster is None  # else the workers find out which images can be read
        if labelled:
            domains, left_out = find_domains(folder, dataset, workers, progress, check=check)
        else:
            domains, left_out = find_unlabelled(folder, workers, progress, check=check)
        say_left_out(left_out)
        options: dict[str, Any] = {"weights": weights, "channels": channels, "tap": tap, "size": image_size}
        options["name"] = absolute_name(backbone)
        network = create_feature_backbone(**options)
        if not network.pretrained:
            say(f"note: {backbone} has no trained weights here; its features are random")
        if not (labelled or no_labels):
            lacking = "labels" if folder.is_file() else "class folders"
            say(f"note: {printable(folder)} has no {lacking}, so its images get no labels")
        if cluster is None:
            found = extract(
                domains, network, views=views, labelled=labelled, device=where, workers=workers, progress=progress
            )
            write_features(out, found)
        else:
            from ..runs.cluster import extract_on  # what only a cluster needs

            options |= {"progress": progress, "labelled": labelled, "each_class": dataset is None}
            found, unreadable = extract_on(cluster, domains, FeatureNetwork.of(network, views), out, **options)
            say_left_out(unreadable)
            left_out = [*left_out, *unreadable]
            write_features(out, found)
            remove_folder(parts_of(out))
    _tell_features(out, found, left_out, json)


def _tell_features(out: Path, found: FeatureSet, left_out: list[LeftOut], json: bool) -> None:
    """Print what was written: the rows of each domain, their classes and what was left out."""
    rows, width = found.features.shape
    counts = dict(zip(found.domain_names, np.bincount(found.domains).tolist(), strict=True))
    if json:
        print_json(
            {
                "out": str(out),
                "rows": rows,
                "features": width,
                "classes": list(found.classes),
                "domains": counts,
                "network": found.network,
                "left_out": [path.as_json() for path in left_out],
            }
        )
        return
    several = f" in {len(counts)} domains" if len(counts) > 1 else ""
    known = f"{len(found.classes)} classes" if found.classes else "no labels"
    tell = say if out == STDOUT else print_text
    tell(f"{out}: {rows} rows of {width} features, {known}{several}")


def fit_feature_files(
    source: Path,
    target: Path,
    out: Path,
    *,
    test: Path | None,
    unlabelled: list[str],
    source_domain: str | None,
    target_domain: str | None,
    shots: int | None,
    leave_out: bool,
    device: str,
    settings: dict[str, Any],
    quiet: bool,
    json: bool,
) -> None:
    """Train a classifier on files of features, test it, and print its accuracy."""
    require_new_folder(out)
    hints = get_type_hints(HeadSettings)
    values = {
        one.name: convert(one, hints[one.name], settings[one.name])
        for one in fields(HeadSettings)
        if one.name in settings
    }
    if values.get("method") != AUTO:
        HeadSettings(**values)  # reports wrong values before the files are read
    seed = values.pop("seed", HeadSettings.seed)
    params = {"method": HeadSettings.method, **values, "random_state": seed, "device": device}
    found = split_features(
        _open(source, source_domain),
        _open(target, target_domain),
        None if test is None else _open(test, target_domain),
        unlabelled=_open_pools(unlabelled, target_domain),
        shots=shots,
        seed=seed,
        leave_out=leave_out,
        any_network=values.get("streams") == "separate",
    )
    rows = {"source": found.source, "target": found.target, "test": found.test}
    if found.pool is not None:
        rows["unlabelled"] = found.pool
    if not quiet:
        say(f"{len(found.classes)} classes; " + ", ".join(f"{name}: {len(x or ())} rows" for name, x in rows.items()))
    for note in found.notes:
        say(f"note: {note}")
    given: dict[str, Any] = {"source": source, "target": target, "test": test}
    given |= {
        "unlabelled": [REST] if unlabelled == [REST] else [*map(Path, unlabelled)],
        "source_domain": source_domain,
    }
    given |= {"target_domain": target_domain, "shots": shots, "leave_out": leave_out, **settings}
    repeat = _command({**given, "out": f"{out}-again"})
    with bar(quiet) as progress:
        report = fit_features(found, out, params, progress, repeat)
    if report["chosen"] is not None and not quiet:
        say(f"chosen of {report['chosen']['trials']}: {report['chosen']['reason']}")
    elif report["pool"] is not None and not quiet:
        say(report["pool"]["reason"])
    if json:
        print_json(report)
        return
    accuracy = report["accuracy"]
    kind = "transductive accuracy" if found.protocol == "transductive" else "accuracy"
    if accuracy is not None:
        print_accuracy(accuracy, kind)
    result = "" if accuracy is None else f", {kind} {percent(accuracy['micro'])} %"
    result += f", temperature {report['temperature']:.2f}"
    print_text(f"{report['method']}: trained in {report['training_seconds']:.1f} s{result}, model in {out}")
    if found.pool is not None:
        print_text(f"labels of the {len(found.pool)} unlabelled rows in {out / POOL}")


def _command(options: dict[str, Any]) -> str:
    """Write the command for some options; files by their absolute paths.

    >>> _command({"shots": 3, "leave_out": True, "test": None, "out": "heads/first-again"})
    'sohot fit-features --shots 3 --leave-out --out heads/first-again'
    """
    words = ["sohot", "fit-features"]
    for name, values in options.items():
        for value in values if isinstance(values, list) else [values]:
            if value is not None and value is not False:
                absolute = value.absolute() if isinstance(value, Path) else value
                words += [flag(name)] if value is True else [flag(name), str(absolute)]
    return shlex.join(words)


def _open_pools(files: list[str], domain: str | None) -> list[FeatureSet] | Literal["rest"]:
    """Read files of unlabelled rows; of a file with several domains, that of the target."""
    if files == [REST]:
        return REST
    if REST in files:
        raise ValueError(f"--unlabelled {REST} stands alone; a file of that name is ./{REST}")
    found = []
    for file in map(Path, files):
        rows = read_rows(file)
        if len(rows.domain_names) > 1 and domain is None:
            raise ValueError(f"{file} holds several domains: name one with --target-domain")
        found.append(rows.domain(domain) if domain in rows.domain_names else rows)
    return found


def _open(file: Path, domain: str | None) -> FeatureSet:
    """Read a feature file, or one domain of it."""
    found = read_features(file)
    if domain is None:
        return found
    try:
        return found.domain(domain)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None
