"""Measure the cost of the alignment loss on a GPU against the memory floor, the plain version and a loop over classes.

    python benchmarks/gpu_kernel.py

Forward and backward, orders 2+3+4, shuffled rows, medians. "graph" replays a captured CUDA graph; "eager" calls and
differentiates the public module as a training loop does, including the host's work, also as a multiple of an empty
autograd function.
"""

import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor

from sohot import ScatterAlignment
from sohot.functional import scatter_alignment

ORDERS = (2, 3, 4)
Step = Callable[[], Any]


class Problem(NamedTuple):
    classes: int
    source: int
    target: int
    size: int = 4096
    dtype: torch.dtype = torch.float32

    @property
    def name(self) -> str:
        kind = str(self.dtype).removeprefix("torch.")
        return f"{self.classes} × ({self.source} + {self.target}) × {self.size} {kind}"

    @property
    def bytes(self) -> int:
        """Bytes of one read and one write of the features."""
        return 2 * self.classes * (self.source + self.target) * self.size * self.dtype.itemsize

    @property
    def operations(self) -> int:
        """Multiplications and additions on matrix units.

        Forward and backward: two and three products of pieces of float32, or one and two of half precision.
        """
        products = 5 if self.dtype == torch.float32 else 3
        return 2 * products * self.classes * (self.source + self.target) ** 2 * self.size

    def batch(self) -> list[Tensor]:
        generator = torch.Generator("cuda").manual_seed(0)
        result: list[Tensor] = []
        for rows in (self.source, self.target):
            labels = torch.arange(self.classes, device="cuda").repeat_interleave(rows)
            labels = labels[torch.randperm(len(labels), generator=generator, device="cuda")]
            features = torch.randn(len(labels), self.size, generator=generator, device="cuda")
            features += torch.randn(self.size, generator=generator, device="cuda")
            result += [features.to(self.dtype).requires_grad_(), labels]
        return result


MANY, FEW = Problem(1000, 48, 16), Problem(31, 20, 3)
BARS: dict[Problem, dict[str, float]] = {
    MANY: {"graph_us": 980.0},
    FEW: {"graph_us": 30.0, "eager_empties": 4.0},
    MANY._replace(dtype=torch.bfloat16): {"graph_us": 600.0},
    FEW._replace(dtype=torch.bfloat16): {},
}


@contextmanager
def kernel(choice: str) -> Iterator[None]:
    before = os.environ.get("SOHOT_KERNEL")
    os.environ["SOHOT_KERNEL"] = choice
    try:
        yield
    finally:
        os.environ.pop("SOHOT_KERNEL")
        if before is not None:
            os.environ["SOHOT_KERNEL"] = before


def step_of(problem: Problem, batch: list[Tensor]) -> Step:
    most_rows = problem.source + problem.target
    align = ScatterAlignment(problem.classes, ORDERS, check_values=False, most_rows=most_rows).cuda()

    def step() -> None:
        batch[0].grad = batch[2].grad = None
        align(*batch).backward()

    return step


def as_new(batch: list[Tensor]) -> list[Tensor]:
    """The same numbers in tensors that autograd does not know yet: it remembers the stream of their gradients."""
    return [x.detach().requires_grad_() if x.is_floating_point() else x for x in batch]


def loop_over_classes(problem: Problem, batch: list[Tensor]) -> Step:
    """Do what one would write without a library: autograd through one class after another."""
    source, source_labels, target, target_labels = batch

    def step() -> None:
        source.grad = target.grad = None
        total = torch.zeros((), device="cuda")
        for c in range(problem.classes):
            x, y = source[source_labels == c].float(), target[target_labels == c].float()
            mean_x, mean_y = x.mean(0), y.mean(0)
            x, y = x - mean_x, y - mean_y
            within, within_star, across = x @ x.T, y @ y.T, x @ y.T
            total = total + (mean_x - mean_y).square().sum()
            for order in ORDERS:
                distance = within.pow(order).mean() + within_star.pow(order).mean() - 2 * across.pow(order).mean()
                total = total + distance / len(ORDERS)
        (total / problem.classes).backward()

    return step


