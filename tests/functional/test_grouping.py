import torch

from sohot.functional.grouping import class_counts, group_by_class


def test_very_different_sizes_are_not_padded_to_the_largest() -> None:
    counts = torch.tensor([1000, *[3] * 50])
    labels = torch.arange(51).repeat_interleave(counts)
    buckets = group_by_class(labels, labels, 51)
    slots = sum(len(b.classes) * (b.source_width + b.target_width) for b in buckets)
    assert slots <= 2 * 2 * len(labels)


def test_counting_cannot_leave_its_bounds() -> None:
    assert class_counts(torch.tensor([-5, 0, 1, 99]), 2).tolist() == [2, 2]
