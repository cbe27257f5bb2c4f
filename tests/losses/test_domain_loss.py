"""Laws that hold for every loss of another paper, then what defines each of them."""

import pytest
import torch
from domain_losses import CLASSES, LOSSES, SCALED, draw
from hypothesis import given, settings
from hypothesis import strategies as st

from sohot.losses import (
    ContrastiveSemanticAlignment,
    StartingPoint,
    SupervisedContrastive,
    VariancePenalty,
)

each_loss = pytest.mark.parametrize("name", LOSSES)


@each_loss
@given(seed=st.integers(0, 10_000))
@settings(deadline=None, max_examples=15)
def test_order_of_rows_and_names_of_classes_do_not_matter(name: str, seed: int) -> None:
    source, ys, target, yt = draw(seed)
    loss = LOSSES[name]()
    expected = loss(source, ys, target, yt)
    generator = torch.Generator().manual_seed(seed)
    s, t = torch.randperm(len(ys), generator=generator), torch.randperm(len(yt), generator=generator)
    renamed = torch.randperm(CLASSES, generator=generator)
    torch.testing.assert_close(loss(source[s], renamed[ys[s]], target[t], renamed[yt[t]]), expected)


@each_loss
@given(seed=st.integers(0, 10_000))
@settings(deadline=None, max_examples=15)
def test_rotations_do_not_matter(name: str, seed: int) -> None:
    source, ys, target, yt = draw(seed)
    generator = torch.Generator().manual_seed(seed)
    turn = torch.linalg.qr(torch.randn(5, 5, dtype=torch.float64, generator=generator)).Q
    loss = LOSSES[name]()
    torch.testing.assert_close(loss(source @ turn, ys, target @ turn, yt), loss(source, ys, target, yt))


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "supcon"])  # which looks at directions
def test_a_common_shift_does_not_matter(name: str) -> None:
    source, ys, target, yt = draw()
    loss = LOSSES[name]()
    torch.testing.assert_close(loss(source + 100, ys, target + 100, yt), loss(source, ys, target, yt))


@pytest.mark.parametrize("name", ["dage", "supcon"])
def test_scale_free_losses_ignore_the_size_of_features(name: str) -> None:
    source, ys, target, yt = draw()
    loss = LOSSES[name]()
    torch.testing.assert_close(loss(40 * source, ys, 40 * target, yt), loss(source, ys, target, yt))


@pytest.mark.parametrize("name", SCALED)
def test_the_initial_scale_makes_margins_mean_the_same(name: str) -> None:
    source, ys, target, yt = draw()
    small, large = (LOSSES[name](feature_scale="initial") for _ in range(2))
    torch.testing.assert_close(large(40 * source, ys, 40 * target, yt), small(source, ys, target, yt))
    assert large.scale == pytest.approx(40 * float(small.scale), rel=1e-6)
    before = small.scale.clone()
    small(9 * source, ys, 9 * target, yt)
    assert small.scale == before  # measured once


@each_loss
def test_gradients_are_those_of_finite_differences(name: str) -> None:
    source, ys, target, yt = draw()
    loss = LOSSES[name]()
    inputs = (source.requires_grad_(), target.requires_grad_())
    assert torch.autograd.gradcheck(lambda x, y: loss(x, ys, y, yt), inputs)


@each_loss
def test_not_below_zero_and_descending(name: str) -> None:
    source, ys, target, yt = draw()
    loss = LOSSES[name]()
    source.requires_grad_()
    target.requires_grad_()
    value = loss(source, ys, target, yt)
    assert value > 0
    value.backward()
    step = 1e-4
    moved = loss(source.detach() - step * source.grad, ys, target.detach() - step * target.grad, yt)
    assert moved < value.detach()


@each_loss
def test_one_sample_classes_and_coinciding_rows_give_numbers(name: str) -> None:
    x, y = torch.eye(4, 5, dtype=torch.float64).requires_grad_(), torch.arange(4)
    value = LOSSES[name]()(x, y, x.detach().clone(), y)
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(x.grad).all()


@each_loss
def test_a_batch_that_says_nothing_gives_zero_with_a_gradient(name: str) -> None:
    source = torch.randn(1, 3, requires_grad=True)
    value = LOSSES[name]()(source, torch.tensor([0]), torch.randn(1, 3), torch.tensor([1]))
    value.backward()
    if name == "ccsa":  # a pair of two classes does say something
        return
    assert value == 0
    assert not source.grad.any()


@each_loss
def test_half_precision_is_computed_in_float32(name: str) -> None:
    source, ys, target, yt = draw()
    loss = LOSSES[name]()
    half = loss(source.bfloat16(), ys, target.bfloat16(), yt)
    assert half.dtype == torch.float32
    torch.testing.assert_close(half.double(), loss(source, ys, target, yt), rtol=0.05, atol=0.02)


