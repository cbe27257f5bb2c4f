"""Training steps as CUDA graphs: one call runs a whole step, so that the GPU never waits for Python.

A graph repeats recorded kernels on the memory they were recorded with. So a step finds its rows, learning rates and
ramps in tensors that keep their place, and steps of different kinds (another batch size, only the classifier trains, …)
are recorded separately. The results are those of the same kernels launched one by one.
"""

import warnings
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from lightning_fabric import Fabric
from torch import Tensor

from ..methods.settings import FitSettings
from .inputs import Shown
from .ranks import Ranks

MOST_KINDS = 8
"""Kinds of steps that are recorded at most."""


class StepBatch(NamedTuple):
    """What a step shows of each domain, and of the pool in both views."""

    source: Shown | None
    target: Shown | None
    weak: Shown | None
    strong: Shown | None
    source_rows: Tensor | None  # numbers of the source rows; only with a pool

    def tensors(self) -> list[Tensor]:
        """Return all tensors, in a fixed order."""
        shown = [one for one in self[:4] if one is not None]
        return [*(tensor for one in shown for tensor in one), *([] if self.source_rows is None else [self.source_rows])]


class StepNumbers(NamedTuple):
    """What a step reports."""

    names: tuple[str, ...]
    values: Tensor


Step = Callable[[StepBatch], StepNumbers]


class Graph(Protocol):
    """Records kernels, and runs them again."""

    def prepare(self, step: Step, batch: StepBatch) -> StepNumbers:
        """Run a step of a kind that was never seen: it compiles kernels and creates the state of the optimiser."""

    def record(self, step: Step, batch: StepBatch) -> StepNumbers:
        """Record a step without running it; returns where it will put its numbers."""

    def replay(self) -> None:
        """Run what was recorded."""


class CudaGraph:
    """A CUDA graph. It is recorded on a stream of its own and runs on the current one."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._graph = torch.cuda.CUDAGraph()

    def prepare(self, step: Step, batch: StepBatch) -> StepNumbers:
        """Run a step on another stream, as torch asks for before recording its backward pass."""
        here = torch.cuda.current_stream(self._device)
        aside = _recording_stream(here)
        aside.wait_stream(here)
        with torch.cuda.stream(aside):
            numbers = step(batch)
        here.wait_stream(aside)
        return numbers

    def record(self, step: Step, batch: StepBatch) -> StepNumbers:
        """Record a step without running it."""
        here = torch.cuda.current_stream(self._device)
        aside = _recording_stream(here)
        free, _ = torch.cuda.mem_get_info(self._device)
        if free < torch.cuda.memory_reserved(self._device):  # a graph has memory of its own: make room
            torch.cuda.empty_cache()
        random = torch.cuda.default_generators[self._device.index or 0]
        before = random.clone_state()
        aside.wait_stream(here)
        with torch.cuda.stream(aside):
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
        here.wait_stream(aside)
        return numbers

    def replay(self) -> None:
        """Run the recorded step on the current stream."""
        self._graph.replay()


_streams: dict[torch.cuda.Stream, torch.cuda.Stream] = {}


def _recording_stream(here: torch.cuda.Stream) -> torch.cuda.Stream:
    """Return the stream on which steps of another one are recorded, always the same.

    Libraries keep memory for every stream they see, and recorded kernels use that of the stream they were recorded on.
    So there are few streams, but trainings whose steps run at the same time do not share one.
    """
    if here not in _streams:
        _streams[here] = torch.cuda.Stream(here.device)  # type: ignore[no-untyped-call]
    return _streams[here]


@dataclass
class _Recorded:
    graph: Graph
    batch: StepBatch  # where the graph reads
    numbers: StepNumbers  # where it writes


class StepGraphs:
    """The graphs of one training, one for each kind of step.

    Args:
        new_graph: Makes an empty graph.
    """

    def __init__(self, new_graph: Callable[[], Graph]) -> None:
        self._new_graph = new_graph
        self._kinds: dict[Hashable, _Recorded | None] = {}
        self._works = True

    def place(self, kind: Hashable) -> StepBatch | None:
        """Return where a step of this kind expects its batch; None if it has not been recorded."""
        recorded = self._kinds.get(kind)
        return None if recorded is None else recorded.batch

    def run(self, kind: Hashable, batch: StepBatch, step: Step) -> StepNumbers:
        """Run a step: the first of its kind as it is, the second recorded, from then on from the recording.

        Args:
            kind: Equal for steps that launch the same kernels on tensors of the same shapes.
            batch: What the step shows.
            step: The step, whose Python code runs only for the first and the second of a kind.
        """
        if not self._works:
            return step(batch)
        if kind not in self._kinds:
            if len(self._kinds) >= MOST_KINDS:
                self._give_up("the batches have ever new shapes")
                return step(batch)
            self._kinds[kind] = None
            return self._new_graph().prepare(step, batch)
        recorded = self._kinds[kind] or self._record(kind, batch, step)
        if recorded is None:
            return step(batch)
        for place, given in zip(recorded.batch.tensors(), batch.tensors(), strict=True):
            if place is not given:
                place.copy_(given, non_blocking=True)
        recorded.graph.replay()
        names, values = recorded.numbers
        return StepNumbers(names, values.clone())

    def forget(self) -> None:
        """Drop all recordings, after a change that they do not know of."""
        self._kinds.clear()

    def _record(self, kind: Hashable, batch: StepBatch, step: Step) -> _Recorded | None:
        graph = self._new_graph()
        try:
            recorded = _Recorded(graph, batch, graph.record(step, batch))
        except Exception as error:  # torch reports what a graph cannot hold, and missing memory, in many ways
            self._give_up(f"a step cannot be recorded ({_first_line(error)})")
            return None
        self._kinds[kind] = recorded
        return recorded

    def _give_up(self, reason: str) -> None:
        self._works = False
        self.forget()
        warnings.warn(_without(reason), stacklevel=5)


def step_graphs(fabric: Fabric, ranks: Ranks, settings: FitSettings) -> StepGraphs | None:
    """Return the graphs of a training; None where steps run as they are: on a CPU, or where graphs cannot be used."""
    device = fabric.device
    if device.type != "cuda" or not settings.capture:
        return None
    if reason := _why_not(ranks, settings):
        warnings.warn(_without(reason), stacklevel=3)
        return None
    return StepGraphs(lambda: CudaGraph(device))


def _why_not(ranks: Ranks, settings: FitSettings) -> str | None:
    if ranks.several:
        return "several devices share each batch"
    if settings.precision == "16-mixed":
        return "with precision 16-mixed the processor looks at every gradient"
    return None


def _without(reason: str) -> str:
    return f"capture: {reason}, so the steps are launched kernel by kernel"


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0][:200] if lines else type(error).__name__
