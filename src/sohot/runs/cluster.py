"""Labels and features on a Ray cluster, by Ray Data: each part of the images has a file until the result is written."""

import hashlib
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .._device import choose_device
from .._files import holding_folder, write_atomically
from ..data.folders import LeftOut, check_no_class_lost
from ..data.labelled import LabelledImages, Progress
from ..data.names import printable
from ..data.shard_files import shard_of
from ..networks.inference import run_views
from ..training.run_files import checkpoint_folders
from .description import HEAD, is_head
from .feature_extraction import as_set, digests
from .feature_network import FeatureNetwork, create_feature_backbone
from .feature_set import FeatureSet
from .loaded_run import LoadedModel, open_model
from .predictions import BATCH, Network, Prediction, label_batches, pass_readable, without_labels
from .ray_data import Cluster, Compute, Opens, compute, parts_of

_PARTS, _LEAST, _MOST = 1000, 256, 4096  # parts, and images in each
_Options = Mapping[str, Any]


class _Passed(NamedTuple):
    """What came of images: the readable rows, their outputs and digests; the other rows, and why."""

    rows: list[int]
    outputs: Tensor
    contents: list[str]
    broken: dict[int, str]


def label_on(
    cluster: Cluster, runs: Mapping[Path, LoadedModel], files: Sequence[Path], top: int, out: Path, **options: Any
) -> tuple[list[Prediction], list[LeftOut]]:
    """Label images as `classify` does, by runs in these folders, for a file.

    The options are `progress`, those of `open_model` and `weights`, by folder.
    """
    progress, weights, broken = options.pop("progress"), options.pop("weights"), dict[int, str]()

    def passed(path: Path, run: LoadedModel) -> Iterator[tuple[list[int], Tensor]]:
        stamp = _stamp(path)
        opens = partial(_open_run, path, stamp, {"weights": weights[path], **options})
        found = _pass_on(cluster, without_labels(files), opens, stamp, run.views, out, progress)
        broken.update(found.broken)
        if found.rows:
            yield found.rows, found.outputs

    batches = label_batches([*runs.values()], [passed(*one) for one in runs.items()], files, top)
    predictions = [prediction for batch in batches for prediction in batch]
    return predictions, [LeftOut(files[row], broken[row]) for row in sorted(broken)]


def extract_on(
    cluster: Cluster, domains: Mapping[str, LabelledImages], network: FeatureNetwork, out: Path, **options: Any
) -> tuple[FeatureSet, list[LeftOut]]:
    """Extract features as `find_domains` and `extract` do, for a file; `options` also build the network."""
    progress, labelled, each_class = (options.pop(name) for name in ("progress", "labelled", "each_class"))
    opens, stamp = partial(_open_backbone, network, options), network.as_json()
    every = {name: _pass_on(cluster, x, opens, stamp, network.views, out, progress) for name, x in domains.items()}
    readable = {name: domains[name].subset(passed.rows) for name, passed in every.items()}
    for name, passed in every.items() if each_class else ():
        check_no_class_lost(domains[name], readable[name], passed.broken)
    features = torch.cat([passed.outputs for passed in every.values() if passed.rows] or [torch.empty(0, 0)]).numpy()
    contents = [text for passed in every.values() for text in passed.contents]
    left_out = [LeftOut(domains[name].files[row], why) for name in every for row, why in every[name].broken.items()]
    return as_set(readable, features, contents, stamp, labelled=labelled), left_out


def _pass_on(
    cluster: Cluster, images: LabelledImages, opens: Opens, stamp: Any, views: int, out: Path, progress: Progress | None
) -> _Passed:
    """Compute the parts that are missing, and join all, in order."""
    batch = max(BATCH // views, 1)
    size = max(min(max(len(images) // _PARTS, _LEAST), _MOST) // batch, 1) * batch  # cut between batches
    names = [(os.path.abspath(file), images.name(row)) for row, file in enumerate(images.files)]
    key = hashlib.sha256(json.dumps([stamp, views, size, names]).encode()).hexdigest()[:16]
    files = {first: parts_of(out) / f"{key}-{first:09d}.pt" for first in range(0, len(images), size)}
    with holding_folder(parts_of(out)):
        absent = [first for first, file in files.items() if not file.exists()]
        parts = {first: (first, images.subset(range(len(images))[first : first + size])) for first in absent}
        left = sum(len(part) for _, part in parts.values())
        for first, content in compute(cluster, parts, opens) if parts else ():
            write_atomically(files[first], content)
            left -= len(parts[first][1])
            if progress is not None:
                progress("images on the cluster", len(images) - left, len(images))
    found = [_read(file) for file in files.values()]
    rows, contents = ([value for part in found for value in part[name]] for name in ("rows", "contents"))
    outputs = torch.cat([part["outputs"] for part in found if part["rows"]] or [torch.empty(0, 0)])
    return _Passed(rows, outputs, contents, {row: why for part in found for row, why in part["broken"].items()})


def _read(file: Path) -> dict[str, Any]:
    try:
        part: dict[str, Any] = torch.load(file, weights_only=True)
    except Exception as error:  # whatever a damaged file raises
        raise ValueError(f"{file} is damaged ({error}): remove it and run the same command again") from None
    return part


def _stamp(path: Path) -> str:
    """Return a digest of the weights of a run or a head."""
    head = path / HEAD if path.is_dir() else path
    files = [head] if is_head(path) else sorted(checkpoint_folders(path / "checkpoints")[0].iterdir())
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _open_run(path: Path, stamp: str, options: _Options, device: str, readers: int) -> Compute:
    model = open_model(path, choose_device(device), **options)
    if _stamp(path) != stamp:
        raise ValueError(f"{path} holds another model here than where the command runs")
    return partial(_pass, Network(model.logits, model.input, model.views), False, readers)


def _open_backbone(network: FeatureNetwork, options: _Options, device: str, readers: int) -> Compute:
    place = choose_device(device)
    backbone = create_feature_backbone(**options).to(place)
    if FeatureNetwork.of(backbone, network.views) != network:
        raise ValueError(f"{network.backbone} has other weights or layers here than where the command runs")
    outputs = partial(run_views, backbone, views=network.views, device=place)
    return partial(_pass, Network(outputs, network.input, network.views), True, readers)


def _pass(network: Network, digest: bool, readers: int, some: tuple[int, LabelledImages]) -> bytes:
    """Pass images through a network; return what `_read` reads."""
    (first, images), broken = some, dict[int, str]()
    passed = list(pass_readable(network, images, broken, readers))
    if not passed and not any(file.exists() or shard_of(file) for file in images.files):
        missing = printable(images.files[0])
        raise FileNotFoundError(
            f"{missing} cannot be found: images need the same path on all machines (docs/cluster.md)"
        )
    rows = [row for some, _ in passed for row in some]
    part = {
        "rows": [first + row for row in rows],
        "outputs": torch.cat([outputs.float() for _, outputs in passed] or [torch.empty(0, 0)]),
        "contents": digests(images.subset(rows)) if digest else [],
        "broken": {first + row: reason for row, reason in broken.items()},
    }
    torch.save(part, stream := io.BytesIO())
    return stream.getvalue()
