"""Splits with unlabelled target images: who is in the pool, that no label tells, and that nothing leaks."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from data.protocols.test_laws import dataset_of
from hypothesis import given, settings
from hypothesis import strategies as st
from official_sets import make_office31, make_rgbd_caltech
from random_sets import Rows, contents, rows

from sohot.data import LabelledImages
from sohot.data.datasets import DataSet, open_dataset
from sohot.data.protocols import (
    INDUCTIVE,
    POOL,
    POOLS,
    SUPERVISED,
    TRANSDUCTIVE,
    LeakError,
    Split,
    k_shot_split,
    make_split,
    paper_split,
    rectified_split,
    split_bytes,
)
from sohot.data.protocols.drawing import Pictures
from sohot.data.unlabelled import halve

seeds = st.integers(0, 10**6)


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> DataSet:
    root = tmp_path_factory.mktemp("office31")
    return open_dataset("office31", make_office31(root, {"amazon": 9, "dslr": 8, "webcam": 11}))


@settings(max_examples=10)
@given(rows(), rows(groups=2), st.integers(0, 3), st.integers(0, 1), seeds)
def test_pool_and_test_are_what_a_supervised_split_tests_on(
    source: Rows, target: Rows, shots: int, validation: int, seed: int
) -> None:
    with dataset_of(source, target) as dataset:
        plain, transductive, inductive = (
            k_shot_split(dataset, None, seed, target_shots=shots, validation_shots=validation, pool=pool)
            for pool in POOLS
        )
        for split in (transductive, inductive):
            for side in plain.sides:
                assert side == "target_test" or split.sides[side] == plain.sides[side]
            assert split.sides[POOL] == split.sides[POOL].without_labels()
        assert transductive.sides["target_test"] == plain.sides["target_test"]
        assert transductive.sides[POOL].files == plain.sides["target_test"].files
        seen, tested = inductive.sides[POOL], inductive.sides["target_test"]
        assert sorted((*seen.files, *tested.files)) == sorted(plain.sides["target_test"].files)
        assert set(contents(seen)).isdisjoint(contents(tested))
        assert (set(seen.groups) & set(tested.groups)) <= {""}


@settings(max_examples=10)
@given(rows(least=2, groups=2), seeds, st.randoms(use_true_random=False))
def test_halves_know_neither_labels_nor_the_order_of_files(target: Rows, seed: int, random) -> None:  # type: ignore[no-untyped-def]
    with dataset_of(target, target) as dataset:
        images = dataset.domains["t"]
        everyone = list(range(len(images)))
        first, second = halves_of(images, seed)
        assert sorted(first | second) == sorted(images.files)
        largest = max(map(len, Pictures(images, [str(content) for content in contents(images)]).clusters()))
        assert abs(len(first) - len(second)) <= largest
        other = list(images.labels)
        random.shuffle(other)
        assert halves_of(replace(images, labels=tuple(other)), seed) == (first, second)
        random.shuffle(everyone)
        assert halves_of(images.subset(everyone), seed) == (first, second)


def halves_of(images: LabelledImages, seed: int) -> tuple[set[Path], set[Path]]:
    first, second = halve(images, seed)
    return set(first.files), set(second.files)


def test_halves_are_equal_and_another_split_has_others(office: DataSet) -> None:
    splits = [paper_split(office, "A-W", number, pool=INDUCTIVE) for number in (1, 2)]
    assert splits[0] == paper_split(office, "A-W", 1, pool=INDUCTIVE)
    assert [split.counts()[POOL] for split in splits] == [12, 12]
    assert [split.counts()["target_test"] for split in splits] == [12, 12]
    assert splits[0].sides[POOL] != splits[1].sides[POOL]


@pytest.mark.parametrize("pool", [TRANSDUCTIVE, INDUCTIVE])
@pytest.mark.parametrize("protocol", ["paper", "paper-folds", "rectified", "k-shot"])
def test_what_is_stored_comes_back_without_a_label_of_the_pool(office: DataSet, protocol: str, pool: str) -> None:
    split = make_split(protocol, office, "A-W", 1, pool=pool)
    content = json.loads(split_bytes(split))
    assert Split.from_dict(content, office.root) == split
    assert content["pool"] == pool
    assert set(content["sides"][POOL]) == {"files"}
    assert content["counts"][POOL] == len(split.sides[POOL])
    assert pool == TRANSDUCTIVE or "without reading a label" in content["rule"]
    assert len({make_split(protocol, office, "A-W", 1, pool=each).fingerprint for each in POOLS}) == 3


def test_a_fold_sees_what_the_study_it_prepares_sees(office: DataSet) -> None:
    for pool in (TRANSDUCTIVE, INDUCTIVE):
        whole, fold = (make_split(protocol, office, "A-W", 1, pool=pool) for protocol in ("paper", "paper-folds"))
        held = set(fold.sides["target_test"].files)
        added = held if pool == TRANSDUCTIVE else set()
        assert set(fold.sides[POOL].files) == {*whole.sides[POOL].files, *added}
        assert held < set(whole.sides["target_train"].files)


def test_rectified_halves_are_fixed_as_its_test_is(office: DataSet) -> None:
    one, two = (rectified_split(office, shift, 2, pool=INDUCTIVE) for shift in ("A-W", "D-W"))
    assert one.sides[POOL] == two.sides[POOL]
    assert one.sides["target_test"] == rectified_split(office, "A-W", 5, pool=INDUCTIVE).sides["target_test"]


def test_views_of_one_object_are_in_one_half(tmp_path: Path) -> None:
    dataset = open_dataset("rgbd-caltech", make_rgbd_caltech(tmp_path, views=3))
    turned = replace(dataset, shifts=("caltech-depth",))
    split = k_shot_split(turned, None, 0, target_shots=0, pool=INDUCTIVE)
    seen, tested = split.sides[POOL], split.sides["target_test"]
    assert len(seen) == len(tested)
    assert set(seen.groups).isdisjoint(tested.groups)
    assert json.loads(split_bytes(split))["sides"][POOL].keys() == {"files", "groups", "reader"}


def test_splits_keep_their_fingerprints(tmp_path: Path) -> None:
    """Stored files and results rest on them."""
    small = open_dataset("office31", make_office31(tmp_path / "small", {"amazon": 9, "dslr": 8, "webcam": 6}))
    depth = open_dataset("rgbd-caltech", make_rgbd_caltech(tmp_path / "depth", views=3))
    found = [
        make_split("paper", small, "A-W", 1),
        make_split("paper-folds", small, "A-W", 2),
        make_split("rectified", small, "D-A", 3),
        make_split("k-shot", small, "W-D", 0, target_shots=2, validation_shots=1),
        make_split("k-shot", depth, None, 0, target_shots=1, source_shots=2),
    ]
    assert [split.fingerprint[:16] for split in found] == [
        "2b1253729b7e1111",
        "fca9b9caa1e1abbc",
        "eb69dfa4ca4ca78c",
        "b711f6026c876290",
        "85b30725f9726837",
    ]
    assert all(split.pool == SUPERVISED and "pool" not in split.as_dict() for split in found)


def planted(split: Split, side: str, file: Path) -> dict[str, LabelledImages]:
    victim = split.sides[side]
    return {**split.sides, side: replace(victim, files=(file, *victim.files[1:]))}


@pytest.mark.parametrize(
    ("pool", "of", "to"),
    [
        (INDUCTIVE, "target_test", POOL),
        (INDUCTIVE, "target_train", POOL),
        (INDUCTIVE, POOL, "target_test"),
        (TRANSDUCTIVE, "target_train", POOL),
        (TRANSDUCTIVE, "source_train", POOL),
    ],
)
def test_leaks_are_named(office: DataSet, pool: str, of: str, to: str) -> None:
    split = paper_split(office, "A-W", 1, pool=pool)
    leaked = split.sides[of].files[0]
    copy = leaked.with_name("copy.jpg")
    copy.write_bytes(leaked.read_bytes())
    sides = planted(split, to, copy)
    if pool == TRANSDUCTIVE:  # it tests on the pool
        sides = {**sides, "target_test": split.sides["target_test"].subset(range(1, 24))}
    with pytest.raises(LeakError, match=rf"1 leak between sides: .*{leaked.name}.* are byte-identical"):
        replace(split, sides=sides)


def test_a_group_across_an_inductive_pool_and_test_is_a_leak(office: DataSet) -> None:
    split = paper_split(office, "A-W", 1, pool=INDUCTIVE)
    grouped = {
        side: replace(split.sides[side], groups=("one mug", *[""] * (len(split.sides[side]) - 1)))
        for side in (POOL, "target_test")
    }
    with pytest.raises(LeakError, match="show the same, one mug"):
        replace(split, sides={**split.sides, **grouped})


def test_pools_that_cannot_be_are_refused(office: DataSet) -> None:
    split = paper_split(office, "A-W", 1, pool=INDUCTIVE)
    with pytest.raises(ValueError, match="pool must be one of 'supervised', 'transductive', 'inductive', got 'all'"):
        make_split("paper", office, "A-W", pool="all")
    with pytest.raises(ValueError, match="supervised splits have no side target_pool"):
        replace(split, pool=SUPERVISED)
    with pytest.raises(ValueError, match="inductive splits have a side target_pool"):
        replace(paper_split(office, "A-W", 1), pool=INDUCTIVE)
    with pytest.raises(ValueError, match="tests on images of its target_pool, but this one also tests on others"):
        replace(split, pool=TRANSDUCTIVE)
    with pytest.raises(ValueError, match="the images of target_pool must be unlabelled"):
        replace(split, sides={**split.sides, POOL: split.sides["target_test"]})
