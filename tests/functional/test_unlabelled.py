"""Laws of what is learned from rows without labels."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from sohot.functional.unlabelled import (
    align_shares,
    class_confusion,
    estimated_prior,
    information_loss,
    mean_entropy,
    pseudo_label_loss,
)


def draw(*shape: int, seed: int = 0, scale: float = 2.0) -> Tensor:
    return scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def toward_uniform(logits: Tensor) -> Tensor:
    classes = logits.shape[-1]
    return information_loss(logits, logits.new_full((classes,), 1 / classes))


LOSSES: dict[str, Callable[[Tensor], Tensor]] = {
    "entropy": mean_entropy,
    "information": toward_uniform,
    "confusion": class_confusion,
}
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


def explicit_confusion(logits: Tensor, temperature: float) -> float:
    """The definition, term by term."""
    rows, classes = logits.shape
    shares = [(row / temperature).softmax(0) for row in logits]
    trust = [1 + torch.exp((p * p.log()).sum()) for p in shares]
    weights = [rows * one / sum(trust) for one in trust]
    total = 0.0
    for first in range(classes):
        pairs = [
            sum(w * p[first] * p[second] for w, p in zip(weights, shares, strict=True)) for second in range(classes)
        ]
        total += float(sum(pair for second, pair in enumerate(pairs) if second != first) / sum(pairs))
    return total / classes


@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_class_confusion_is_its_definition(temperature: float) -> None:
    logits = draw(6, 4)
    assert class_confusion(logits, temperature).item() == pytest.approx(explicit_confusion(logits, temperature))


@every_loss
def test_losses_have_the_gradient_of_their_value(loss: Callable[[Tensor], Tensor]) -> None:
    assert torch.autograd.gradcheck(loss, draw(5, 3).requires_grad_())


@every_loss
@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 999), rows=st.integers(1, 6), classes=st.integers(2, 5))
def test_the_order_of_rows_and_of_classes_does_not_matter(
    loss: Callable[[Tensor], Tensor], seed: int, rows: int, classes: int
) -> None:
    logits = draw(rows, classes, seed=seed)
    shuffled = logits[torch.randperm(rows)][:, torch.randperm(classes)]
    torch.testing.assert_close(loss(shuffled), loss(logits))
    torch.testing.assert_close(loss(logits + 3), loss(logits))  # a constant changes no prediction


@pytest.mark.parametrize("loss", [mean_entropy, information_loss, class_confusion])
def test_a_weight_counts_how_often_a_row_occurs(loss: Callable[..., Tensor]) -> None:
    logits = draw(4, 3)
    given = {"prior": torch.tensor([0.2, 0.3, 0.5])} if loss is information_loss else {}
    weights = torch.tensor([0.2, 0.4, 0.4, 0.0], dtype=torch.float64)
    repeated = logits[torch.tensor([0, 1, 1, 2, 2])]
    torch.testing.assert_close(loss(logits, **given, weights=weights), loss(repeated, **given))


@every_loss
def test_many_fits_share_one_call(loss: Callable[[Tensor], Tensor]) -> None:
    stack = draw(2, 3, 5, 4)
    one_by_one = torch.stack([torch.stack([loss(fit) for fit in part]) for part in stack])
    torch.testing.assert_close(loss(stack), one_by_one)


@every_loss
def test_sure_answers_that_name_every_class_alike_cost_nothing(loss: Callable[[Tensor], Tensor]) -> None:
    logits = (200 * torch.eye(3).repeat(2, 1)).requires_grad_()
    assert loss(logits).item() == pytest.approx(0, abs=1e-6)
    loss(logits).backward()
    torch.testing.assert_close(logits.grad, torch.zeros(6, 3))  # a fixed point


@every_loss
@pytest.mark.parametrize("size", [1e2, 1e4, 1e30])
def test_gradients_stay_finite_where_a_class_is_never_predicted(loss: Callable[[Tensor], Tensor], size: float) -> None:
    logits = torch.tensor([[size, 0.0, -size], [size, -1.0, 0.0]], requires_grad=True)
    loss(logits).backward()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()


def test_doubt_about_everything_is_the_largest_entropy_and_confusion() -> None:
    flat = torch.zeros(4, 5)
    assert mean_entropy(flat).item() == pytest.approx(torch.tensor(5.0).log().item())
    assert class_confusion(flat).item() == pytest.approx(1 - 1 / 5)
    assert toward_uniform(flat).item() == pytest.approx(torch.tensor(5.0).log().item())


@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 999))
def test_information_is_what_rows_say_about_classes(seed: int) -> None:
    """With a uniform prior, log C minus the mutual information of row and class."""
    shares = draw(6, 4, seed=seed).softmax(1)
    mean = shares.mean(0)
    information = (shares * (shares / mean).log()).sum(1).mean()
    assert toward_uniform(shares.log()).item() == pytest.approx(torch.tensor(4.0).log().item() - information.item())


def test_rows_that_are_not_kept_only_lower_the_mean() -> None:
    logits, labels = draw(4, 3), torch.tensor([0, 1, 2, 0])
    kept = torch.tensor([1.0, 1.0, 0.0, 0.0])
    plain = torch.nn.functional.cross_entropy(logits[:2], labels[:2])
    torch.testing.assert_close(pseudo_label_loss(logits, labels, kept), plain / 2)


@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 999))
def test_an_estimated_prior_is_a_fixed_point_with_sum_one(seed: int) -> None:
    shares = draw(9, 3, seed=seed).softmax(1)
    prior = estimated_prior(shares, rounds=100)
    torch.testing.assert_close(prior.sum(), torch.ones(()).double())
    assert prior.min() > 0
    torch.testing.assert_close(estimated_prior(shares, rounds=101), prior)


def test_predictions_with_the_shares_expected_stay() -> None:
    shares = draw(2, 5, 3).softmax(-1)
    own = shares.mean(-2)
    torch.testing.assert_close(align_shares(shares, own, own), shares)
