"""Calls on a GPU where the largest class is known: nothing waits, and graphs can hold them."""

from typing import Any

import pytest
import torch
from oracle import batch
from torch import Tensor

from sohot import ScatterAlignment
from sohot.functional import scatter_alignment

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
CLASSES, ROWS, ORDERS = 7, 13, (2, 3, 4)
OPTIONS: list[dict[str, Any]] = [
    {},
    {"class_weights": "learned", "feature_scale": "initial"},
    {"class_weights": "closed-form", "feature_scale": "unit"},
    {"estimator": "unbiased"},
]
each_option = pytest.mark.parametrize("options", OPTIONS, ids=str)


def on_gpu(seed: int = 0, size: int = 96) -> list[Tensor]:
    """Source, its labels, target and its labels."""
    data = batch(seed, [9] * CLASSES, [4] * CLASSES, size=size)
    return [x.to("cuda", torch.float32).requires_grad_() if x.is_floating_point() else x.cuda() for x in data]


def everything(align: ScatterAlignment, data: list[Tensor]) -> list[Tensor]:
    """Loss, parts, gradients and state of one call."""
    loss, parts = align(*data, return_parts=True)
    gradients = torch.autograd.grad(loss, [data[0], data[2], *align.parameters()])
    return [x.detach().clone() for x in (loss, *parts.values(), *gradients, *align.state_dict().values())]


@each_option
def test_later_calls_equal_the_first(options: dict[str, Any]) -> None:
    data = on_gpu()
    found = []
    for _ in range(3):
        align = ScatterAlignment(CLASSES, ORDERS, check_values=False, **options).cuda()
        found.append(everything(align, data))
    for later in found[1:]:
        assert all(torch.equal(x, y) for x, y in zip(found[0], later, strict=True))


@each_option
def test_the_module_equals_its_plain_version_in_float64(options: dict[str, Any]) -> None:
    data, found = on_gpu(), []
    for dtype in (torch.float32, torch.float64):
        align = ScatterAlignment(CLASSES, ORDERS, **options).to("cuda", dtype)
        for parameter in align.parameters():
            parameter.data[..., :2] = torch.tensor([-0.5, 1.5])  # one below 0, where none may be
        features = [x.detach().to(dtype).requires_grad_() if x.is_floating_point() else x for x in data]
        align(2 * features[0], *features[1:])  # moves a scale
        found.append(everything(align, features))
    for ours, exact in zip(*found, strict=True):
        assert float((ours.double() - exact).norm()) <= 2e-5 * float(exact.norm()) + 1e-9


@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")
@each_option
def test_no_call_waits_for_the_device(options: dict[str, Any]) -> None:
    data = on_gpu()
    align = ScatterAlignment(CLASSES, ORDERS, check_values=False, most_rows=ROWS, **options).cuda()
    everything(align, data)  # compiled outside
    try:
        torch.cuda.set_sync_debug_mode("error")
        everything(align, data)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.filterwarnings("ignore:The AccumulateGrad node's stream")
@each_option
def test_captured_calls_move_weights_and_scale_in_each_replay(options: dict[str, Any]) -> None:
    data = on_gpu()
    align, twin = (
        ScatterAlignment(CLASSES, ORDERS, check_values=False, most_rows=ROWS, **options).cuda() for _ in range(2)
    )
    everything(align, data)
    align.load_state_dict(twin.state_dict())
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.graph(graph, stream=stream):
        loss = align(*data)
        gradients = torch.autograd.grad(loss, [data[0], data[2]])
    for seed in (1, 2):
        for mine, new in zip(data, on_gpu(seed), strict=True):
            mine.data.copy_(new.data)
        for module in (align, twin):
            for parameter in module.parameters():
                parameter.data[..., 0] = -1.0
        graph.replay()
        expected = twin(*data)
        torch.testing.assert_close(loss, expected)
        torch.testing.assert_close(gradients, torch.autograd.grad(expected, [data[0], data[2]]))
        for name, value in twin.state_dict().items():
            torch.testing.assert_close(align.state_dict()[name], value)


def test_streams_do_not_disturb_each_other() -> None:
    batches, streams = [on_gpu(seed) for seed in range(4)], [torch.cuda.Stream() for _ in range(4)]
    align = ScatterAlignment(CLASSES, ORDERS, check_values=False, most_rows=ROWS).cuda()
    expected = [align(*data).detach() for data in batches]
    torch.cuda.synchronize()
    for _ in range(20):
        losses = []
        for data, stream in zip(batches, streams, strict=True):
            with torch.cuda.stream(stream):
                losses.append(align(*data).detach())
        torch.cuda.synchronize()
        assert all(torch.equal(x, y) for x, y in zip(losses, expected, strict=True))


def test_rows_with_gaps_unaligned_rows_and_columns_with_gaps() -> None:
    source, source_labels, target, target_labels = on_gpu(size=33)
    expected = scatter_alignment(source, source_labels, target, target_labels, CLASSES).loss
    wide = torch.zeros(len(source), 50, device="cuda")
    wide[:, 3:36] = source.detach()
    for features in (wide[:, 3:36], source.detach().T.contiguous().T):
        for _ in range(2):
            loss = scatter_alignment(features, source_labels, target, target_labels, CLASSES).loss
            torch.testing.assert_close(loss, expected, rtol=1e-5, atol=0)


def test_upstream_gradients_anywhere_in_memory() -> None:
    data = on_gpu()
    align = ScatterAlignment(CLASSES, ORDERS, check_values=False).cuda()
    (once,) = torch.autograd.grad(align(*data), data[0])
    for upstream in (torch.tensor(2.0, device="cuda"), torch.arange(4.0, device="cuda")[2]):
        torch.testing.assert_close(torch.autograd.grad(align(*data), data[0], upstream)[0], 2 * once)
    upstreams = torch.tensor([1.0, -2.0], device="cuda")
    (batched,) = torch.autograd.grad(align(*data), data[0], upstreams, is_grads_batched=True)
    torch.testing.assert_close(batched, upstreams.view(2, 1, 1) * once)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")
def test_a_device_that_is_not_the_current_one() -> None:
    data = on_gpu()
    expected = scatter_alignment(*data, CLASSES, ORDERS).loss
    for _ in range(2):
        loss = scatter_alignment(*(x.to("cuda:1") for x in data), CLASSES, ORDERS).loss
        torch.testing.assert_close(loss.to("cuda:0"), expected)
