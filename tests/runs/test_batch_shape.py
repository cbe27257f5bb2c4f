"""Batches of a size that fits: laws over all numbers of classes and images."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sohot.data import LabelledImages
from sohot.runs import RunConfig
from sohot.runs.batch_shape import LEAST, make_batches, shape_batches

counts = st.tuples(st.integers(1, 40), st.integers(0, 50), st.integers(0, 50)).filter(
    lambda all_: all_[1] + all_[2] > 0
)


@given(counts, st.integers(1, 600))
def test_a_batch_stays_below_the_limit_unless_one_class_is_above_it(shape, rows):
    classes, source, target = shape
    found = shape_batches([source] * classes, [target] * classes, rows)
    each = (source if found.source is None else found.source) + (target if found.target is None else found.target)
    shown = classes if found.classes is None else found.classes
    assert shown >= 1
    assert shown * each <= rows or (shown == 1 and each <= 2 * LEAST)


@given(counts)
def test_what_fits_is_taken_whole(shape):
    classes, source, target = shape
    found = shape_batches([source] * classes, [target] * classes, rows=classes * (source + target))
    assert (found.classes, found.source, found.target) == (None, None, None)
    assert shape_batches([source] * classes, [target] * classes, rows=0) == found


@given(counts, st.integers(1, 600))
def test_both_domains_keep_enough_for_a_scatter(shape, rows):
    classes, source, target = shape
    found = shape_batches([source] * classes, [target] * classes, rows)
    assert found.source is None or found.source >= min(source, LEAST)
    assert found.target is None or found.target >= min(target, LEAST)


def images(per_class: int) -> LabelledImages:
    labels = [label for label in range(3) for _ in range(per_class)]
    return LabelledImages(tuple(f"{row}.png" for row in range(len(labels))), tuple(labels), ("a", "b", "c"))


def test_what_is_asked_for_wins():
    config = RunConfig(batch_classes=2, source_per_class=3, target_per_class=1)
    source_rows, target_rows = make_batches(config, images(10), images(4)).batch(0)
    assert (len(source_rows), len(target_rows)) == (6, 2)


@pytest.mark.parametrize(("source", "target"), [(images(2), None), (None, images(2))])
def test_one_domain_alone(source, target):
    assert sorted(map(len, make_batches(RunConfig(), source, target).batch(0))) == [0, 6]
