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
from sohot.functional import fused, scatter_alignment
from sohot.functional.dispatch import forget_routes

Batch = tuple[Tensor, Tensor, Tensor, Tensor]
RAGGED = [4, 3, 0, 5, 1, 2], [2, 3, 4, 1, 3, 2]  # missing, one-sample and two-sample classes among them
FEW = [4, 3], [3, 2]
LARGE = [20, 2, 3, 18], [3, 19, 3, 0]  # more rows than the 16 a program holds


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
        assert fused.is_usable(x, y, len(counts[0])) == (kind == dtype)
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
    fused.layout.MOST_ROWS_TO_SCAN = 0
    forget_routes()
    try:
        return {**case(), **{f"large {name}": value for name, value in case(LARGE).items()}}
    finally:
        fused.layout.MOST_ROWS_TO_SCAN = 4096
        forget_routes()


def one_domain_fixed() -> dict[str, float]:
    source, source_labels, target, target_labels = (x.float() if x.is_floating_point() else x for x in batch(0, *FEW))
    both = [x.clone().requires_grad_() for x in (source, target)]
    loss = scatter_alignment(both[0], source_labels, both[1], target_labels, 2).loss
    expected = torch.autograd.grad(loss, both)
    loss = scatter_alignment(source.requires_grad_(), source_labels, target, target_labels, 2).loss
    by_source = torch.autograd.grad(loss, source)[0]
    loss = scatter_alignment(source.detach(), source_labels, target.requires_grad_(), target_labels, 2).loss
    by_target = torch.autograd.grad(loss, target)[0]
    return {"by source": error(by_source, expected[0]), "by target": error(by_target, expected[1])}


def strange_layouts() -> dict[str, float]:
    """Rows with gaps between them, columns with gaps, small integer labels."""
    source, source_labels, target, target_labels = (x.float() if x.is_floating_point() else x for x in batch(0, *FEW))
    expected = scatter_alignment(source, source_labels, target, target_labels, 2).loss
    rows, columns = torch.zeros(len(source), 7), torch.zeros(target.shape[1], len(target))
    rows[:, 2:5], columns[:] = source, target.T
    loss = scatter_alignment(rows[:, 2:5], source_labels.to(torch.uint8), columns.T, target_labels.int(), 2).loss
    return {"loss": error(loss, expected)}


def second_derivative(**options: object) -> dict[str, float]:
    data = ragged()
    found = []
    for dtype in (torch.float32, torch.float64):
        x = data[0].to(dtype).requires_grad_()
        loss = scatter_alignment(
            x,
            data[1],
            data[2].to(dtype),
            data[3],
            6,
            (2, 3),
            scale=torch.zeros(()),
            **options,  # type: ignore[arg-type]
        ).loss
        gradient = torch.autograd.grad(loss, x, create_graph=True)[0]
        found.append(torch.autograd.grad(gradient.square().sum(), x)[0])
    return {"second derivative": error(*found)}


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


def second_derivative_of_learned() -> dict[str, float]:
    """Mixed derivatives in the features and the learned weights; a call in between raises weights to 0 once more."""
    data, found = ragged(), []
    for dtype in (torch.float32, torch.float64):
        align = ScatterAlignment(6, (2, 3), class_weights="learned", check_values=False)
        source, target = data[0].to(dtype).requires_grad_(), data[2].to(dtype)
        loss = align(source, data[1], target, data[3])
        align(source, data[1], target, data[3])
        variables = [source, *align.parameters()]
        gradients = torch.autograd.grad(loss, variables, create_graph=True)
        found.append(torch.autograd.grad(sum(x.square().sum() for x in gradients), variables))
    names = ["source", "zeta", "zeta bar"]
    return {name: error(ours, exact) for name, ours, exact in zip(names, *found, strict=True)}


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


def random_weights(counts: tuple[list[int], list[int]]) -> dict[str, Tensor]:
    """Weights of rows, some of them 0."""
    generator = torch.Generator().manual_seed(0)
    source, target = (torch.rand(sum(own), generator=generator) for own in counts)
    source[::5], target[1] = 0, 0
    return {"source_weights": source, "target_weights": target}


