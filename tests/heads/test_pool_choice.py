"""When a pool counts: held-out labels, collapse, and pools that show something else."""

import numpy as np

from sohot.heads.pool_choice import choose_pool
from sohot.selection.held_out import HeldOut

LABELS = np.arange(40) % 2


def logits(right: int, margin: float) -> np.ndarray:
    """Logits of which the first `right` name the true class."""
    signs = np.where(np.arange(40) < right, 1.0, -1.0) * margin
    return np.eye(2)[LABELS] * signs[:, None]


def held(right: int, margin: float = 2.0) -> HeldOut:
    return HeldOut(logits(right, margin) + 0.1 * np.random.default_rng(right).normal(size=(40, 2)), LABELS)


def test_a_pool_counts_where_labels_speak_for_it_and_where_they_cannot_tell() -> None:
    answers = [logits(40, 4.0), logits(40, 2.0)]
    for with_pool in (held(38), held(31), held(29)):
        choice = choose_pool(answers, [with_pool, held(31)])
        assert choice.kept
        assert choice.reason.startswith("the unlabelled rows count: of 40 held-out target rows, ")


def test_a_pool_does_not_count_where_labels_speak_clearly_against_it() -> None:
    choice = choose_pool([logits(40, 4.0), logits(40, 2.0)], [held(22), held(39)])
    assert not choice.kept
    assert "55.0 % are right with them and 97.5 % without" in choice.reason
    assert choice.reason.endswith("which is clearly worse")


def test_being_surer_alone_is_neither_better_nor_worse() -> None:
    calm = held(32)
    sure = HeldOut(5 * calm.logits, LABELS)
    for pair in ([sure, calm], [calm, sure]):
        assert "log-likelihood +0.000" in choose_pool([logits(40, 2.0)] * 2, pair).reason.replace("-0.000", "+0.000")


def test_a_class_that_swallows_the_pool_is_noticed_without_any_label() -> None:
    all_first = np.tile([3.0, 0.0], (40, 1))
    assert not choose_pool([all_first, logits(40, 2.0)]).kept
    assert choose_pool([all_first, all_first]).kept  # the pool may well hold one class


def test_a_pool_that_the_classifier_is_unsure_of_shows_something_else() -> None:
    choice = choose_pool([logits(40, 4.0), logits(40, 0.1)], [held(40), held(40)])
    assert not choice.kept
    assert "they seem to show something else (without them the classifier is 52 % sure of them" in choice.reason


def test_a_fit_that_diverged_does_not_count() -> None:
    assert "diverged" in choose_pool([np.full((40, 2), np.nan), logits(40, 2.0)]).reason
