"""Runs the GPU kernels under Triton's interpreter and prints how far each case is from float64, as JSON.

A process of its own: whether kernels are compiled or interpreted is settled when Triton is first imported.
"""

import json
import os
import sys
import warnings
from functools import partial
from pathlib import Path

if __name__ == "__main__":
    os.environ.update(TRITON_INTERPRET="1", SOHOT_KERNEL="triton")
    sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
from interpreted import patch_language_once
from oracle import batch
from torch import Tensor

from sohot import ScatterAlignment
from sohot.functional import scatter_alignment
from sohot.functional.fused import layout

Batch = tuple[Tensor, Tensor, Tensor, Tensor]
RAGGED = [4, 3, 0, 5, 1, 2], [2, 3, 4, 1, 3, 2]  # missing, one-sample and two-sample classes among them
FEW = [4, 3], [3, 2]


def case(
    counts: tuple[list[int], list[int]] = RAGGED,
    size: int = 20,
    dtype: torch.dtype = torch.float32,
    shift: tuple[float, float] = (0.0, 0.0),
    spread: float = 1.0,
    **options: object,
) -> dict[str, float]:
    """Relative errors of the loss, its parts and its gradients against the plain version in float64."""
    source, source_labels, target, target_labels = batch(0, *counts, size=size)
    source, target = ((spread * x + s).to(dtype) for x, s in zip((source, target), shift, strict=True))
    found = []
    for kind in (dtype, torch.float64):
        x, y = (z.to(kind).requires_grad_() for z in (source, target))
        result = scatter_alignment(x, source_labels, y, target_labels, len(counts[0]), **options)  # type: ignore[arg-type]
        weights = [w for w in options.values() if isinstance(w, Tensor) and w.requires_grad]
        gradients = torch.autograd.grad(3 * result.loss, [x, y, *weights])
        found.append([*result, *gradients])
    names = ["loss", "terms", "distances", "spread", "by source", "by target", "by weights"]
    return {name: error(ours, exact) for name, ours, exact in zip(names, *found, strict=False)}


def ragged(size: int = 3) -> Batch:
    source, source_labels, target, target_labels = batch(0, *RAGGED, size=size)
    return source.float(), source_labels, target.float(), target_labels


def error(ours: Tensor, exact: Tensor) -> float:
    ours, exact = ours.detach().double(), exact.detach().double()
    return float((ours - exact).norm() / exact.norm().clamp(min=1e-30))


def placed_before() -> dict[str, float]:
    """Many rows: slots are given out before the first pass."""
    layout.MOST_ROWS_TO_SCAN = 0
    layout.choose_layout.cache_clear()
    try:
        return case()
    finally:
        layout.MOST_ROWS_TO_SCAN = 4096
        layout.choose_layout.cache_clear()


