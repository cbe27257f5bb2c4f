"""The training steps that the GPU benchmarks measure: those of `sohot fit`, with random weights and made-up images."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from sohot.methods import FitSettings
from sohot.networks import Backbone, TwoStreams, create_backbone
from sohot.training import Inputs, TensorInputs
from sohot.training.fabric import make_fabric
from sohot.training.inputs import Domain, WholeSet
from sohot.training.randomness import reproducible
from sohot.training.trainer import Trainer, compiled

CLASSES, SOURCE, TARGET, SIDE = 31, 5, 3, 224
ROWS = CLASSES * (SOURCE + TARGET)
BLOCK = 5  # steps between two events
PLAIN, ALIGNED = "s+t", "so+to+fo+zeta"


@dataclass(frozen=True)
class Case:
    """What is measured: which layers train, and how they are computed."""

    trains: str  # "paper" (layer4 and the classifier) or "all"
    precision: str
    channels_last: bool = True
    compile: bool = False
    cache: bool = False
    capture: bool = True
    network: str = "resnet50"

    @property
    def layout(self) -> torch.memory_format:
        return torch.channels_last if self.channels_last else torch.contiguous_format

    def __str__(self) -> str:
        parts = ["all layers" if self.trains == "all" else "layer4 + classifier", self.precision.replace("-true", "")]
        parts += ["channels-last"] * self.channels_last + ["compiled"] * self.compile
        return ", ".join([*parts, *["cached trunk"] * self.cache, *["not captured"] * (not self.capture)])


class PlainLayout(Domain):
    """Leaves the memory layout of images unchanged: channel by channel."""

    def arrange(self, inputs: Tensor) -> Tensor:
        return inputs


@contextmanager
def trainer_of(case: Case, method: str, source: Inputs, target: Inputs, steps: int = 10_000) -> Iterator[Trainer]:
    """Build the trainer for a case as `fit` does."""
    with ExitStack() as stack:
        settings = FitSettings(
            method=method,
            steps=steps,
            device="cuda",
            precision=case.precision,
            compile=case.compile,
            capture=case.capture,
            from_trunk=case.cache,
            schedule="constant",
            lr=1e-6,
        )
        fabric = make_fabric(settings)
        stack.enter_context(reproducible(0, "cuda"))
        model = make_model(case)
        stack.enter_context(compiled(model, case.compile, fabric.device))
        kind = Domain if case.channels_last else PlainLayout
        domains = [
            kind(name, inputs, torch.arange(CLASSES).repeat_interleave(len(inputs) // CLASSES), CLASSES)
            for name, inputs in (("source", source), ("target", target))
        ]
        trainer = Trainer(fabric, model, *domains, WholeSet(len(source), len(target)), settings)
        stack.callback(trainer.close)
        yield trainer


@cache
def network(name: str) -> Backbone:
    """Build a network, split into its stages, once."""
    return create_backbone(name, pretrained=False)


def make_model(case: Case) -> TwoStreams:
    """Build the streams for a case on the GPU."""
    model = TwoStreams(deepcopy(network(case.network)), CLASSES, trains=case.trains, batch_norm="fixed")
    return model.to("cuda", memory_format=case.layout)


def resident_inputs(case: Case) -> list[Inputs]:
    """Return images, or outputs of the trunk, that are already on the GPU."""
    images = [torch.randn(CLASSES * each, 3, SIDE, SIDE, device="cuda") for each in (SOURCE, TARGET)]
    if case.cache:
        with torch.no_grad():
            images = [make_model(case).trunk("target")(one).contiguous(memory_format=case.layout) for one in images]
    return [TensorInputs(one) for one in images]


class Ever(WholeSet):
    """The whole set in every step, gathered again each time, as in training with more rows than fit in a batch."""

    def batch(self, step: int) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        source, target = self._rows
        return source.clone(), target.clone()


def block(trainer: Trainer, first: int, steps: int = BLOCK) -> float:
    """Return the milliseconds per step on the GPU, over a block of steps."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for step in range(first, first + steps):
        trainer.step(step)
    end.record()
    end.synchronize()
    trainer.records()
    return start.elapsed_time(end) / steps
