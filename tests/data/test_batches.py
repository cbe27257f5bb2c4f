from typing import NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from sohot.data import BalancedBatches


class Setting(NamedTuple):
    source: Tensor
    target: Tensor
    num_classes: int
    classes_per_batch: int | None
    source_per_class: int | None
    target_per_class: int | None
    seed: int

    @property
    def present(self) -> list[int]:
        return sorted(set(self.source.tolist()) | set(self.target.tolist()))

    @property
    def domains(self) -> list[tuple[Tensor, int | None]]:
        return [(self.source, self.source_per_class), (self.target, self.target_per_class)]

    def build(self) -> BalancedBatches:
        return BalancedBatches(*self)


@st.composite
def settings(draw: st.DrawFn) -> Setting:
    """Classes of unequal sizes, in shuffled rows, some missing from a domain or from both."""
    num_classes = draw(st.integers(1, 7))
    labels = []
    for _ in range(2):
        counts = draw(st.lists(st.integers(0, 6), min_size=num_classes, max_size=num_classes))
        labels.append([label for label, count in enumerate(counts) for _ in range(count)])
    if not labels[0] and not labels[1]:
        labels[0] = [0]
    source, target = (torch.tensor(draw(st.permutations(values)), dtype=torch.int64) for values in labels)
    takes = [draw(st.none() | st.integers(1, 8)) for _ in range(3)]
    return Setting(source, target, num_classes, *takes, draw(st.integers(0, 2**64)))


steps = st.integers(0, 300)


@given(settings(), steps)
def test_a_batch_is_a_pure_function_of_seed_and_step(setting: Setting, step: int) -> None:
    used = setting.build()
    for earlier in range(3):
        used.batch(earlier)
    for a, b in zip(used.batch(step), setting.build().batch(step), strict=True):
        assert torch.equal(a, b)
        assert a.dtype == torch.int64


@given(settings(), steps)
def test_a_batch_is_balanced_and_repeats_no_row(setting: Setting, step: int) -> None:
    drawn = setting.build().batch(step)
    shown: set[int] = set()
    for rows, (labels, _) in zip(drawn, setting.domains, strict=True):
        assert rows.tolist() == sorted(set(rows.tolist()))
        shown |= set(labels[rows].tolist())
    assert len(shown) == min(setting.classes_per_batch or len(setting.present), len(setting.present))
    for rows, (labels, take) in zip(drawn, setting.domains, strict=True):
        for label in shown:  # each domain shows all it should of each class
            available = int((labels == label).sum())
            assert int((labels[rows] == label).sum()) == (available if take is None else min(available, take))


@given(settings(), st.integers(1, 60))
def test_classes_and_rows_are_used_evenly_at_any_moment(setting: Setting, count: int) -> None:
    batches = setting.build()
    drawn = [batches.batch(step) for step in range(count)]
    shows = dict.fromkeys(setting.present, 0)
    for pair in drawn:
        for label in {int(x) for rows, (labels, _) in zip(pair, setting.domains, strict=True) for x in labels[rows]}:
            shows[label] += 1
    assert max(shows.values()) - min(shows.values()) <= 1
    for domain, (labels, _) in enumerate(setting.domains):
        used = torch.bincount(torch.cat([pair[domain] for pair in drawn]), minlength=len(labels))
        for label in set(labels.tolist()):
            of_class = used[labels == label]
            assert of_class.max() - of_class.min() <= 1


@given(settings())
def test_an_epoch_sees_every_row(setting: Setting) -> None:
    batches = setting.build()
    drawn = [batches.batch(step) for step in range(batches.steps_per_epoch)]
    for domain, (labels, _) in enumerate(setting.domains):
        assert set(torch.cat([pair[domain] for pair in drawn]).tolist()) == set(range(len(labels)))


