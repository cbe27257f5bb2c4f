"""How calls of one kind run: laid out and prepared once, found again by the types and shapes of their tensors."""

from collections.abc import Hashable
from typing import Any

import torch
from torch import Tensor

from ..settings import Settings
from . import layout
from .counters import counters_of
from .launch import Problem, backward_launches, forward_launches, results, workspace
from .prepared import Launches, Named
from .store import Store

OF_ROWS = ("source_weights", "target_weights")
INPUTS = ("source", "source_labels", "target", "target_labels", "weights", "zeta_bar", "scale", *OF_ROWS)
OF_GRADIENT = ("source", "target", *OF_ROWS, "upstream", "by_source", "by_target")
DENSE = torch.contiguous_format
MOST_PLANS = 1024

_plans: dict[Hashable, "Plan"] = {}


def kind_of(x: Tensor) -> Hashable:
    """Everything about a tensor that kernels are compiled for."""
    return x.dtype, x.shape, x.stride(), x.data_ptr() % 16 == 0, x.device


def find_plan(
    source: Tensor,
    source_labels: Tensor,
    target: Tensor,
    target_labels: Tensor,
    weights: Tensor | None,
    zeta_bar: Tensor | None,
    scale: Tensor | None,
    source_weights: Tensor | None,
    target_weights: Tensor | None,
    settings: Settings,
) -> "Plan":
    """Return the plan for tensors of these types, shapes, strides and alignments; a new one if there is none."""
    of_rows = source_weights, target_weights
    tensors = source, source_labels, target, target_labels, weights, zeta_bar, scale, *of_rows
    key = settings, *(None if x is None else kind_of(x) for x in tensors)
    found = _plans.get(key)
    if found is None:
        if len(_plans) >= MOST_PLANS:  # ever-changing batch sizes: start over; the kernels themselves stay cached
            _plans.clear()
        strides = None if weights is None else (weights.stride(0), 0 if weights.shape[1] == 1 else weights.stride(1))
        are_aligned, are_weighted = layout.are_aligned(source, target), of_rows != (None, None)
        problem = problem_of(source, target, settings, are_weighted=are_weighted, are_aligned=are_aligned)
        found = _plans[key] = Plan(problem, settings, strides)
    return found


def forget_plans() -> None:
    """Plan anew from now on, for a change of `layout`."""
    layout.choose_layout.cache_clear()
    _plans.clear()


def problem_of(
    source: Tensor, target: Tensor, settings: Settings, *, are_weighted: bool, are_aligned: bool = False
) -> Problem:
    """Describe a call; `are_weighted` says whether rows have weights, `are_aligned` is that of `Problem`."""
    (n, size), m, classes = source.shape, target.shape[0], settings.num_classes
    return Problem(
        n,
        m,
        size,
        classes,
        settings.orders,
        settings.unbiased,
        (source.stride(0), target.stride(0)),
        source.element_size(),
        are_aligned,
        are_weighted,
        layout.choose_layout(n + m, classes, size, layout.processors(source.device), source.element_size() < 4),
    )


class Plan:
    """Launches and allocations of one kind of call; `weights_strides` are those of the weights of terms and classes."""

    def __init__(self, problem: Problem, settings: Settings, weights_strides: tuple[int, int] | None) -> None:
        self.settings, self.problem = settings, problem
        self.results = Store(results(settings, weights_strides is not None))
        self.workspace = Store(workspace(problem))
        names = *INPUTS, "loss", "counters", *self.results.sections, *self.workspace.sections
        self._forward = Launches(forward_launches(problem, settings, weights_strides or (0, 0)), names)
        self._backward: dict[Hashable, Launches] = {}

    def forward(self, *inputs: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Compute the loss, the other results and what the gradient needs, from INPUTS."""
        source = inputs[0]
        assert source is not None
        loss = source.new_empty((), dtype=torch.float32)
        found, kept, counters = self.results.allocate(source), self.workspace.allocate(source), counters_of(source)
        addresses = [None if x is None else x.data_ptr() for x in (*inputs, loss, counters)]
        addresses += self.results.addresses(found) + self.workspace.addresses(kept)

        def tensors() -> Named:
            given = {name: x for name, x in zip(INPUTS, inputs, strict=True) if x is not None}
            named = {**given, "loss": loss, "counters": counters}
            return {**named, **self.results.views(found), **self.workspace.views(kept)}

        _launch(self._forward, source, addresses, tensors)
        return loss, found, kept

    def backward(
        self,
        source: Tensor,
        target: Tensor,
        kept: Tensor,
        source_weights: Tensor | None,
        target_weights: Tensor | None,
        upstream: Tensor,
        wanted: tuple[bool, bool],
    ) -> tuple[Tensor, Tensor]:
        """Compute the gradient in the features of the wanted domains; empty for the other."""
        if self.problem.unbiased:  # rows are centred on the mean of both domains, so large classes need both
            wanted = True, True
        by_source = torch.empty_like(source, memory_format=DENSE) if wanted[0] else source.new_empty(0)
        by_target = torch.empty_like(target, memory_format=DENSE) if wanted[1] else target.new_empty(0)
        inputs = source, target, source_weights, target_weights, upstream, by_source, by_target
        addresses: list[int | None] = [None if x is None else x.data_ptr() for x in inputs]
        addresses += self.workspace.addresses(kept)

        def tensors() -> Named:
            given = {name: x for name, x in zip(OF_GRADIENT, inputs, strict=True) if x is not None}
            return {**given, **self.workspace.views(kept)}

        kind = wanted, upstream.data_ptr() % 16 == 0
        launches = self._backward.get(kind)
        if launches is None:
            names = *OF_GRADIENT, *self.workspace.sections
            launches = self._backward[kind] = Launches(backward_launches(self.problem, wanted), names)
        _launch(launches, source, addresses, tensors)
        return by_source, by_target


def _launch(launches: Launches, beside: Tensor, addresses: list[int | None], tensors: Any) -> None:
    """Launch on the GPU of a tensor: Triton launches on the current one."""
    device = beside.get_device()
    if device < 0 or device == torch.cuda.current_device():  # below 0: interpreted on a CPU
        launches(device, addresses, tensors)
    else:
        with torch.cuda.device(device):
            launches(device, addresses, tensors)
