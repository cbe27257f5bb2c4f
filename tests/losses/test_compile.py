"""torch.compile takes the module in one graph."""

import os
import shutil

import pytest
import torch
from oracle import batch

from sohot import ScatterAlignment

# What the tracer warns of in this or that version of Python is its own business.
pytestmark = pytest.mark.filterwarnings("ignore")

OPTIONS = [
    {},
    {"orders": (2, 3, 4), "class_weights": "learned"},
    {"class_weights": "closed-form"},
    {"feature_scale": "initial"},
    {"feature_scale": "unit", "scope": "marginal"},
    {"estimator": "unbiased", "num_sources": 2},
]


def call(module: torch.nn.Module, sources: int) -> tuple[torch.Tensor, torch.Tensor]:
    source, source_labels, target, target_labels = batch(0, [5, 4, 0, 2], [3, 2, 3, 1], dtype=torch.float32)
    source.requires_grad_()
    domains = torch.arange(len(source)) % 2 if sources == 2 else None
    loss = module(source, source_labels, target, target_labels, source_domains=domains)
    loss.backward()
    return loss.detach(), source.grad


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_one_graph_with_the_same_result(options: dict) -> None:
    torch._dynamo.reset()
    plain, traced = ScatterAlignment(4, **options), ScatterAlignment(4, **options)
    compiled = torch.compile(traced, backend="aot_eager", fullgraph=True)
    for _ in range(2):  # the second call finds the scale known
        torch.testing.assert_close(call(compiled, plain.num_sources), call(plain, plain.num_sources))
        torch.testing.assert_close(traced.scale, plain.scale)


@pytest.mark.skipif(
    shutil.which("g++") is None and not os.environ.get("CI"), reason="the default compiler backend needs g++"
)
def test_the_default_backend() -> None:
    torch._dynamo.reset()
    plain = ScatterAlignment(4, (2, 3), class_weights="learned")
    torch.testing.assert_close(call(torch.compile(plain, fullgraph=True), 1), call(plain, 1))


def test_values_are_checked_in_compiled_code_too() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(ScatterAlignment(2), backend="aot_eager", fullgraph=True)
    rows, labels = torch.randn(4, 2), torch.tensor([0, 1, 0, 5])
    with pytest.raises(ValueError, match="source_labels must lie in 0 … 1"):
        compiled(rows, labels, rows, labels)


def test_a_network_and_the_loss_in_one_graph() -> None:
    torch._dynamo.reset()
    source, source_labels, target, target_labels = batch(0, [5, 4], [3, 2], dtype=torch.float32)
    network, align = torch.nn.Linear(3, 8), ScatterAlignment(2)

    def step(source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return align(network(source), source_labels, network(target), target_labels)

    expected = step(source, target)
    expected.backward()
    gradient = network.weight.grad.clone()
    network.zero_grad()
    loss = torch.compile(step, backend="aot_eager", fullgraph=True)(source, target)
    loss.backward()
    torch.testing.assert_close((loss, network.weight.grad), (expected, gradient))
