import hashlib
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sohot.data import LabelledImages, short_classes, take_shots


def labelled(counts: list[int], root: str = "/data") -> LabelledImages:
    rows = [(label, number) for label, count in enumerate(counts) for number in range(count)]
    files = tuple(Path(f"{root}/class{label}/{number}.jpg") for label, number in rows)
    classes = tuple(f"class{label}" for label in range(len(counts)))
    return LabelledImages(files, tuple(label for label, _ in rows), classes, Path(root))


def chosen(images: LabelledImages) -> set[str]:
    return {images.name(row) for row in range(len(images))}


counts = st.lists(st.integers(3, 12), min_size=1, max_size=5)
seeds = st.integers(-(2**70), 2**70)


@given(counts, st.integers(1, 3), seeds)
def test_shots_and_rest_divide_the_images(counts: list[int], shots: int, seed: int) -> None:
    images = labelled(counts)
    train, rest = take_shots(images, shots, seed)
    assert train.counts() == [shots] * len(counts)
    assert chosen(train).isdisjoint(chosen(rest))
    assert chosen(train) | chosen(rest) == chosen(images)
    assert train.classes == rest.classes == images.classes


@given(counts, seeds, st.randoms(use_true_random=False))
def test_neither_the_order_nor_the_place_of_the_files_matters(
    counts: list[int], seed: int, shuffler: random.Random
) -> None:
    images = labelled(counts)
    order = list(range(len(images)))
    shuffler.shuffle(order)
    expected = chosen(take_shots(images, 2, seed)[0])
    assert chosen(take_shots(images.subset(order), 2, seed)[0]) == expected
    assert chosen(take_shots(labelled(counts, root="/mnt/copy"), 2, seed)[0]) == expected


@given(counts, seeds)
def test_fewer_shots_are_part_of_more(counts: list[int], seed: int) -> None:
    images = labelled(counts)
    assert chosen(take_shots(images, 1, seed)[0]) < chosen(take_shots(images, 3, seed)[0])


@given(st.integers(4, 12), seeds)
def test_a_class_is_drawn_without_regard_to_the_others(count: int, seed: int) -> None:
    alone, together = labelled([count]), labelled([count, 7])
    of_first = {name for name in chosen(take_shots(together, 2, seed)[0]) if name.startswith("class0/")}
    assert chosen(take_shots(alone, 2, seed)[0]) == of_first


def test_the_choice_is_the_same_for_ever() -> None:
    train, _ = take_shots(labelled([6]), 2, seed=5)
    texts = {f"class0/{number}.jpg": f"5\0class0\0class0/{number}.jpg" for number in range(6)}
    by_hash = sorted(texts, key=lambda name: hashlib.sha256(texts[name].encode()).hexdigest())
    assert chosen(train) == set(by_hash[:2])


def test_every_image_is_chosen_about_as_often() -> None:
    images = labelled([5])
    times = dict.fromkeys(chosen(images), 0)
    for seed in range(2000):
        for name in chosen(take_shots(images, 2, seed)[0]):
            times[name] += 1
    assert all(abs(count - 800) < 110 for count in times.values())  # five standard deviations


def test_too_few_images_are_named_and_counted() -> None:
    images = labelled([7, 9, 2])
    assert short_classes(images, 8) == {"class0": 7, "class2": 2}
    with pytest.raises(ValueError, match=r"^8 shots .* fewer images: 'class0' \(7\), 'class2' \(2\)$"):
        take_shots(images, 8, seed=0)
    train, rest = take_shots(images, 8, seed=0, short="take")
    assert (train.counts(), rest.counts()) == ([7, 8, 2], [0, 1, 0])


def test_bad_input_is_named() -> None:
    images = labelled([3])
    with pytest.raises(ValueError, match="shots must be at least 1, got 0"):
        take_shots(images, 0, seed=0)
    with pytest.raises(TypeError, match=r"shots must be an integer, got 1\.5"):
        take_shots(images, 1.5, seed=0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="seed must be an integer, got None"):
        take_shots(images, 1, seed=None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="short must be one of 'refuse', 'take', got 'x'"):
        take_shots(images, 1, seed=0, short="x")
