"""Trains and tests on the sides of a split, as `sohot fit` does on folders."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from ..data.datasets.dataset import DataSet
from ..data.datasets.registry import open_dataset
from ..data.labelled import LabelledImages
from ..data.protocols.registry import make_split
from ..data.protocols.split import Split
from ..networks.model import TwoStreams
from ..runs.batching import make_batches
from ..runs.building import build_model
from ..runs.config import RunConfig
from ..runs.testing import accuracy_on
from ..runs.training_inputs import choose_device, training_inputs
from ..training.evaluation import evaluate, predict_logits
from ..training.fitting import FitResult, fit
from ..training.inputs import Inputs, TensorInputs
from .cell import Cell
from .features import RowInputs, TrunkFeatures
from .grid_keys import FEATURE_KEYS

FEATURES = "features"
BATCH = 256


@dataclass(frozen=True)
class Where:
    """Where cells are computed; it has no influence on results.

    Attributes:
        root: The folder of the data set.
        out: The folder of the experiment.
        data: Options of the data set.
        device: "auto", "cpu", "cuda" or "mps".
        workers: Threads that read images; None for one per core.
    """

    root: Path
    out: Path
    data: Mapping[str, Any]
    device: str = "auto"
    workers: int | None = None


def draw_split(cell: Cell, where: Where) -> Split:
    """Draw the split of a cell; the last few are remembered, for cells of one split come one after the other."""
    return _split(
        cell.dataset,
        where.root,
        json.dumps(dict(where.data)),
        cell.protocol,
        cell.shift,
        cell.split,
        json.dumps(dict(cell.draw)),
    )


@lru_cache(maxsize=4)
def _dataset(name: str, root: Path, options: str) -> DataSet:
    return open_dataset(name, root, **json.loads(options))


@lru_cache(maxsize=8)
def _split(name: str, root: Path, options: str, protocol: str, shift: str, split: int, draw: str) -> Split:
    return make_split(protocol, _dataset(name, root, options), shift, split, **json.loads(draw))


def config_of(cell: Cell, settings: Mapping[str, Any], where: Where) -> RunConfig:
    """Give the options of `sohot fit` that a cell stands for."""
    own = {"method": cell.method, "backbone": cell.backbone, "device": where.device, "read_threads": where.workers}
    if cell.frozen:  # the whole network is the trunk
        settings = {name: value for name, value in settings.items() if name in FEATURE_KEYS}
        own |= {"trains": "head"}
    return RunConfig.from_values({**settings, **own, "loggers": ("none",)})


@dataclass(frozen=True)
class Trained:
    """A trained network and how well it does."""

    result: FitResult
    accuracy: dict[str, Any]
    seconds: dict[str, float]
    sizes: dict[str, int]
    notes: list[str]


def train(
    cell: Cell,
    settings: Mapping[str, Any],
    classes: Sequence[str],
    sides: Mapping[str, LabelledImages],
    test_side: str,
    where: Where,
) -> Trained:
    """Train on the sides "source_train" and "target_train", as far as the method uses them, and test on another.

    Args:
        cell: The cell.
        settings: Its settings, or others that are tried.
        classes: Names of the classes.
        sides: Images by side.
        test_side: The side to test on.
        where: Where shared features lie, and the device.
    """
    config = config_of(cell, settings, where)
    method = config.settings().resolved_method()
    source = sides["source_train"] if method.uses_source else None
    target = sides["target_train"] if method.uses_target else None
    test = sides[test_side]
    model = build_model(config, len(classes))
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload] # which torch's stubs lack
    times = [time.perf_counter()]
    reader = _Reader(config, model, where)
    source_inputs, target_inputs = reader.inputs("source", source), reader.inputs("target", target)
    test_inputs = None if config.augment else reader.inputs("target", test, trained=False)
    times.append(time.perf_counter())
    batches = make_batches(config, source, target)
    steps = None if config.epochs is None else config.epochs * batches.steps_per_epoch
    result = fit(
        model,
        source_inputs,
        () if source is None else source.labels,
        target_inputs,
        () if target is None else target.labels,
        config.settings(steps, from_trunk=not config.augment),
        batches=batches,
    )
    times.append(time.perf_counter())
    accuracy = _test(config, model, test, test_inputs)
    times.append(time.perf_counter())
    spans = (after - before for before, after in pairwise(times))
    seconds = dict(zip(("features", "train", "test"), spans, strict=True))
    parts = {"source": source, "target": target, "test": test}
    sizes = {name: 0 if images is None else len(images) for name, images in parts.items()}
    return Trained(result, accuracy, seconds, sizes, reader.notes)


def _test(config: RunConfig, model: TwoStreams, test: LabelledImages, inputs: Inputs | None) -> dict[str, Any]:
    if inputs is None:
        return accuracy_on(model, test, config.read_threads)
    logits = predict_logits(model, inputs, batch_size=BATCH, from_trunk=True)
    return evaluate(logits, torch.tensor(test.labels), test.classes).as_json()


class _Reader:
    """Gives inputs: the shared features where they are, else computed here."""

    def __init__(self, config: RunConfig, model: TwoStreams, where: Where) -> None:
        self.config, self.model, self.where = config, model, where
        self.notes: list[str] = []
        self._features: dict[int, TrunkFeatures] = {}

    def inputs(self, domain: str, images: LabelledImages | None, *, trained: bool = True) -> Inputs | None:
        if images is None:
            return None
        if self.config.augment:
            return training_inputs(self.config, self.model, domain, images, "off")
        trunk = self.model.trunk(domain)
        if id(trunk) not in self._features:
            spec = self.model.inputs[domain]
            self._features[id(trunk)] = TrunkFeatures(self.where.out / FEATURES, trunk, spec)
        found = self._features[id(trunk)].inputs(images)
        if found is not None:
            return _near(found, choose_device(self.config.device)) if trained else found
        self.notes = [f"outputs of the frozen layers were not in {FEATURES}/ and were computed for this cell alone"]
        return training_inputs(self.config, self.model, domain, images, "memory")


def _near(inputs: RowInputs, device: torch.device) -> Inputs:
    """Bring what is read in every step to a GPU once, if it takes at most a quarter of what is free there."""
    if device.type != "cuda":
        return inputs
    whole = inputs.batch(torch.arange(len(inputs)))
    fits = whole.numel() * whole.element_size() <= torch.cuda.mem_get_info()[0] / 4
    return TensorInputs(whole.to(device) if fits else whole)