def one_domain_fixed(estimator: str) -> dict[str, float]:
    source, source_labels, target, target_labels = (x.float() if x.is_floating_point() else x for x in batch(0, *FEW))

    def gradients(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        loss = scatter_alignment(x, source_labels, y, target_labels, 2, estimator=estimator).loss
        return torch.autograd.grad(loss, [z for z in (x, y) if z.requires_grad])

    leaves = [x.clone().requires_grad_() for x in (source, target)]
    expected = gradients(*leaves)
    by_source, by_target = gradients(leaves[0], target)[0], gradients(source, leaves[1])[0]
    return {"by source": error(by_source, expected[0]), "by target": error(by_target, expected[1])}


def strange_layouts() -> dict[str, float]:
    """Rows with gaps between them, columns with gaps, small integer labels."""
    source, source_labels, target, target_labels = (x.float() if x.is_floating_point() else x for x in batch(0, *FEW))
    expected = scatter_alignment(source, source_labels, target, target_labels, 2).loss
    rows, columns = torch.zeros(len(source), 7), torch.zeros(target.shape[1], len(target))
    rows[:, 2:5], columns[:] = source, target.T
    loss = scatter_alignment(rows[:, 2:5], source_labels.to(torch.uint8), columns.T, target_labels.int(), 2).loss
    return {"loss": error(loss, expected)}


def modules() -> dict[str, float]:
    """The loss as a module: weights of classes, a scale from earlier batches, and the parts of the loss."""
    data, errors = ragged(size=20), {}
    for weights, scale in (("learned", "initial"), ("closed-form", "unit")):
        found = []
        for dtype in (torch.float32, torch.float64):
            align = ScatterAlignment(6, (2, 3), class_weights=weights, feature_scale=scale, check_values=False)
            for parameter in align.parameters():
                parameter.data[..., :2] = torch.tensor([-0.5, 1.5])  # one below 0, where none may be
            source, target = data[0].to(dtype).requires_grad_(), data[2].to(dtype)
            for features in (2 * source.detach(), source):
                loss, parts = align(features, data[1], target, data[3], return_parts=True)
            gradients = torch.autograd.grad(loss, [source, *align.parameters()])
            found.append([loss, align.scale, *parts.values(), *gradients, *align.parameters()])
        names = ["loss", "scale", *parts, "by source", "by zeta", "by zeta bar", "zeta", "zeta bar"]
        pairs = zip(names, *found, strict=False)
        errors.update({f"{weights} {name}": error(ours, exact) for name, ours, exact in pairs})
    return errors


def many_upstream_gradients() -> dict[str, float]:
    """Several vector-Jacobian products at once."""
    source, source_labels, target, target_labels = ragged()
    source.requires_grad_()
    loss = scatter_alignment(source, source_labels, target, target_labels, 6).loss
    (once,) = torch.autograd.grad(loss, source, retain_graph=True)
    upstream = torch.tensor([1.0, -2.0])
    (batched,) = torch.autograd.grad(loss, source, upstream, is_grads_batched=True)
    return {"gradient": error(batched, upstream.view(2, 1, 1) * once)}


def under_a_compiler() -> dict[str, float]:
    source, source_labels, target, target_labels = ragged()
    source.requires_grad_()
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the compiler's own
        for how in (lambda module: module, partial(torch.compile, backend="aot_eager", fullgraph=True)):
            align = ScatterAlignment(6, (2, 3), class_weights="learned", feature_scale="initial")
            loss = how(align)(source, source_labels, target, target_labels)
            found.append([loss, align.scale, *torch.autograd.grad(loss, [source, *align.parameters()])])
    return {f"output {k}": error(*pair) for k, pair in enumerate(zip(*found, strict=True))}


def batches_of_several_sizes_under_a_compiler() -> dict[str, float]:
    source, source_labels, target, target_labels = ragged()
    align, errors = ScatterAlignment(6, check_values=False), {}
    compiled = torch.compile(align, backend="aot_eager", fullgraph=True)
    for rows in (15, 13, 11):  # shapes are symbols from the second on
        features = source[:rows].requires_grad_()
        losses = [module(features, source_labels[:rows], target, target_labels) for module in (compiled, align)]
        gradients = [torch.autograd.grad(loss, features)[0] for loss in losses]
        errors.update({f"loss of {rows}": error(*losses), f"gradient of {rows}": error(*gradients)})
    return errors


def nothing_shared() -> dict[str, float]:
    source, target = torch.randn(3, 4, requires_grad=True), torch.randn(2, 4, requires_grad=True)
    loss = scatter_alignment(source, torch.tensor([0, 0, 2]), target, torch.tensor([1, 1]), 3).loss
    gradients = torch.autograd.grad(loss, [source, target])
    return {"loss": float(loss.detach().abs()), "gradients": float(sum(x.abs().sum() for x in gradients))}


def label_out_of_range() -> dict[str, float]:
    source, target, labels = torch.randn(3, 4), torch.randn(3, 4), torch.tensor([0, 0, 1])
    wrong = torch.tensor([0, 2, 1])
    loss = scatter_alignment(source, wrong, target, labels, 2, check_values=False).loss
    return {"loss is not NaN": float(not torch.isnan(loss))}


def too_many_rows() -> dict[str, float]:
    """A class with more rows than the caller promised."""
    source, source_labels, target, target_labels = batch(0, [30, 40], [9, 9])
    data = source.float(), source_labels, target.float(), target_labels
    for most_rows, placed in ((16, 4096), (32, 4096), (32, 0)):
        layout.MOST_ROWS_TO_SCAN = placed
        layout.choose_layout.cache_clear()
        if not torch.isnan(scatter_alignment(*data, 2, most_rows=most_rows, check_values=False).loss):
            return {f"loss is not NaN with {most_rows}": 1.0}
    layout.MOST_ROWS_TO_SCAN = 4096
    layout.choose_layout.cache_clear()
    return {}


def repeated() -> dict[str, float]:
    source, source_labels, target, target_labels = batch(0, *FEW)
    data = source.float(), source_labels, target.float(), target_labels
    first, second = (scatter_alignment(*data, 2, (2, 3)) for _ in range(2))
    return {"difference": float((first.distances - second.distances).abs().max())}


def all_cases() -> dict[str, dict[str, float]]:
    per_class = torch.rand(3, 6, generator=torch.Generator().manual_seed(0)).requires_grad_()
    half = {"counts": FEW, "scale": torch.zeros(())}
    alike = {"counts": FEW, "shift": (3.0, 3.0), "spread": 1e-3, "orders": (2, 3), "scale": torch.zeros(())}
    return {
        **{f"orders {orders}": case(orders=orders) for orders in [(2,), (3,), (4, 2), (2, 3, 4), (5,)]},
        **{f"unbiased {orders}": case(size=64, orders=orders, estimator="unbiased") for orders in [(2,), (2, 3, 4)]},
        "more columns than one step": case(size=150),
        "many columns": case(FEW, size=600, orders=(2, 3, 4)),
        "many columns, unbiased": case(size=600, orders=(2, 3, 4), estimator="unbiased"),
        "scale given": case(orders=(2, 3), scale=torch.tensor(2.0)),
        "scale of the batch": case(orders=(2, 3), scale=torch.zeros(())),
        "weights per class": case(orders=(2, 3), weights=per_class),
        "weights per term": case(orders=(2, 3), weights=torch.tensor([[0.5], [2.0], [1.0]], requires_grad=True)),
        "one number per term": case(orders=(2, 3), weights=(0.5, 2.0, 1.0)),
        "far from the origin": case(shift=(100.0, 100.0), size=64),
        "domains far apart": case(shift=(0.0, 100.0), size=64),
        "high order": case(([6, 4], [5, 3]), orders=(12,), scale=torch.zeros(())),
        "classes of up to 32 rows": case(([20, 2, 3, 18], [3, 19, 3, 0]), orders=(2, 3)),
        "a class of 64 rows, unbiased": case(([60, 2, 3], [4, 19, 3]), estimator="unbiased"),
        "known to be small": case(([40, 40, 3], [9, 9, 3]), most_rows=50),
        "bfloat16": case(**half, dtype=torch.bfloat16),
        "float16": case(**half, dtype=torch.float16),
        "nearly alike": case(**alike, size=40),
        "nearly alike, many columns": case(**alike, size=600),
        "far apart, many columns": case(FEW, shift=(0.0, 100.0), size=600),
        "placed before": placed_before(),
        "one domain fixed": one_domain_fixed("plugin"),
        "one domain fixed, unbiased": one_domain_fixed("unbiased"),
        "strange layouts": strange_layouts(),
        "modules": modules(),
        "many upstream gradients": many_upstream_gradients(),
        "under a compiler": under_a_compiler(),
        "batches of several sizes under a compiler": batches_of_several_sizes_under_a_compiler(),
        "nothing shared": nothing_shared(),
        "label out of range": label_out_of_range(),
        "too many rows": too_many_rows(),
        "repeated": repeated(),
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    patch_language_once()
    print(json.dumps(all_cases()))
