"""The compiled kernels on a GPU against float64; the interpreter's tests (test_fused.py) go through more cases."""

import os
from typing import Any

import pytest
import torch
from oracle import batch
from torch import Tensor

from sohot import ScatterAlignment
from sohot.functional import scatter_alignment

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
Batch = tuple[Tensor, Tensor, Tensor, Tensor]
ORDERS = (2, 3, 4)


def on_gpu(counts: tuple[list[int], list[int]], size: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Batch:
    source, source_labels, target, target_labels = batch(seed, *counts, size=size)
    features = [x.to("cuda", dtype).requires_grad_() for x in (source, target)]
    return features[0], source_labels.cuda(), features[1], target_labels.cuda()


def exact(data: Batch) -> Batch:
    return tuple(x.detach().double().requires_grad_() if x.is_floating_point() else x for x in data)  # type: ignore[return-value]


def error(x: Tensor, y: Tensor) -> float:
    return float((x.detach().double() - y.detach()).norm() / y.detach().norm())


def assert_equals_float64(data: Batch, classes: int, tolerance: float, estimator: str = "plugin") -> None:
    reference = exact(data)
    scale = torch.zeros((), device="cuda")  # float16 then holds the gradient
    options: dict[str, Any] = {"estimator": estimator, "scale": scale}
    ours = scatter_alignment(*data, classes, ORDERS, check_values=False, **options)
    theirs = scatter_alignment(*reference, classes, ORDERS, **options)
    (3 * ours.loss).backward()
    (3 * theirs.loss).backward()
    assert error(ours.distances, theirs.distances) < tolerance
    if estimator == "plugin":  # unbiased distances have either sign: their sum can cancel
        assert error(ours.loss, theirs.loss) < tolerance
        assert error(ours.terms, theirs.terms) < tolerance
    for x, y in ((data[0], reference[0]), (data[2], reference[2])):
        assert error(x.grad, y.grad) < tolerance


@pytest.mark.parametrize("estimator", ["plugin", "unbiased"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 1e-2), (torch.float16, 1e-2)])
def test_equal_classes(dtype: torch.dtype, tolerance: float, estimator: str) -> None:
    assert_equals_float64(on_gpu(([20] * 31, [3] * 31), 512, dtype), 31, tolerance, estimator)


@pytest.mark.parametrize("estimator", ["plugin", "unbiased"])
def test_ragged_and_missing_classes_and_odd_sizes(estimator: str) -> None:
    counts = [4, 3, 0, 5, 1, 2, 9, 20], [2, 3, 4, 1, 3, 0, 7, 2]
    for size in (1, 7, 100, 130, 600):  # errors of 16 digits average out over columns
        assert_equals_float64(on_gpu(counts, size), 8, 1e-5 if size > 10 else 5e-5, estimator)


@pytest.mark.parametrize("estimator", ["plugin", "unbiased"])
def test_many_rows_are_placed_before(estimator: str) -> None:
    assert_equals_float64(on_gpu(([48] * 100, [16] * 100), 256), 100, 1e-5, estimator)


def test_larger_classes_are_aligned_by_plain_operations() -> None:
    assert_equals_float64(on_gpu(([100, 2, 3, 1, 30], [5, 90, 3, 2, 0]), 96), 5, 1e-4)


def test_more_rows_than_promised_cannot_pass_unseen() -> None:
    data = on_gpu(([48] * 99 + [150], [16] * 99 + [40]), 128)
    assert torch.isnan(scatter_alignment(*data, 100, ORDERS, most_rows=64, check_values=False).loss)
    with pytest.raises(ValueError, match="most_rows is 64, but a class has 190 rows"):
        scatter_alignment(*data, 100, ORDERS, most_rows=64)


def test_each_term_and_the_gradient_of_the_means() -> None:
    """Sums hide small terms: means are far smaller than scatters."""
    for counts, size in ((([20] * 5, [3] * 5), 1024), (([48] * 5, [16] * 5), 4096)):
        data = on_gpu(counts, size)
        reference = exact(data)
        found = [scatter_alignment(*own, 5, ORDERS, check_values=False) for own in (data, reference)]
        assert ((found[0].terms.double() - found[1].terms).abs() < 1e-5 * found[1].terms).all()
        means = [
            scatter_alignment(*own, 5, ORDERS, weights=(1.0, 0.0, 0.0, 0.0), check_values=False).loss
            for own in (data, reference)
        ]
        for ours, theirs in zip(
            torch.autograd.grad(means[0], [data[0], data[2]]),
            torch.autograd.grad(means[1], [reference[0], reference[2]]),
            strict=True,
        ):
            assert error(ours, theirs) < 1e-5


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_far_from_the_origin(dtype: torch.dtype) -> None:
    """Products of numbers of half precision are exact, so the means can be subtracted afterwards."""
    source, source_labels, target, target_labels = on_gpu(([20] * 5, [3] * 5), 1024)
    moved = [(x.detach() + 20).to(dtype).requires_grad_() for x in (source, target)]
    data = moved[0], source_labels, moved[1], target_labels
    ours, theirs = (scatter_alignment(*own, 5, ORDERS, check_values=False) for own in (data, exact(data)))
    assert error(ours.distances, theirs.distances) < 1e-3