def replayed(step: Step, seconds: float = 0.3) -> float:
    """Return the median microseconds per replay of the captured step; batches of replays between two events."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            step()
    return _between_events(graph.replay, seconds)


def _between_events(step: Step, seconds: float) -> float:
    step()
    torch.cuda.synchronize()
    start = time.perf_counter()
    step()
    torch.cuda.synchronize()
    once = time.perf_counter() - start
    at_once = max(1, min(50, int(0.01 / once)))
    times = []
    for _ in range(max(5, min(50, int(seconds / (once * at_once))))):
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        before.record()
        for _ in range(at_once):
            step()
        after.record()
        torch.cuda.synchronize()
        times.append(1e3 * before.elapsed_time(after) / at_once)
    return statistics.median(times)


def eager(step: Step, rounds: int = 300) -> float:
    """Return the median microseconds of the step called from Python, until the device has finished."""
    times = []
    warming_up = max(2, rounds // 5)
    for k in range(rounds + warming_up):
        torch.cuda.synchronize()
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        if k >= warming_up:
            times.append(1e6 * (time.perf_counter() - start))
    return statistics.median(times)


def errors(problem: Problem, batch: list[Tensor]) -> dict[str, float]:
    """Return the relative errors against float64 on the same features."""
    exact = [x.detach().double().requires_grad_() if x.is_floating_point() else x for x in batch]
    ours = scatter_alignment(*batch, problem.classes, ORDERS, check_values=False)
    theirs = scatter_alignment(*exact, problem.classes, ORDERS, check_values=False)
    gradients = torch.autograd.grad(ours.loss, [batch[0], batch[2]])
    exact_gradients = torch.autograd.grad(theirs.loss, [exact[0], exact[2]])

    def error(x: Tensor, y: Tensor) -> float:
        return float((x.double() - y).norm() / y.norm())

    pairs = zip(gradients, exact_gradients, strict=True)
    return {
        "loss_error": error(ours.loss.detach(), theirs.loss.detach()),
        "distances_error": error(ours.distances, theirs.distances),
        "gradient_error": max(error(x, y) for x, y in pairs),
    }


def ceilings() -> dict[str, float]:
    """Measure bytes per second of a copy, operations per second of a product, µs of an empty autograd function."""
    x = torch.empty(2**28, device="cuda").normal_()
    y = torch.empty_like(x)
    copy_us = _between_events(lambda: y.copy_(x), 0.2)
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    product_us = _between_events(lambda: a @ b, 0.2)
    tiny = torch.ones(1, device="cuda", requires_grad=True)

    class Nothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.gradient = x.detach()
            return x.detach()

        @staticmethod
        def backward(ctx: Any, _: Tensor) -> Tensor:
            return ctx.gradient

    def nothing() -> None:
        tiny.grad = None
        Nothing.apply(tiny).backward()

    return {
        "bytes_per_s": 2 * x.numel() * 4 / (1e-6 * copy_us),
        "operations_per_s": 2 * 8192**3 / (1e-6 * product_us),
        "empty_autograd_us": eager(nothing),
    }


def kernel_bars() -> list[dict[str, Any]]:
    """Return one record per problem: times, goals, floors, errors and alternatives."""
    measured = ceilings()
    records = []
    for problem, bars in BARS.items():
        batch = problem.batch()
        graph_us = replayed(step_of(problem, as_new(batch)))
        step = step_of(problem, batch)
        eager_us = eager(step)
        record: dict[str, Any] = {
            "problem": problem.name,
            "graph_us": graph_us,
            "eager_us": eager_us,
            "eager_empties": eager_us / measured["empty_autograd_us"],
            "graph_bar_us": bars.get("graph_us"),
            "eager_bar_empties": bars.get("eager_empties"),
            "floor_us": 1e6 * problem.bytes / measured["bytes_per_s"],
            "passes_floor_us": 1.5e6 * problem.bytes / measured["bytes_per_s"],  # read forward and backward
            "product_floor_us": 1e6 * problem.operations / measured["operations_per_s"],
            **errors(problem, batch),
        }
        if problem.dtype == torch.float32:
            with kernel("plain"):
                record["plain_eager_us"] = eager(step, 10)
            if problem.classes < 100:
                record["loop_eager_us"] = eager(loop_over_classes(problem, batch), 3)
        records.append({**record, **measured})
        del batch, step
        torch.cuda.empty_cache()
    return records


def _bar(value: float, bar: float | None, digits: int = 0) -> str:
    shown = f"{value:.{digits}f}"
    return shown if bar is None else f"{shown} ({'meets' if value <= bar else 'misses'} {bar:.{digits}f})"


def report(records: list[dict[str, Any]]) -> list[str]:
    first = records[0]
    lines = [
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}, CUDA {torch.version.cuda}, "
        f"Python {platform.python_version()}",
        f"ceilings: copy {first['bytes_per_s'] / 1e12:.2f} TB/s, bfloat16 product "
        f"{first['operations_per_s'] / 1e12:.0f} TFLOP/s, empty autograd function {first['empty_autograd_us']:.0f} µs",
        "",
        "| classes × (N + N*) × d | graph µs | eager µs | × empty autograd function "
        "| floor µs: 1 read + 1 write | 2 reads + 1 write | products | plain, eager µs | loop, eager µs "
        "| error: loss | distances | gradient |",
        "| --- " * 12 + "|",
    ]
    for r in records:
        other = [f"{r[name]:.0f}" if name in r else "–" for name in ("plain_eager_us", "loop_eager_us")]
        times = [
            _bar(r["graph_us"], r["graph_bar_us"]),
            f"{r['eager_us']:.0f}",
            _bar(r["eager_empties"], r["eager_bar_empties"], digits=1),
        ]
        floors = [f"{r[name]:.0f}" for name in ("floor_us", "passes_floor_us", "product_floor_us")]
        far = [f"{r[name]:.0e}" for name in ("loss_error", "distances_error", "gradient_error")]
        lines.append(f"| {' | '.join([r['problem'], *times, *floors, *other, *far])} |")
    return lines


def main() -> None:
    if not torch.cuda.is_available():
        raise SystemExit("this benchmark needs a CUDA device")
    print("\n".join(report(kernel_bars())))


if __name__ == "__main__":
    main()
