"""GPU kernels around a convolution that trains: its normalised weights, its activation, and their gradients.

Tensors are seen as rows and columns: outputs as (pixels of all images, channels), weights as (channels, the rest).
"""

# Written for Triton's compiler, whose constants are in capitals, not for Python's type checker.
# mypy: ignore-errors
# ruff: noqa: N803

import triton
import triton.language as tl


@triton.jit
def fold(
    weight, bias, gamma, beta, mean, deviation, folded_weight, folded_bias, columns, BLOCK: tl.constexpr
):  # fmt: skip
    """Normalise the outputs of a convolution by scaling its weights: one program per channel.

    w' = w s and b' = β + (b − μ) s with s = γ / σ. What is None is absent; `deviation` holds 1 / σ.
    """
    channel = tl.program_id(0)
    scale = tl.load(deviation + channel)
    if gamma is not None:
        scale *= tl.load(gamma + channel)
    shift = -tl.load(mean + channel)
    if bias is not None:
        shift += tl.load(bias + channel)
    total = shift * scale
    if beta is not None:
        total += tl.load(beta + channel)
    tl.store(folded_bias + channel, total)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        place = channel.to(tl.int64) * columns + column
        value = tl.load(weight + place, mask=column < columns, other=0.0) * scale
        tl.store(folded_weight + place, value.to(folded_weight.dtype.element_ty), mask=column < columns)


@triton.jit
def unfold(
    by_folded_weight, by_parts, parts, weight, bias, gamma, mean, deviation, by_weight, by_bias, by_gamma, by_beta,
    channels, columns, BLOCK: tl.constexpr
):  # fmt: skip
    """Turn the gradient of folded weights, and of their bias in parts, into that of the parameters."""
    channel = tl.program_id(0)
    factor = tl.load(deviation + channel)
    scale = factor
    if gamma is not None:
        scale = factor * tl.load(gamma + channel)
    of_bias = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, parts, BLOCK):
        part = start + tl.arange(0, BLOCK)
        of_bias += tl.load(by_parts + part * channels + channel, mask=part < parts, other=0.0)
    by_folded_bias = tl.sum(of_bias, 0)
    shift = -tl.load(mean + channel)
    if bias is not None:
        shift += tl.load(bias + channel)
        tl.store(by_bias + channel, by_folded_bias * scale)
    if by_beta is not None:
        tl.store(by_beta + channel, by_folded_bias)
    of_scale = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        place = channel.to(tl.int64) * columns + column
        gradient = tl.load(by_folded_weight + place, mask=column < columns, other=0.0).to(tl.float32)
        of_scale += gradient * tl.load(weight + place, mask=column < columns, other=0.0)
        tl.store(by_weight + place, gradient * scale, mask=column < columns)
    if gamma is not None:
        tl.store(by_gamma + channel, (tl.sum(of_scale, 0) + shift * by_folded_bias) * factor)


@triton.jit
def _bounded(x, low, high):
    return tl.where(x < low, low, tl.where(x > high, high, x))  # NaN stays


@triton.jit
def add_and_bound(outputs, bias, count, channels, low, high, BLOCK: tl.constexpr):
    """Add a bias and bound from below and above, in place."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    value = tl.load(outputs + place, mask=inside, other=0.0).to(tl.float32)
    value += tl.load(bias + place % channels, mask=inside, other=0.0)
    value = _bounded(value, low, high)
    tl.store(outputs + place, value.to(outputs.dtype.element_ty), mask=inside)


@triton.jit
def bound_gradient(
    gradient, outputs, result, by_parts, rows, channels, rows_each, low, high,
    BOUNDED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):  # fmt: skip
    """Stop the gradient where outputs are at a bound, and sum it over some of the rows: the gradient of the bias."""
    part = tl.program_id(0)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(part * rows_each, min(rows, (part + 1) * rows_each), ROWS):
        row = start + tl.arange(0, ROWS)
        inside = (row < min(rows, (part + 1) * rows_each))[:, None] & (column < channels)[None, :]
        place = row.to(tl.int64)[:, None] * channels + column[None, :]
        value = tl.load(gradient + place, mask=inside, other=0.0)
        if BOUNDED:
            output = tl.load(outputs + place, mask=inside, other=0.0).to(tl.float32)
            value = tl.where((output > low) & (output < high), value, 0.0)
            tl.store(result + place, value, mask=inside)
        total += value.to(tl.float32)
    tl.store(by_parts + part * channels + column, tl.sum(total, 0), mask=column < channels)


@triton.jit
def bounded_mean(
    inputs, bias, outputs, pixels, channels, low, high, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):  # fmt: skip
    """Add a bias, bound, and average over the pixels of each image."""
    c = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    inside = c < channels
    image = tl.program_id(1).to(tl.int64)
    shift = tl.load(bias + c, mask=inside, other=0.0)[None, :]
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, pixels, ROWS):
        pixel = start + tl.arange(0, ROWS)
        here = (pixel < pixels)[:, None] & inside[None, :]
        x = tl.load(inputs + (image * pixels + pixel[:, None]) * channels + c[None, :], mask=here, other=0.0)
        total += tl.where(here, _bounded(x.to(tl.float32) + shift, low, high), 0.0)
    total = tl.sum(total, 0) / pixels
    tl.store(outputs + image * channels + c, total.to(outputs.dtype.element_ty), mask=inside)


@triton.jit
def mean_gradients(
    gradients, inputs, bias, by_inputs, by_bias, pixels, channels, low, high, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):  # fmt: skip
    """Compute the gradients of `bounded_mean`; that of the bias by image."""
    c = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    inside = c < channels
    image = tl.program_id(1).to(tl.int64)
    shift = tl.load(bias + c, mask=inside, other=0.0)[None, :]
    g = tl.load(gradients + image * channels + c, mask=inside, other=0.0).to(tl.float32)[None, :] / pixels
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, pixels, ROWS):
        pixel = start + tl.arange(0, ROWS)
        here = (pixel < pixels)[:, None] & inside[None, :]
        place = (image * pixels + pixel[:, None]) * channels + c[None, :]
        x = tl.load(inputs + place, mask=here, other=0.0).to(tl.float32) + shift
        by_x = tl.where((x > low) & (x < high) & here, g, 0.0)
        total += by_x
        tl.store(by_inputs + place, by_x.to(by_inputs.dtype.element_ty), mask=here)
    tl.store(by_bias + image * channels + c, tl.sum(total, 0), mask=inside)