def test_far_from_the_origin() -> None:
    source, source_labels, target, target_labels = on_gpu(([20] * 5, [3] * 5), 256)
    direction = torch.randn(256, device="cuda").sign()
    for shifts in ((100.0, 100.0), (0.0, 100.0)):
        moved = [(x.detach() + s * direction).requires_grad_() for x, s in zip((source, target), shifts, strict=True)]
        assert_equals_float64((moved[0], source_labels, moved[1], target_labels), 5, 1e-5)


def test_the_same_in_every_run() -> None:
    data = on_gpu(([48] * 100, [16] * 100), 256)
    results = [scatter_alignment(*data, 100, ORDERS, check_values=False) for _ in range(3)]
    gradients = [torch.autograd.grad(result.loss, [data[0], data[2]]) for result in results]
    for result, gradient in zip(results, gradients, strict=True):
        assert torch.equal(result.distances, results[0].distances)
        assert all(torch.equal(x, y) for x, y in zip(gradient, gradients[0], strict=True))


@pytest.mark.filterwarnings("ignore:The AccumulateGrad node's stream")  # the test itself works on two streams
@pytest.mark.parametrize("class_weights", [None, "learned"])
@pytest.mark.parametrize("rows", [(20, 3), (48, 16)])
def test_in_a_graph(rows: tuple[int, int], class_weights: str | None) -> None:
    classes = 100
    data = on_gpu(([rows[0]] * classes, [rows[1]] * classes), 128)
    features = [data[0], data[2]]
    options = {"class_weights": class_weights, "check_values": False, "most_rows": sum(rows)}
    align = ScatterAlignment(classes, ORDERS, **options).cuda()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.autograd.grad(align(*data), features)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            loss = align(*data)
            gradients = torch.autograd.grad(loss, features)
    torch.cuda.synchronize()
    with torch.no_grad():
        for x in features:
            x.normal_()
    graph.replay()
    expected = align(*data)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(gradients, torch.autograd.grad(expected, features))


def test_graphs_and_calls_at_the_same_time() -> None:
    """The last program of a launch computes the loss: it must not count those of other launches."""
    batches = [on_gpu(([20] * 31, [9] * 31), 512, seed=seed) for seed in range(3)]
    align = ScatterAlignment(31, ORDERS, check_values=False, most_rows=29).cuda()
    streams = [torch.cuda.Stream() for _ in batches]
    with torch.no_grad():
        expected = [align(*data) for data in batches]
        graphs, losses = [torch.cuda.CUDAGraph() for _ in batches[:2]], []
        for graph, data in zip(graphs, batches, strict=False):
            with torch.cuda.graph(graph):
                losses.append(align(*data))
        torch.cuda.synchronize()
        for _ in range(100):
            for graph, stream in zip(graphs, streams, strict=False):
                with torch.cuda.stream(stream):
                    graph.replay()
            with torch.cuda.stream(streams[2]):
                last = align(*batches[2])
        torch.cuda.synchronize()
    assert [float(loss) for loss in (*losses, last)] == [float(loss) for loss in expected]


@pytest.mark.filterwarnings("ignore")  # the compiler's own
@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
@pytest.mark.parametrize("options", [{}, {"class_weights": "learned", "feature_scale": "initial"}], ids=str)
def test_under_a_compiler(mode: str, options: dict[str, Any]) -> None:
    data = on_gpu(([20] * 31, [3] * 31), 128)
    features = [data[0], data[2]]
    plain, traced = (ScatterAlignment(31, ORDERS, check_values=False, most_rows=23, **options).cuda() for _ in range(2))
    compiled = torch.compile(traced, fullgraph=True, mode=mode)
    for _ in range(4):  # later calls are replays of a graph
        found, expected = compiled(*data), plain(*data)
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(torch.autograd.grad(found, features), torch.autograd.grad(expected, features))


