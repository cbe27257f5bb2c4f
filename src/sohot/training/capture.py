"""Training steps as CUDA graphs: one call runs a whole step, so that the GPU never waits for Python.

A graph repeats recorded kernels on the memory they were recorded with. So a step finds its rows, learning rates and
ramps in tensors that keep their place, and steps of different kinds (another batch size, only the classifier trains, …)
are recorded separately. The results are those of the same kernels launched one by one.
"""

import warnings
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import cache
from typing import NamedTuple

import torch
from lightning_fabric import Fabric
from torch import Tensor

from ..methods.settings import FitSettings
from .inputs import StepBatch
from .ranks import Ranks

MOST_KINDS = 8
"""Kinds of steps that are recorded at most."""


class StepNumbers(NamedTuple):
    """What a step reports."""

    names: tuple[str, ...]
    values: Tensor


Step = Callable[[StepBatch], StepNumbers]


class CudaGraph:
    """A CUDA graph of a step. It is recorded on a stream of its own and runs on the current one."""

    batch: StepBatch  # where the recorded step reads

    def __init__(self, device: torch.device) -> None:
        self._device, self._aside = device, _recording_stream(device)
        self._graph = torch.cuda.CUDAGraph()

    def prepare(self, step: Step, batch: StepBatch) -> StepNumbers:
        """Run a step of a new kind, which creates the state of the optimiser, on the stream that will record it."""
        here = torch.cuda.current_stream(self._device)
        self._aside.wait_stream(here)
        with torch.cuda.stream(self._aside):
            numbers = step(batch)
        here.wait_stream(self._aside)
        return numbers

    def record(self, step: Step, batch: StepBatch) -> None:
        """Record a step without running it."""
        free, _ = torch.cuda.mem_get_info(self._device)
        if free < torch.cuda.memory_reserved(self._device):  # a graph has memory of its own: make room
            torch.cuda.empty_cache()
        random = torch.cuda.default_generators[self._device.index or 0]
        before = random.clone_state()

        def recorded(batch: StepBatch) -> StepNumbers:
            # Other threads read ahead meanwhile, so only this one has to keep to what a graph can hold.
            self._graph.capture_begin(capture_error_mode="thread_local")
            try:
                numbers = step(batch)
            except BaseException:
                with suppress(RuntimeError):  # the recording is lost anyway
                    self._graph.capture_end()
                random.graphsafe_set_state(before)  # torch leaves it as if the recording went on
                raise
            self._graph.capture_end()
            return numbers

        self.batch, self._numbers = batch, self.prepare(recorded, batch)

    def replay(self) -> StepNumbers:
        """Run the recorded step."""
        self._graph.replay()
        return StepNumbers(self._numbers.names, self._numbers.values.clone())


@cache
def _recording_stream(device: torch.device) -> torch.cuda.Stream:
    """Return the stream that records, always the same: libraries keep memory for every stream they see."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


class StepGraphs:
    """The graphs of one training, one for each kind of step, on a device."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._kinds: dict[Hashable, CudaGraph | None] = {}
        self._works = True

    def run(self, kind: Hashable, batch: StepBatch, step: Step) -> StepNumbers:
        """Run a step: the first of its kind as it is, the second recorded, from then on from the recording.

        Args:
            kind: Equal for steps that launch the same kernels, if their batches have the same shapes.
            batch: What the step shows.
            step: The step, whose Python code runs only for the first and the second of a kind.
        """
        kind = kind, *((tensor.shape, tensor.dtype) for tensor in batch.tensors())
        is_new = kind not in self._kinds
        if self._works and is_new and len(self._kinds) == MOST_KINDS:
            self._give_up("the batches have ever new shapes")
        if not self._works:
            return step(batch)
        graph = self._kinds.setdefault(kind, None)
        if is_new:
            return CudaGraph(self._device).prepare(step, batch)
        if graph is None:
            graph = CudaGraph(self._device)
            try:
                graph.record(step, batch)
            except Exception as error:  # torch reports what a graph cannot hold, and missing memory, in many ways
                reason = str(error).split("\n")[0][:200] or type(error).__name__
                self._give_up(f"a step cannot be recorded ({reason})")
                return step(batch)
            self._kinds[kind] = graph
        for place, given in zip(graph.batch.tensors(), batch.tensors(), strict=True):
            if place is not given:
                place.copy_(given, non_blocking=True)
        return graph.replay()

    def forget(self) -> None:
        """Drop all recordings, after a change that they do not know of."""
        self._kinds.clear()

    def _give_up(self, reason: str) -> None:
        self._works = False
        self.forget()
        _warn(reason)


def step_graphs(fabric: Fabric, ranks: Ranks, settings: FitSettings) -> StepGraphs | None:
    """Return the graphs of a training; None where steps run as they are: on a CPU, or where graphs cannot be used."""
    if fabric.device.type != "cuda" or not settings.capture:
        return None
    if not ranks.several and settings.precision != "16-mixed":
        return StepGraphs(fabric.device)
    mixed = "with precision 16-mixed the processor looks at every gradient"
    _warn("several devices share each batch" if ranks.several else mixed)
    return None


def _warn(reason: str) -> None:
    warnings.warn(f"capture: {reason}, so the steps are launched kernel by kernel", stacklevel=5)
