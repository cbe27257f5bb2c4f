"""Where the rows of a stack lie."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from oracle import batches

from sohot.heads.layout import lay_out


@given(data=st.lists(batches(), min_size=1, max_size=4))
def test_every_row_has_a_slot_of_its_class_to_itself(data):
    labels = [(ys, yt) for _, ys, _, yt in data]
    layout = lay_out(labels, 4)
    classes = layout.classes()
    assert len(classes) == layout.slots
    for number, of_fit in enumerate(labels):
        source, target = layout.source_slots[number], layout.target_slots[number]
        assert torch.equal(classes[source], of_fit[0])
        assert torch.equal(classes[target], of_fit[1])
        assert (source < layout.sizes[0]).all()
        assert (target >= layout.sizes[0]).all()
        both = torch.cat([source, target])
        assert len(both.unique()) == len(both) == int(layout.taken()[number].sum())


def test_filled_slots_hold_the_rows_and_the_others_zero():
    source, target = torch.tensor([1, 0, 1]), torch.tensor([0])
    layout = lay_out([(source, target)], 2)
    filled = layout.fill([torch.tensor([[1.0], [2.0], [3.0]])], [torch.tensor([[4.0]])])
    assert filled.flatten().tolist() == [2.0, 0.0, 1.0, 3.0, 4.0, 0.0]


def test_padding_stays_small_where_classes_differ_in_size():
    sizes = torch.tensor([1000, *[5] * 50])
    labels = torch.arange(51).repeat_interleave(sizes)
    layout = lay_out([(labels, torch.arange(51))], 51)
    assert layout.slots <= 2 * (len(labels) + 51)
    assert len(layout.buckets) == 2


def test_a_fit_of_one_domain_has_no_source_slots():
    layout = lay_out([(torch.empty(0, dtype=torch.int64), torch.tensor([2, 0]))], 3)
    assert layout.sizes == (0, 2)
    assert layout.classes().tolist() == [0, 2]
