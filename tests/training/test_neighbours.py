"""Neighbours: the most similar directions, whatever the order, the length and the number of rows."""

import torch

from sohot.training import neighbours
from sohot.training.neighbours import nearest_rows


def features(rows=40, size=5):
    return torch.randn(rows, size, generator=torch.Generator().manual_seed(0))


def test_neighbours_are_the_most_similar_others():
    found, rows = nearest_rows(features(), 3), torch.nn.functional.normalize(features(), dim=1)
    for own, others in enumerate(found.tolist()):
        alike = (rows @ rows[own]).tolist()
        ranked = sorted((row for row in range(40) if row != own), key=lambda row: -alike[row])
        assert others == [own, *ranked[:3]]


def test_shuffled_rows_have_the_same_neighbours():
    order = torch.randperm(40, generator=torch.Generator().manual_seed(2))
    shuffled = order[nearest_rows(features()[order], 3)]
    assert torch.equal(shuffled, nearest_rows(features(), 3)[order])


def test_rows_are_taken_in_parts(monkeypatch):
    whole = nearest_rows(features(), 4)
    monkeypatch.setattr(neighbours, "_AT_ONCE", 7)
    assert torch.equal(nearest_rows(features(), 4), whole)


def test_of_many_rows_some_are_neighbours(monkeypatch):
    monkeypatch.setattr(neighbours, "MOST_ROWS", 10)
    found = nearest_rows(features(), 2)
    assert found[:, 0].tolist() == list(range(40))
    assert set(found[:, 1:].flatten().tolist()) <= set(range(0, 40, 4))
    assert not (found[:, 1:] == found[:, :1]).any()


def test_copies_are_neighbours_of_each_other():
    rows = torch.cat([features(), features()])
    assert torch.equal(nearest_rows(rows, 1)[:, 1], (torch.arange(80) + 40) % 80)


def test_few_rows_have_few_neighbours():
    assert nearest_rows(features(1), 5).tolist() == [[0]]
    assert nearest_rows(features(3), 5).shape == (3, 3)