@pytest.mark.filterwarnings("ignore")
def test_what_the_kernels_do_not_take_under_a_compiler() -> None:
    """Plain operations read labels, which no graph can: the compiler leaves them outside."""
    data = on_gpu(([60] * 3, [30] * 3), 32)
    align = ScatterAlignment(3, ORDERS, check_values=False).cuda()
    compiled = torch.compile(align, mode="reduce-overhead")
    for _ in range(4):
        torch.testing.assert_close(compiled(*data), align(*data))


def test_a_label_out_of_range_cannot_pass_unseen() -> None:
    source, source_labels, target, target_labels = on_gpu(([4, 4], [3, 3]), 16)
    source_labels[0] = 2
    loss = scatter_alignment(source, source_labels, target, target_labels, 2, check_values=False).loss
    assert torch.isnan(loss)
    with pytest.raises(ValueError, match="source_labels must lie in 0 … 1"):
        scatter_alignment(source, source_labels, target, target_labels, 2)


def test_plain_where_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert os.environ.get("SOHOT_KERNEL", "auto") == "auto"
    data = on_gpu(([5] * 3, [4] * 3), 32)
    by_kernel = scatter_alignment(*data, 3, ORDERS)
    monkeypatch.setenv("SOHOT_KERNEL", "plain")
    torch.testing.assert_close(scatter_alignment(*data, 3, ORDERS).loss, by_kernel.loss, rtol=1e-5, atol=0)


CLASSES, ROWS = 7, 13
OPTIONS: list[dict[str, Any]] = [
    {},
    {"class_weights": "learned", "feature_scale": "initial"},
    {"class_weights": "closed-form", "feature_scale": "unit"},
    {"estimator": "unbiased"},
]
each_option = pytest.mark.parametrize("options", OPTIONS, ids=str)


def small_classes(seed: int = 0, size: int = 96) -> list[Tensor]:
    """Source, its labels, target and its labels."""
    return list(on_gpu(([9] * CLASSES, [4] * CLASSES), size, seed=seed))


def everything(align: ScatterAlignment, data: list[Tensor]) -> list[Tensor]:
    """Loss, parts, gradients and state of one call."""
    loss, parts = align(*data, return_parts=True)
    gradients = torch.autograd.grad(loss, [data[0], data[2], *align.parameters()])
    return [x.detach().clone() for x in (loss, *parts.values(), *gradients, *align.state_dict().values())]


@each_option
def test_the_module_equals_its_plain_version_in_float64(options: dict[str, Any]) -> None:
    data, found = small_classes(), []
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
    data = small_classes()
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
    data = small_classes()
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
        for mine, new in zip(data, small_classes(seed), strict=True):
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


def test_rows_with_gaps_unaligned_rows_and_columns_with_gaps() -> None:
    source, source_labels, target, target_labels = small_classes(size=33)
    expected = scatter_alignment(source, source_labels, target, target_labels, CLASSES).loss
    wide = torch.zeros(len(source), 50, device="cuda")
    wide[:, 3:36] = source.detach()
    for features in (wide[:, 3:36], source.detach().T.contiguous().T):
        for _ in range(2):
            loss = scatter_alignment(features, source_labels, target, target_labels, CLASSES).loss
            torch.testing.assert_close(loss, expected, rtol=1e-5, atol=0)


def test_upstream_gradients_anywhere_in_memory() -> None:
    data = small_classes()
    align = ScatterAlignment(CLASSES, ORDERS, check_values=False).cuda()
    (once,) = torch.autograd.grad(align(*data), data[0])
    for upstream in (torch.tensor(2.0, device="cuda"), torch.arange(4.0, device="cuda")[2]):
        torch.testing.assert_close(torch.autograd.grad(align(*data), data[0], upstream)[0], 2 * once)
    upstreams = torch.tensor([1.0, -2.0], device="cuda")
    (batched,) = torch.autograd.grad(align(*data), data[0], upstreams, is_grads_batched=True)
    torch.testing.assert_close(batched, upstreams.view(2, 1, 1) * once)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")
def test_a_device_that_is_not_the_current_one() -> None:
    data = small_classes()
    expected = scatter_alignment(*data, CLASSES, ORDERS).loss
    for _ in range(2):
        loss = scatter_alignment(*(x.to("cuda:1") for x in data), CLASSES, ORDERS).loss
        torch.testing.assert_close(loss.to("cuda:0"), expected)
