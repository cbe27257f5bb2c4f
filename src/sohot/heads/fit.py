"""Many fits at once: the entry point, and the training of one stack."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from .._device import choose_device, side_by_side
from ..methods.settings import POOL_COMPONENTS, HeadSettings
from .domain_loss import column
from .layout import lay_out
from .network import Shape, first_values
from .objective import ZETA, Losses, StackedObjective, zeta_shape
from .optimizer import FlatParameters, StackedOptimizer
from .pool import FULL_ROWS, Pool
from .preparation import PreparedRows, Preparer
from .problem import FeatureProblem
from .result import StackedFit
from .stacks import Algorithm, StackKey, split_stacks

_KINDS = ("cuda", "cpu")  # other devices have no float64, which the principal axes need


def train(fits: Sequence[PreparedRows], settings: Sequence[HeadSettings], shape: Shape) -> list[StackedFit]:
    """Train fits of equal shapes."""
    layout = lay_out([fit.labels for fit in fits], shape.num_classes)
    source = [fit.source for fit in fits if fit.source is not None]
    rows = layout.fill(source, [fit.target for fit in fits])
    parameters = FlatParameters([_start(shape, of_fit) for of_fit in settings], rows)
    objective = StackedObjective(settings, shape, layout, rows, _stack_pools(fits, settings, shape))
    objective.start(parameters.named)
    objective.start_classifiers(parameters)
    history = _descend(objective, parameters, settings)
    found = []
    for number, (rows_of_fit, of_fit) in enumerate(zip(fits, settings, strict=True)):
        # Copied, so that a fit does not keep the whole stack in memory.
        own = {name: x.detach()[number].clone() for name, x in parameters.named.items()}
        curves = {name: history[:, k, number].clone() for k, name in enumerate(Losses._fields)}
        scale = objective.scale[number].clone()
        found.append(StackedFit(of_fit, shape, rows_of_fit.preparations, own, curves, scale))
    return found


def _descend(objective: StackedObjective, parameters: FlatParameters, settings: Sequence[HeadSettings]) -> Tensor:
    """Train from the minimum of the classifiers on; return the losses before each step: (steps, losses, F).

    Without networks to train the fits are at their minimum: no step is done, and the losses there are returned.
    """
    if not settings[0].trains_network():
        with torch.no_grad():
            return torch.stack(objective(parameters.named)).unsqueeze(0)
    optimizer = StackedOptimizer(parameters, settings)
    steps = settings[0].steps
    history = parameters.flat.new_empty(steps, len(Losses._fields), len(settings))
    for number in range(steps):
        losses = objective(parameters.named)
        optimizer.step(parameters.gradient(losses.loss.sum()), number)
        with torch.no_grad():
            if ZETA in parameters.named:  # the objective has no minimum where a class weight falls below 0
                parameters.flat[:, parameters.ranges[ZETA]].clamp_(min=0)
            torch.stack(losses, out=history[number])
    return history


def _stack_pools(fits: Sequence[PreparedRows], settings: Sequence[HeadSettings], shape: Shape) -> Pool | None:
    """Put the pools of all fits into one tensor; None if the fits have none."""
    pools = [fit.pool for fit in fits if fit.pool is not None]
    if not pools:
        return None
    rows = pad_sequence(pools, batch_first=True)
    weights = pad_sequence([torch.full((len(pool),), 1 / len(pool)).to(rows) for pool in pools], batch_first=True)
    full = FULL_ROWS * shape.num_classes
    counted = zip(settings, pools, strict=True)
    strength = column([of_fit.pool_strength() * min(1, len(pool) / full) for of_fit, pool in counted], rows)
    uniform = rows.new_full((len(pools), shape.num_classes), 1 / shape.num_classes)
    return Pool(rows, weights, strength, uniform, settings[0].used_pool_loss())


def _start(shape: Shape, settings: HeadSettings) -> dict[str, Tensor]:
    values = first_values(shape, settings.seed)
    zeta = zeta_shape(settings, shape.num_classes)
    return values if zeta is None else {**values, ZETA: torch.ones(zeta, dtype=torch.float64)}


OnProgress = Callable[[int, int], None]
"""Called after each stack with the number of finished fits and of all fits."""


def fit_stack(
    problems: Sequence[FeatureProblem],
    settings: Sequence[HeadSettings],
    *,
    device: str | torch.device = "cpu",
    memory: int | None = None,
    on_progress: OnProgress | None = None,
) -> list[StackedFit]:
    """Train many small networks on features, stacked along a leading dimension.

    Splits, folds and settings may be mixed: fits whose tensors have the same shapes train together. Each result equals
    that of the fit trained alone, to float tolerance, whatever else is in the stack.

    Args:
        problems: The data of each fit. One object may appear many times, with different settings.
        settings: The settings of each fit, one for each problem.
        device: Where to train: "cpu", "cuda", or "auto" for a GPU if there is one.
        memory: Most bytes in use, over all cores; None for 1 GB on a CPU and half of the free memory on a GPU.
        on_progress: Called after each stack with the number of finished fits and of all fits.

    Returns:
        The fits, in the order of the problems, on `device`.

    Example:
        >>> labels = torch.arange(12) % 3
        >>> source = torch.nn.functional.one_hot(labels, 4).float()
        >>> problem = FeatureProblem(source, labels, source[:6] + 1, labels[:6], num_classes=3)
        >>> fits = fit_stack([problem] * 2, [HeadSettings(steps=20), HeadSettings(method="s+t", steps=20)])
        >>> fits[0].predict_logits(source[:3] + 1).argmax(1)
        tensor([0, 1, 2])
    """
    place = _device(device)
    if memory is not None and (isinstance(memory, bool) or not isinstance(memory, int) or memory < 1):
        raise ValueError(f"memory must be a number of bytes, at least 1, got {memory!r}")
    problems, settings = _check(problems, settings)
    keys = [_stack_key(*one) for one in zip(problems, settings, strict=True)]
    prepare = Preparer(place)
    results: dict[int, StackedFit] = {}

    def jobs() -> Iterator[Callable[[], dict[int, StackedFit]]]:
        for members in split_stacks(keys, place, memory):
            shape, own = keys[members[0]].shape, [settings[n] for n in members]
            rows = prepare([problems[n] for n in members], own, shape.size)
            yield partial(_train, members, rows, own, shape)

    for done in side_by_side(jobs(), place):
        results |= done
        if on_progress is not None:
            on_progress(len(results), len(problems))
    return [results[number] for number in range(len(problems))]


def _train(
    members: Sequence[int], rows: Sequence[PreparedRows], settings: Sequence[HeadSettings], shape: Shape
) -> dict[int, StackedFit]:
    return dict(zip(members, train(rows, settings, shape), strict=True))


def _device(device: str | torch.device) -> torch.device:
    if device == "auto":
        return choose_device("auto", _KINDS)
    try:
        place = torch.device(device)
    except (RuntimeError, TypeError):
        raise ValueError(f"device must be 'cpu' or 'cuda', got {device!r}") from None
    if place.type not in _KINDS:
        raise ValueError(f"device must be 'cpu' or 'cuda', got {device!r}")
    if place.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device={str(device)!r} was requested, but torch finds no CUDA GPU")
    return place


def _check(
    problems: Sequence[FeatureProblem], settings: Sequence[HeadSettings]
) -> tuple[list[FeatureProblem], list[HeadSettings]]:
    problems, settings = list(problems), list(settings)
    if len(problems) != len(settings):
        raise ValueError(f"settings must have one entry per problem ({len(problems)}), got {len(settings)}")
    for name, values, kind in (("problems", problems, FeatureProblem), ("settings", settings, HeadSettings)):
        for value in values:
            if not isinstance(value, kind):
                raise TypeError(f"{name} must hold {kind.__name__} objects, got {type(value).__name__}")
    for problem, of_fit in zip(problems, settings, strict=True):
        sizes = problem.source.shape[1], problem.target.shape[1]
        if sizes[0] != sizes[1] and of_fit.streams == "shared" and of_fit.resolved_method().uses_source:
            raise ValueError(f"source and target have {sizes[0]} and {sizes[1]} features: use streams='separate'")
    return problems, settings


def _stack_key(problem: FeatureProblem, settings: HeadSettings) -> StackKey:
    source, target = problem.seen_by(settings.resolved_method())
    smallest = min(problem.source.shape[1], problem.target.shape[1]) if source else target.features.shape[1]
    rows = len(target.labels) + (0 if source is None else len(source.labels))
    pool = problem.pool_seen_by(settings)
    rows += 0 if pool is None else len(pool)
    components = settings.used_components()
    if components is None:
        # A classifier of all features lies in the span of its rows: more axes than rows would change nothing.
        components = rows if pool is None else min(rows, POOL_COMPONENTS)
    size = min(components, smallest)
    shape = Shape(
        size,
        problem.num_classes,
        settings.streams,
        settings.heads,
        settings.hidden,
        two_domains=source is not None,
    )
    widths = [0 if rows is None else int(torch.bincount(rows.labels.long()).max()) for rows in (source, target)]
    algorithm = Algorithm.of(settings, has_pool=pool is not None)
    return StackKey(shape, algorithm, problem.dtype, (widths[0], widths[1]), 0 if pool is None else len(pool))