def equal_weights() -> dict[str, float]:
    """All weights alike: the same bits as without any."""
    source, source_labels, target, target_labels = batch(0, [18, 2], [3, 3])
    features = source.float().requires_grad_(), target.float().requires_grad_()
    equal = {"source_weights": torch.full((20,), 0.3), "target_weights": torch.full((6,), 0.3)}
    differences = {}
    for estimator in ("plugin", "unbiased"):
        found = []
        for weights in ({}, equal):
            options = {"scale": torch.zeros(()), "estimator": estimator, **weights}
            data = features[0], source_labels, features[1], target_labels
            result = scatter_alignment(*data, 2, (2, 3), **options)  # type: ignore[arg-type]
            found.append([result.loss.detach(), *result[1:], *torch.autograd.grad(result.loss, features)])
        differences[estimator] = max(float((x - y).abs().max()) for x, y in zip(*found, strict=True))
    return differences


def absent_rows() -> dict[str, float]:
    """Rows of weight 0 hold anything: their gradient is 0, and all else is as without them."""
    source, source_labels, target, target_labels = batch(0, [18, 4], [3, 3], size=70)
    weights = torch.ones(len(source)).index_fill(0, torch.tensor([0, 5, 20]), 0)
    present = weights > 0
    found = []
    for of_source in (None, weights):
        data = source.float(), source_labels
        if of_source is None:
            data = data[0][present], data[1][present]
        else:
            data[0][~present] = float("nan")
        x, y = data[0].requires_grad_(), target.float().requires_grad_()
        options = {"source_weights": of_source, "check_values": False}
        result = scatter_alignment(x, data[1], y, target_labels, 2, (2, 3), **options)  # type: ignore[arg-type]
        found.append([result.loss, result.distances, *torch.autograd.grad(result.loss, [x, y])])
    (loss, distances, by_source, by_target), (with_loss, with_distances, by_all, with_target) = found
    pairs = [(with_loss, loss), (with_distances, distances), (by_all[present], by_source), (with_target, by_target)]
    return {"absent": float(by_all[~present].abs().max()), "others": max(error(*pair) for pair in pairs)}


def repeated() -> dict[str, float]:
    source, source_labels, target, target_labels = batch(0, *FEW)
    data = source.float(), source_labels, target.float(), target_labels
    first, second = (scatter_alignment(*data, 2, (2, 3)) for _ in range(2))
    return {"difference": float((first.distances - second.distances).abs().max())}


def all_cases() -> dict[str, dict[str, float]]:
    per_class = torch.rand(3, 6, generator=torch.Generator().manual_seed(0)).requires_grad_()
    options = {"scale": torch.zeros(()), "full_rows": 3.0, "scatter_rows": 1.5, "orders": (2, 3)}
    weighted = {"counts": LARGE, **options, **random_weights(LARGE)}
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
        "one number per term": case(orders=(2, 3), weights=(0.5, 2.0, 1.0), full_rows=3.0, scatter_rows=3.0),
        "far from the origin": case(shift=(100.0, 100.0), size=64),
        "domains far apart": case(shift=(0.0, 100.0), size=64),
        "high order": case(([6, 4], [5, 3]), orders=(12,), scale=torch.zeros(())),
        "large classes": case(LARGE, orders=(2, 3)),
        "large classes, unbiased": case(LARGE, orders=(2, 3), estimator="unbiased"),
        "bfloat16": case(**half, dtype=torch.bfloat16),
        "float16": case(**half, dtype=torch.float16),
        "weights of rows": case(**weighted),
        "weights of rows, unbiased": case(estimator="unbiased", **weighted),
        "weights of rows, many columns": case(FEW, size=600, **random_weights(FEW)),
        "weights of the target alone": case(target_weights=random_weights(RAGGED)["target_weights"]),
        "absent rows": absent_rows(),
        "nearly alike": case(**alike, size=40),
        "nearly alike, many columns": case(**alike, size=600),
        "far apart, many columns": case(FEW, shift=(0.0, 100.0), size=600),
        "second derivative with weights of rows": second_derivative(full_rows=3.0, **random_weights(RAGGED)),
        "equal weights": equal_weights(),
        "placed before": placed_before(),
        "one domain fixed": one_domain_fixed(),
        "strange layouts": strange_layouts(),
        "second derivative": second_derivative(),
        "modules": modules(),
        "second derivative of learned weights": second_derivative_of_learned(),
        "many upstream gradients": many_upstream_gradients(),
        "under a compiler": under_a_compiler(),
        "batches of several sizes under a compiler": batches_of_several_sizes_under_a_compiler(),
        "nothing shared": nothing_shared(),
        "label out of range": label_out_of_range(),
        "repeated": repeated(),
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    patch_language_once()
    print(json.dumps(all_cases()))