@given(settings(), steps)
def test_none_everywhere_is_the_whole_training_set(setting: Setting, step: int) -> None:
    batches = BalancedBatches(setting.source, setting.target, setting.num_classes, seed=setting.seed)
    source, target = batches.batch(step)
    assert source.tolist() == list(range(len(setting.source)))
    assert target.tolist() == list(range(len(setting.target)))
    assert batches.steps_per_epoch == 1


def office_like(seed: int = 0) -> BalancedBatches:
    return BalancedBatches(torch.arange(31 * 20) % 31, torch.arange(31 * 3) % 31, 31, 8, 10, 2, seed)


def test_seeds_and_steps_give_different_batches() -> None:
    distinct = {tuple(office_like(seed).batch(step)[0].tolist()) for seed in range(5) for step in range(40)}
    assert len(distinct) == 200


def test_the_order_is_shuffled_anew() -> None:
    batches = BalancedBatches(torch.zeros(12, dtype=torch.int64), torch.zeros(0, dtype=torch.int64), 1, None, 4)
    passes = [tuple(tuple(batches.batch(3 * turn + part)[0].tolist()) for part in range(3)) for turn in range(20)]
    assert len(set(passes)) == 20
    for groups in passes:
        assert sorted(sum(groups, ())) == list(range(12))


def test_classes_and_domains_have_orders_of_their_own() -> None:
    labels = torch.arange(60) % 3  # row = 3 · place + class
    source, target = BalancedBatches(labels, labels, 3, None, 5, 5).batch(0)
    places = {tuple((rows[rows % 3 == label] // 3).tolist()) for rows in (source, target) for label in range(3)}
    assert len(places) == 6


def test_a_step_far_ahead_costs_no_more() -> None:
    source, target = office_like().batch(10**12)
    assert (len(source), len(target)) == (80, 16)


@pytest.mark.parametrize("per_class", [(None, None), (2, 1), (3, None)])
def test_the_largest_class_of_any_batch_is_known(per_class: tuple[int | None, int | None]) -> None:
    source, target = torch.tensor([0] * 5 + [1] * 2 + [2] * 4), torch.tensor([0] * 1 + [1] * 3)
    batches = BalancedBatches(source, target, 3, 2, *per_class)
    largest = 0
    for step in range(batches.steps_per_epoch):
        rows, target_rows = batches.batch(step)
        largest = max(largest, int(torch.cat([source[rows], target[target_rows]]).bincount().max()))
    assert batches.most_rows == largest


LABELS = torch.tensor([0, 1, 1])


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        ({"source_labels": torch.tensor([0, 2])}, ValueError, "source_labels must lie in 0 … 1"),
        ({"target_labels": torch.tensor([-1])}, ValueError, "target_labels must lie in 0 … 1 .* got -1"),
        (
            {"target_labels": torch.tensor([0.5])},
            TypeError,
            "target_labels must be a one-dimensional tensor of integers",
        ),
        ({"source_labels": [0, 1]}, TypeError, "source_labels must be a one-dimensional tensor"),
        ({"num_classes": 0}, ValueError, "num_classes must be an integer of at least 1, got 0"),
        ({"num_classes": None}, ValueError, "num_classes must be an integer of at least 1, got None"),
        ({"classes_per_batch": 0}, ValueError, "classes_per_batch must be an integer of at least 1 or None, got 0"),
        ({"source_per_class": 1.5}, ValueError, "source_per_class must be an integer"),
        ({"target_per_class": True}, ValueError, "target_per_class must be an integer"),
        ({"source_labels": LABELS[:0], "target_labels": LABELS[:0]}, ValueError, "are both empty"),
    ],
)
def test_bad_input_is_named(change: dict[str, object], error: type[Exception], sentence: str) -> None:
    arguments = {"source_labels": LABELS, "target_labels": LABELS, "num_classes": 2, **change}
    with pytest.raises(error, match=sentence):
        BalancedBatches(**arguments)  # type: ignore[arg-type]


def test_a_negative_step() -> None:
    with pytest.raises(ValueError, match="step must be at least 0, got -1"):
        BalancedBatches(LABELS, LABELS, 2).batch(-1)