@each_loss
def test_weight_multiplies_and_parts_can_be_asked_for(name: str) -> None:
    batch = draw()
    once, (twice, parts) = LOSSES[name](weight=1.0)(*batch), LOSSES[name](weight=2.0)(*batch, return_parts=True)
    torch.testing.assert_close(twice, 2 * once)
    assert parts == {}


def test_ccsa_is_its_sum_over_pairs() -> None:
    source, ys, target, yt = draw()
    near, far = [], []
    for x, a in zip(source, ys, strict=True):
        for z, b in zip(target, yt, strict=True):
            distance = (x - z).norm()
            near += [distance**2 / 2] if a == b else []
            far += [max(3.0 - distance, 0) ** 2 / 2] if a != b else []
    expected = sum(near) / len(near) + sum(far) / len(far)
    torch.testing.assert_close(LOSSES["ccsa"](weight=1.0)(source, ys, target, yt), expected)


def test_dage_is_the_trace_ratio_of_its_graphs() -> None:
    source, ys, target, yt = draw()
    rows, labels = torch.cat([source, target]), torch.cat([ys, yt])
    domain = torch.tensor([0] * len(ys) + [1] * len(yt))
    across = domain.unsqueeze(1) != domain
    traces = []
    for graph in (across & (labels.unsqueeze(1) == labels), across & (labels.unsqueeze(1) != labels)):
        weights = graph.double()
        traces.append(torch.trace(rows.T @ (weights.sum(1).diag() - weights) @ rows))
    torch.testing.assert_close(LOSSES["dage"](weight=1.0)(source, ys, target, yt), traces[0] / traces[1])


def test_dsne_is_zero_once_every_class_is_nearer_by_the_margin() -> None:
    x, y = 10 * torch.eye(4, 5), torch.arange(4)
    assert LOSSES["dsne"]()(x, y, x + 0.1, y) == 0


def test_variance_does_not_compare_the_domains() -> None:
    source, ys, target, yt = draw()
    loss = LOSSES["variance"]()
    torch.testing.assert_close(loss(source, ys, target + 7, yt), loss(source, ys, target, yt))


def test_supcon_prefers_classes_to_domains() -> None:
    by_class, by_domain = torch.eye(2).repeat(2, 1), torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    y = torch.tensor([0, 1])
    loss = LOSSES["supcon"]()
    assert loss(by_class[:2], y, by_class[2:], y) < loss(by_domain[:2], y, by_domain[2:], y)


@each_loss
def test_bad_input_is_named(name: str) -> None:
    x, y = torch.randn(4, 3), torch.tensor([0, 1, 2, 3])
    loss = LOSSES[name]()
    with pytest.raises(ValueError, match="source and target must have the same number of features"):
        loss(x, y, torch.randn(4, 2), y)
    with pytest.raises(ValueError, match="target_labels must lie in 0 … 3"):
        loss(x, y, x, y + 1)
    with pytest.raises(ValueError, match="source holds NaN"):
        loss(x.masked_fill(x == x[0, 0], torch.nan), y, x, y)
    with pytest.raises(ValueError, match="weight must be a finite number of at least 0"):
        LOSSES[name](weight=-1.0)
    with pytest.raises(ValueError, match="num_classes must be an integer of at least 1"):
        type(loss)(0)


def test_bad_settings_are_named() -> None:
    with pytest.raises(ValueError, match="temperature must be a finite number above 0"):
        SupervisedContrastive(2, temperature=0.0)
    with pytest.raises(TypeError, match="temperature must be a number, got 'cold'"):
        SupervisedContrastive(2, temperature="cold")
    with pytest.raises(TypeError, match="pull must be a number"):
        StartingPoint([torch.zeros(2)], pull="hard")
    with pytest.raises(TypeError, match=r"parameters must be several tensors, got \[3\]"):
        StartingPoint([3], pull=1.0)
    with pytest.raises(ValueError, match="the number and the shapes of those given at creation"):
        StartingPoint([torch.zeros(2)], pull=1.0)([torch.zeros(3)])
    with pytest.raises(ValueError, match="margin must be"):
        ContrastiveSemanticAlignment(2, margin=-1.0)
    with pytest.raises(ValueError, match="feature_scale must be one of"):
        VariancePenalty(2, feature_scale="unit")


@pytest.mark.filterwarnings("ignore")  # what the tracer warns of in this or that version of Python is its own business
@each_loss
def test_torch_compile_takes_the_loss_in_one_graph(name: str) -> None:
    torch._dynamo.reset()
    plain = LOSSES[name](check_values=False)
    compiled = torch.compile(plain, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(*draw()), plain(*draw()))
