"""The classifier on frozen features: what it minimises, and what it is for held-out images."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from two_domains import two_domains

from sohot.methods import HeadSettings
from sohot.networks import TwoStreams, create_backbone
from sohot.runs.frozen_head import features_at_rest
from sohot.runs.frozen_problem import FrozenHead, FrozenProblem, LabelledFeatures
from sohot.selection import Fold, deal
from sohot.training import TensorInputs


def domains(size: int = 6) -> tuple[LabelledFeatures, LabelledFeatures]:
    made = two_domains(size=size)
    rows, labels = torch.tensor(made.X, dtype=torch.float32), torch.tensor(made.y)
    of_source = torch.tensor(made.sample_domain > 0)
    return LabelledFeatures(rows[of_source], labels[of_source]), LabelledFeatures(rows[~of_source], labels[~of_source])


def probabilities(head: FrozenHead, rows: torch.Tensor) -> np.ndarray:
    return head.logits(rows).softmax(1).numpy()


@pytest.mark.parametrize("size", [6, 90])  # fewer and more features than rows
@pytest.mark.parametrize(("share", "decay"), [(None, None), (0.2, 0.05)])
def test_it_is_scikit_learns_logistic_regression(size, share, decay):
    source, target = domains(size)
    rows, labels = (torch.cat(parts).double().numpy() for parts in zip(source, target, strict=True))
    head = FrozenProblem(source, target, 3, target_share=share, decay=decay).solve()
    centred = rows - rows.mean(0)
    of_target = 0.5 if share is None else share
    weights = np.r_[np.full(45, (1 - of_target) / 45), np.full(9, of_target / 9)]
    penalty = HeadSettings().head_decay * (centred**2).mean() if decay is None else decay  # of raw weights
    model = LogisticRegression(C=1 / (2 * penalty), tol=1e-9, max_iter=10_000).fit(rows, labels, sample_weight=weights)
    seen = torch.tensor(rows, dtype=torch.float32)
    np.testing.assert_allclose(probabilities(head, seen), model.predict_proba(rows), atol=1e-3)


@pytest.mark.parametrize("size", [6, 90])
def test_holding_out_rows_is_training_without_them(size):
    source, target = domains(size)
    folds = deal(target.labels.tolist(), range(len(target.labels)))
    held_out = FrozenProblem(source, target, 3).held_out(folds)
    first = 0
    for train, held in folds:
        alone = FrozenProblem(source, LabelledFeatures(target.rows[train], target.labels[train]), 3).solve()
        found = held_out.logits[first : first + len(held)]
        np.testing.assert_allclose(found, alone.logits(target.rows[held]).numpy(), atol=1e-3)
        assert held_out.labels[first : first + len(held)].tolist() == target.labels[held].tolist()
        first += len(held)
    assert first == len(held_out) == 9


def test_moving_and_stretching_all_features_changes_no_answer():
    source, target = domains()
    head = FrozenProblem(source, target, 3).solve()
    moved = [LabelledFeatures(7 * part.rows + 40, part.labels) for part in (source, target)]
    again = FrozenProblem(*moved, 3).solve()
    np.testing.assert_allclose(probabilities(again, moved[1].rows), probabilities(head, target.rows), atol=1e-3)


def test_a_class_without_rows_is_never_the_answer():
    source, target = domains()
    assert 3 not in FrozenProblem(source, target, 4).solve().logits(target.rows).argmax(1)


def test_equal_features_are_no_trouble():
    rows = torch.ones(4, 2)
    head = FrozenProblem(None, LabelledFeatures(rows, torch.tensor([0, 0, 0, 1])), 2).solve()
    assert probabilities(head, rows[:1])[0] == pytest.approx([0.75, 0.25], abs=1e-3)


@pytest.mark.parametrize("kind", [{}, {"streams": "separate", "heads": "coupled"}, {"norm_bound": 0.01}])
def test_features_at_rest_are_what_the_classifier_sees(kind):
    backbone = create_backbone("small-cnn", size=16)
    model = TwoStreams(backbone, 3, trains="paper", **kind)
    images, device = torch.rand(5, 3, 16, 16), torch.device("cpu")
    head = FrozenHead(torch.randn(3, 128), torch.randn(3))
    head.install(model)
    expected = model.predict(images)
    for domain in ("source", "target"):
        rest = features_at_rest(model, domain, TensorInputs(images), 2, device, from_trunk=False)
        torch.testing.assert_close(head.logits(rest), expected)
        from_trunk = TensorInputs(model.trunk(domain)(images))
        rest = features_at_rest(model, domain, from_trunk, 2, device, from_trunk=True)
        torch.testing.assert_close(head.logits(rest), expected)
    assert all(parameter.requires_grad for parameter in model.tails.parameters())


def test_a_pool_that_weighs_nothing_changes_nothing():
    torch.manual_seed(0)
    labels = torch.arange(12) % 3
    rows = torch.randn(12, 5) + 2 * torch.nn.functional.one_hot(labels, 5)
    pool = torch.randn(30, 5) + 2 * torch.nn.functional.one_hot(torch.arange(30) % 3, 5)
    given = LabelledFeatures(rows, labels), LabelledFeatures(rows[:6] + 0.5, labels[:6]), 3
    plain, problem = FrozenProblem(*given), FrozenProblem(*given, pool=pool)
    folds = [Fold([0, 1, 2], [3, 4, 5]), Fold([3, 4, 5], [0, 1, 2])]
    head, answers = problem.solve_with_pool(0.0)
    assert torch.allclose(head.weight, plain.solve().weight, atol=1e-5)
    assert np.allclose(answers[0], answers[1], atol=1e-5)
    assert np.allclose(problem.held_out(folds, 0.0).logits, plain.held_out(folds).logits, atol=1e-4)
    surer, _ = problem.solve_with_pool(1.0)
    before, after = (one.logits(pool).softmax(1).max(1).values.mean() for one in (head, surer))
    assert after > before
