"""Train one stack: full batch, all fits in step, nothing copied to the host before the end."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from .layout import Labels, lay_out
from .network import Shape, first_values
from .objective import ZETA, Losses, StackedObjective, zeta_shape
from .optimizer import FlatParameters, StackedOptimizer
from .settings import HeadSettings


class PreparedFit(NamedTuple):
    """Prepared rows of one fit, on the device of training; `source` is None where one domain trains alone."""

    source: Tensor | None
    target: Tensor
    labels: Labels


class Trained(NamedTuple):
    """What training leaves of one fit."""

    parameters: dict[str, Tensor]
    history: dict[str, Tensor]  # "loss", "cross_entropy" and "alignment" of each step
    scale: Tensor  # what the aligned features are divided by


def train(fits: Sequence[PreparedFit], settings: Sequence[HeadSettings], shape: Shape) -> list[Trained]:
    """Train fits whose shapes agree."""
    layout = lay_out([fit.labels for fit in fits], shape.num_classes)
    source = [fit.source for fit in fits if fit.source is not None]
    rows = layout.fill(source, [fit.target for fit in fits])
    parameters = FlatParameters([_start(shape, of_fit) for of_fit in settings], rows)
    objective = StackedObjective(settings, shape, layout, rows)
    optimizer = StackedOptimizer(parameters, settings)
    objective.start(parameters.named)
    steps = settings[0].steps
    history = rows.new_empty(steps, len(Losses._fields), len(fits))
    for number in range(steps):
        losses = objective(parameters.named)
        optimizer.step(parameters.gradient(losses.loss.sum()), number)
        with torch.no_grad():
            if ZETA in parameters.named:  # the objective has no minimum where a class weight falls below 0
                parameters.flat[:, parameters.ranges[ZETA]].clamp_(min=0)
            torch.stack(losses, out=history[number])
    return [_take(parameters, history, objective.scale, number) for number in range(len(fits))]


def _start(shape: Shape, settings: HeadSettings) -> dict[str, Tensor]:
    values = first_values(shape, settings.seed)
    zeta = zeta_shape(settings, shape.num_classes)
    return values if zeta is None else {**values, ZETA: torch.ones(zeta, dtype=torch.float64)}


def _take(parameters: FlatParameters, history: Tensor, scale: Tensor, number: int) -> Trained:
    """Copy one fit out of the stack, so that it does not keep the others alive."""
    own = {name: x.detach()[number].clone() for name, x in parameters.named.items()}
    curves = {name: history[:, k, number].clone() for k, name in enumerate(Losses._fields)}
    return Trained(own, curves, scale[number].clone())
