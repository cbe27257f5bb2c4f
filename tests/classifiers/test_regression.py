import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch.nn.functional import one_hot

from sohot.classifiers import Heads, PoolTerm, fit_heads, weighted_targets


def problem(groups=1, count=30, size=5, classes=3, seed=0):
    random = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % classes
    centres = torch.randn(classes, size, generator=random)
    rows = centres[labels] + torch.randn(groups, count, size, generator=random)
    return rows, labels


def objective(heads, rows, targets, decay, pool=None):
    """The objective of the docstring, term by term: (G, K)."""
    log_p = heads(rows).log_softmax(3)
    loss = decay * heads.weight.square().sum((1, 3)) - (targets * log_p[:, : len(targets)]).sum((1, 3))
    if pool is not None:
        own = log_p[:, -pool.weights.shape[1] :]
        weights = pool.weights.unsqueeze(3)
        entropy = -(own.exp() * own).sum(3, keepdim=True)
        mean = (weights * own.exp()).sum(1)
        divergence = (mean * (mean * mean.shape[2]).log()).sum(2)
        loss = loss + pool.strength * ((weights * entropy).sum((1, 3)) + pool.balance * divergence)
    return loss


def slope(heads, *of):
    parts = [part.clone().requires_grad_() for part in heads]
    return torch.autograd.grad(objective(Heads(*parts), *of).sum(), parts)


def test_the_minimum_is_scikit_learns():
    rows, labels = problem()
    targets = weighted_targets(labels, torch.zeros(30, dtype=torch.bool), 3, torch.tensor([0.5]))
    heads = fit_heads(rows, targets, torch.tensor([0.05]), tolerance=1e-6, rounds=200)
    # scikit-learn minimises C·Σ CE + ½‖W‖²; here it is mean CE + 0.05‖W‖²
    other = LogisticRegression(C=1 / (2 * 0.05 * 30), tol=1e-8, max_iter=1000).fit(rows[0], labels)
    np.testing.assert_allclose(heads(rows)[0, :, 0].softmax(1), other.predict_proba(rows[0]), atol=1e-3)


@pytest.mark.parametrize("balance", [1.0, 0.5])
def test_with_a_pool_the_gradient_of_the_printed_objective_vanishes(balance):
    rows, labels = problem(groups=2, count=60)
    targets = weighted_targets(labels[:12], torch.arange(12) > 5, 3, torch.tensor([0.5]))
    pool = PoolTerm(torch.full((2, 48, 1), 1 / 48), torch.full((2, 1), 0.3), torch.tensor([balance]))
    heads = fit_heads(rows, targets, torch.tensor([0.03]), pool=pool, tolerance=1e-5, rounds=300)
    assert max(float(part.abs().max()) for part in slope(heads, rows, targets, 0.03, pool)) < 1e-3
    start = Heads(torch.zeros_like(heads.weight), torch.zeros_like(heads.bias))
    assert (objective(heads, rows, targets, 0.03, pool) < objective(start, rows, targets, 0.03, pool)).all()


def test_columns_and_groups_are_fits_of_their_own():
    rows, labels = problem(groups=2)
    is_target = torch.arange(30) >= 18
    shares, decays = torch.tensor([0.5, 0.85, 0.5]), torch.tensor([0.03, 0.03, 0.3])
    targets = weighted_targets(labels, is_target, 3, shares)
    together = fit_heads(rows, targets, decays, tolerance=1e-6, rounds=200)(rows)
    for column in range(3):
        for group in range(2):
            alone = fit_heads(
                rows[group : group + 1], targets[:, column : column + 1], decays[column : column + 1],
                tolerance=1e-6, rounds=200,
            )(rows[group : group + 1])  # fmt: skip
            torch.testing.assert_close(together[group, :, column], alone[0, :, 0], atol=2e-3, rtol=0)


def test_a_held_out_row_has_no_weight_and_the_others_share_it():
    labels, is_target = torch.tensor([0, 1, 0, 1, 0, 1]), torch.tensor([False, False, True, True, True, True])
    held_out = torch.zeros(2, 6, dtype=torch.bool)
    held_out[1, 2:4] = True
    targets = weighted_targets(labels, is_target, 2, torch.tensor([0.5, 0.5]), held_out)
    assert targets[2:4, 1].sum() == 0
    assert torch.allclose(targets.sum((0, 2)), torch.ones(2))
    assert torch.allclose(targets[4:, 1].sum(), torch.tensor(0.5))


def test_one_domain_alone_has_the_whole_loss():
    targets = weighted_targets(torch.tensor([0, 1]), torch.tensor([False, False]), 2, torch.tensor([0.85]))
    assert torch.equal(targets[:, 0], one_hot(torch.tensor([0, 1]), 2) / 2)


def test_separable_rows_end_with_finite_weights():
    rows = torch.tensor([[[-100.0], [100.0]]])
    targets = weighted_targets(torch.tensor([0, 1]), torch.tensor([False, True]), 2, torch.tensor([0.5]))
    assert torch.isfinite(fit_heads(rows, targets, torch.tensor([1e-3])).weight).all()
