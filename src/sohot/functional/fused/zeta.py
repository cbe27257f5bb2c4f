"""Kernel functions for weights ζ of classes: given, learned, or the best ones for the distances at hand."""

# Written for Triton's compiler, whose constants are in capitals, not for Python's type checker.
# mypy: ignore-errors

import triton
import triton.language as tl


@triton.jit
def class_weights(k, c, classes, share, distance, weighing, by_weights, used_weights):
    """Return ζ of term k and classes c, and the penalty on it; store the derivative of the loss in ζ if it has one.

    Without alphas, `weights` are given, or all are 1. With them, ζ is learned (raw numbers, those of the means apart in
    `zeta_bar`, which are raised to 0 in place) or, without weights, the best in 0 … 1 for this distance. `share` is the
    weight of the distance without ζ.
    """
    _, alphas, weights, zeta_bar, _, _, weights_row, weights_column, _, _ = weighing
    inside = c < classes
    zeta, penalty = 1.0 + 0.0 * distance, 0.0 * distance
    if weights is not None:
        place = weights + k * weights_row + c * weights_column
        if alphas is not None:
            place = zeta_bar + c if k == 0 else weights + (k - 1) * classes + c
        zeta = tl.load(place, mask=inside, other=1.0).to(tl.float64)
        slope = share * distance
        if alphas is not None:
            zeta = tl.where(zeta < 0.0, 0.0, zeta)
            tl.store(place, zeta.to(place.dtype.element_ty), mask=inside)
            slope += 2.0 * alphas[k] * (zeta - 1.0)
        tl.store(by_weights + k * classes + c, slope.to(tl.float32), mask=inside)
    elif alphas is not None:
        pull = share * distance / 2
        best = 1.0 - pull / tl.where(alphas[k] > 0.0, alphas[k], 1.0)
        best = tl.minimum(tl.maximum(best, 0.0), 1.0)
        zeta = tl.where(alphas[k] > 0.0, best, tl.where(pull > 0.0, 0.0, 1.0))
    if alphas is not None:
        tl.store(used_weights + k * classes + c, zeta.to(tl.float32), mask=inside)
        penalty = alphas[k] * (zeta - 1.0) * (zeta - 1.0)
    return zeta, tl.where(inside, penalty, 0.0)


@triton.jit
def move_scale(scale, before, spread, momentum):
    """Replace the scale by that of the next batch: a running average; with a momentum of 0, the first that is known."""
    moved = tl.where(before > 0.0, before + momentum * (spread - before), spread)
    moved = tl.where(spread > 0.0, moved, before)
    tl.store(scale, moved.to(scale.dtype.element_ty))
