import torch
from hypothesis import given
from hypothesis import strategies as st

from sohot.functional.grouping import class_counts, group_by_class

labels = st.lists(st.integers(0, 5), min_size=1, max_size=60)


@given(labels, labels, st.integers(0, 2))
def test_every_row_of_a_shared_class_has_a_slot_of_its_own(source: list[int], target: list[int], extra: int) -> None:
    shared = set(source) & set(target)
    seen = set()
    for bucket in group_by_class(torch.tensor(source), torch.tensor(target), 6, extra):
        classes = bucket.classes.tolist()
        seen |= set(classes)
        width = bucket.source_width + bucket.target_width + extra
        taken = []
        for given_labels, slots, start, used in (
            (source, bucket.source_slots, 0, bucket.source_width),
            (target, bucket.target_slots, bucket.source_width, bucket.target_width),
        ):
            for label, slot in zip(given_labels, slots.tolist(), strict=True):
                if label not in classes:
                    assert slot == len(classes) * width
                    continue
                block, place = divmod(slot, width)
                assert classes[block] == label
                assert start <= place < start + used
                taken.append(slot)
        assert len(taken) == len(set(taken))
        assert bucket.source_counts.tolist() == [source.count(c) for c in classes]
        assert bucket.target_counts.tolist() == [target.count(c) for c in classes]
    assert seen == shared


def test_very_different_sizes_are_not_padded_to_the_largest() -> None:
    counts = torch.tensor([1000, *[3] * 50])
    labels = torch.arange(51).repeat_interleave(counts)
    buckets = group_by_class(labels, labels, 51)
    slots = sum(len(b.classes) * (b.source_width + b.target_width) for b in buckets)
    assert slots <= 2 * 2 * len(labels)


def test_counting_cannot_leave_its_bounds() -> None:
    assert class_counts(torch.tensor([-5, 0, 1, 99]), 2).tolist() == [2, 2]
