"""Laws of every protocol, over random data sets, numbers and seeds."""

import json
import tempfile
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_sets import SHARED, Rows, contents, make_dataset, rows

from sohot.data import LabelledImages
from sohot.data.datasets import DataSet
from sohot.data.protocols import (
    LeakError,
    Split,
    check_leaks,
    few_shot_folds,
    k_shot_split,
    rectified_split,
    split_bytes,
)
from sohot.data.protocols.drawing import Pictures

shots = st.integers(1, 4)
seeds = st.integers(0, 10**6)


@contextmanager
def dataset_of(source: Rows, target: Rows) -> Iterator[DataSet]:
    with tempfile.TemporaryDirectory() as folder:
        yield make_dataset(Path(folder), source, target)


def check_sides(split: Split, dataset: DataSet) -> None:
    """The sides are disjoint by file, content and group, and complete with what was dropped."""
    for one, two in combinations(split.sides.values(), 2):
        assert set(one.files).isdisjoint(two.files)
        assert set(contents(one)).isdisjoint(contents(two))
        assert (set(one.groups) & set(two.groups)) <= {""}
    target = dataset.domains["t"]
    placed = [file for name, side in split.sides.items() if name != "source_train" for file in side.files]
    dropped = [dataset.root / one.file for one in split.dropped if one.side != "source_train"]
    assert sorted(placed + dropped) == sorted(target.files)
    assert {*split.sides["source_train"].files} <= {*dataset.domains["s"].files}
    label = dict(zip(target.files, target.labels, strict=True))
    for name, side in split.sides.items():
        if name != "source_train":
            assert [label[file] for file in side.files] == list(side.labels)


def pictures(images: LabelledImages, but: AbstractSet[bytes] = frozenset()) -> list[int]:
    """Different pictures of each class."""
    by_class: list[set[bytes]] = [set() for _ in images.classes]
    for content, label in zip(contents(images), images.labels, strict=True):
        by_class[label] |= {content} - but
    return [len(found) for found in by_class]


@settings(max_examples=30)
@given(rows(), rows(groups=2), shots, shots, st.integers(0, 2), seeds)
def test_k_shot(source: Rows, target: Rows, source_shots: int, target_shots: int, validation: int, seed: int) -> None:
    with dataset_of(source, target) as dataset:
        split = k_shot_split(
            dataset, "s-t", seed, source_shots=source_shots, target_shots=target_shots, validation_shots=validation
        )
        check_sides(split, dataset)
        in_target = set(contents(dataset.domains["t"]))
        possible = pictures(dataset.domains["s"], in_target)
        assert split.sides["source_train"].counts() == [min(source_shots, count) for count in possible]
        possible = pictures(dataset.domains["t"])
        assert split.sides["target_train"].counts() == [min(target_shots, count) for count in possible]


@settings(max_examples=30)
@given(rows(), rows(least=2, most=14), st.integers(1, 5), st.integers(1, 5))
def test_rectified(source: Rows, target: Rows, one: int, two: int) -> None:
    with dataset_of(source, target) as dataset:
        splits = [rectified_split(dataset, "s-t", number, source_shots=2) for number in (one, two)]
        for split in splits:
            check_sides(split, dataset)
            tested = split.sides["target_test"].counts()
            for label, count in enumerate(dataset.domains["t"].counts()):
                mine = [
                    c
                    for c, of in zip(contents(dataset.domains["t"]), dataset.domains["t"].labels, strict=True)
                    if of == label
                ]
                if len(set(mine)) == count and not set(mine) & {b" 0", b" 1"}:  # no copies: the share is exact
                    assert max(1, count * 3 // 10) <= tested[label] <= count * 3 // 10 + 1
        assert splits[0].sides["target_test"] == splits[1].sides["target_test"]
        assert (splits[0] == splits[1]) == (one == two)


@settings(max_examples=20)
@given(rows(), rows(groups=2), shots, seeds, st.randoms(use_true_random=False))
def test_neither_place_nor_order_matters(source: Rows, target: Rows, shots: int, seed: int, random) -> None:  # type: ignore[no-untyped-def]
    with dataset_of(source, target) as dataset, dataset_of(source, target) as elsewhere:
        expected = split_bytes(k_shot_split(dataset, None, seed, target_shots=shots, source_shots=2))
        assert split_bytes(k_shot_split(elsewhere, "S-T", seed, target_shots=shots, source_shots=2)) == expected
        stored = Split.from_dict(json.loads(expected), elsewhere.root)
        assert split_bytes(stored) == expected
        order = list(range(len(dataset.domains["t"])))
        random.shuffle(order)
        shuffled = replace(dataset, domains={**dataset.domains, "t": dataset.domains["t"].subset(order)})
        split = k_shot_split(shuffled, None, seed, target_shots=shots, source_shots=2)
        assert {*split.sides["target_train"].files} == {
            dataset.root / name for name in json.loads(expected)["sides"]["target_train"]["files"]
        }


@settings(max_examples=20)
@given(rows(least=3), rows(least=5), seeds)
def test_fewer_shots_are_part_of_more(source: Rows, target: Rows, seed: int) -> None:
    with dataset_of(source, target) as dataset:
        few, more = (k_shot_split(dataset, None, seed, target_shots=shots) for shots in (1, 3))
        assert {*few.sides["target_train"].files} <= {*more.sides["target_train"].files}


@settings(max_examples=30)
@given(rows(least=3), rows(least=4, contents=10**6, groups=1), st.data())
def test_planted_leaks_are_found_and_named(source: Rows, target: Rows, data: st.DataObject) -> None:
    with dataset_of(source, target) as dataset:
        split = k_shot_split(dataset, None, 0, target_shots=1, source_shots=2)
        filled = [name for name, side in split.sides.items() if len(side)]
        if len(filled) < 2:
            return
        one, two = data.draw(st.lists(st.sampled_from(filled), min_size=2, max_size=2, unique=True))
        row = data.draw(st.integers(0, len(split.sides[one]) - 1))
        leaked = split.sides[one].files[row]
        if data.draw(st.booleans()):  # a copy under another name
            copy = leaked.with_name("copy of it.png")
            copy.write_bytes(leaked.read_bytes())
        else:
            copy = leaked
        victim = split.sides[two]
        place = data.draw(st.integers(0, len(victim) - 1))
        files = (*victim.files[:place], copy, *victim.files[place + 1 :])
        planted = {**split.sides, two: replace(victim, files=files)}
        with pytest.raises(LeakError) as found:
            check_leaks(planted)
        assert leaked.name in str(found.value)
        assert copy.name in str(found.value)
        with pytest.raises(LeakError):
            replace(split, sides=planted)


@settings(max_examples=30)
@given(rows(least=2, contents=8, groups=2, lowest=SHARED), seeds)
def test_folds_validate_every_picture_once(target: Rows, seed: int) -> None:
    with dataset_of(target, target) as dataset:
        images = dataset.domains["t"]
        clusters = Pictures(images, [str(content) for content in contents(images)]).clusters()
        assume(len(clusters) > len(images.classes))  # so that some class has two
        folds = few_shot_folds(images, seed=seed)
        held = [file for _, validation in folds for file in validation.files]
        assert len(set(held)) == len(held)
        for train, validation in folds:
            assert sorted(train.files + validation.files) == sorted(images.files)
            check_leaks({"target_train": train, "validation": validation})
