"""Labels and features on a Ray cluster, by Ray Data: each part of the images has a file until the result is written."""

import hashlib
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

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
from .npz import read_arrays
from .predictions import BATCH, Network, Prediction, likeliest, pass_readable, without_labels
from .ray_data import Cluster, Compute, Opens, compute, parts_of

_PARTS, _LEAST, _MOST = 1000, 256, 4096  # parts, and images in each
_Options = Mapping[str, Any]


class _Part(NamedTuple):
    """What came of some images: the readable rows, their outputs and digests; the other rows, and why."""

    rows: Any
    outputs: Any
    contents: Any
    broken: Any
    reasons: Any


def label_on(
    cluster: Cluster,
    run: LoadedModel,
    path: Path,
    files: Sequence[Path],
    top: int,
    out: Path,
    progress: Progress | None,
    **options: Any,
) -> tuple[list[Prediction], list[LeftOut]]:
    """Label images as `classify` does, for a file; `options` are those of `open_model`."""
    stamp, images = _stamp(path), without_labels(files)
    predictions: list[Prediction] = []
    left_out: list[LeftOut] = []
    for part in _parts(cluster, images, partial(_open_run, path, stamp, options), stamp, run.views, out, progress):
        if len(part.rows):
            readable, logits = [files[row] for row in part.rows], torch.from_numpy(part.outputs)
            predictions += likeliest(readable, logits, run.classes, top, run.temperature)
        left_out += [LeftOut(files[row], str(why)) for row, why in zip(part.broken, part.reasons, strict=True)]
    return predictions, left_out


def extract_on(
    cluster: Cluster,
    domains: Mapping[str, LabelledImages],
    network: FeatureNetwork,
    out: Path,
    progress: Progress | None,
    *,
    labelled: bool,
    each_class: bool,
    **options: Any,
) -> tuple[FeatureSet, list[LeftOut]]:
    """Extract features as `find_domains` and `extract` do, for a file; `options` build the network."""
    readable, left_out, every = {}, list[LeftOut](), list[_Part]()
    for name, images in domains.items():
        opens = partial(_open_backbone, network, options)
        parts = [*_parts(cluster, images, opens, network.as_json(), network.views, out, progress)]
        broken = {int(row): str(why) for part in parts for row, why in zip(part.broken, part.reasons, strict=True)}
        readable[name] = images.subset([int(row) for part in parts for row in part.rows])
        if each_class:
            check_no_class_lost(images, readable[name], broken)
        left_out += [LeftOut(images.files[row], why) for row, why in broken.items()]
        every += [part for part in parts if len(part.rows)]
    features = np.concatenate([part.outputs for part in every]) if every else np.empty((0, 0), np.float32)
    contents = [str(text) for part in every for text in part.contents]
    return as_set(readable, features, contents, network.as_json(), labelled=labelled), left_out


def _parts(
    cluster: Cluster, images: LabelledImages, opens: Opens, stamp: Any, views: int, out: Path, progress: Progress | None
) -> Iterator[_Part]:
    """Compute the parts that are missing, and return all, in order."""
    batch = max(BATCH // views, 1)
    size = max(min(max(len(images) // _PARTS, _LEAST), _MOST) // batch, 1) * batch  # cut between batches
    names = [(os.path.abspath(file), images.name(row)) for row, file in enumerate(images.files)]
    key = hashlib.sha256(json.dumps([stamp, views, size, names]).encode()).hexdigest()[:16]
    firsts = range(0, len(images), size)
    files = {first: parts_of(out) / f"{key}-{first:09d}.npz" for first in firsts}
    with holding_folder(parts_of(out)):
        rows = {first: range(first, min(first + size, len(images))) for first in firsts if not files[first].exists()}
        done = len(images) - sum(map(len, rows.values()))
        missing = {first: (first, images.subset(some)) for first, some in rows.items()}
        for first, content in compute(cluster, missing, opens) if missing else ():
            write_atomically(files[first], content)
            done += len(rows[first])
            if progress is not None:
                progress("images on the cluster", done, len(images))
    return map(_read, files.values())


def _read(file: Path) -> _Part:
    try:
        return _Part(**read_arrays(file, _Part._fields))
    except Exception as error:  # whatever a damaged archive raises
        raise ValueError(f"{file} is damaged ({error}): remove it and run the same command again") from None


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


def _pass(network: Network, digest: bool, readers: int, part: tuple[int, LabelledImages]) -> bytes:
    """Pass images through a network; return what `_read` reads."""
    (first, images), broken = part, dict[int, str]()
    passed = list(pass_readable(network, images, broken, readers))
    if not passed and not any(file.exists() or shard_of(file) for file in images.files):
        missing = printable(images.files[0])
        raise FileNotFoundError(
            f"{missing} cannot be found: images need the same path on all machines (docs/cluster.md)"
        )
    rows = [row for some, _ in passed for row in some]
    outputs = torch.cat([some for _, some in passed]).float().numpy() if passed else np.empty((0, 0), np.float32)
    contents = np.asarray(digests(images.subset(rows)) if digest else [], np.str_)
    reasons = np.asarray([*broken.values()], np.str_)
    numbers = (np.asarray([*some], np.int64) + first for some in (rows, broken))
    stream = io.BytesIO()
    np.savez(stream, **_Part(next(numbers), outputs, contents, next(numbers), reasons)._asdict())
    return stream.getvalue()
