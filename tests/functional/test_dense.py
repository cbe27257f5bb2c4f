"""The form without a layout by class, for CUDA graphs, gives what the usual one gives."""

import pytest
import torch

from sohot.functional.dense import dense_gram
from sohot.functional.gram import _dense, signed_gram
from sohot.functional.row_weights import RowWeights


def problem(seed, classes=4):
    """Classes of unequal sizes, one missing from each domain, one with a single row."""
    torch.manual_seed(seed)
    source_labels = torch.tensor([0] * 5 + [1] * 3 + [2] + [3] * 4)[torch.randperm(13)]
    target_labels = torch.tensor([0] * 2 + [1] * 3 + [2] * 2)[torch.randperm(7)]
    source, target = torch.randn(13, 6, dtype=torch.float64), torch.randn(7, 6, dtype=torch.float64) + 0.5
    weights = torch.rand(4, classes, dtype=torch.float64)
    return source, source_labels, target, target_labels, weights


@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scale", [0.0, 1.0, 2.5])
def test_it_equals_the_form_by_class(unbiased, weighted, scale):
    *data, weights = problem(3)
    given = None
    if weighted:
        given = RowWeights(torch.rand(13, dtype=torch.float64), torch.rand(7, dtype=torch.float64))
        given.source[2], given.target[4] = 0.0, 0.0
    rest = weights, [2, 3, 4], unbiased, torch.tensor(scale, dtype=torch.float64), True, given
    usual, dense = signed_gram(*data, *rest), _dense(*data, *rest)
    for one, other in zip(usual, dense, strict=True):
        assert torch.allclose(one, other, rtol=1e-9, atol=1e-11)


def test_domains_without_a_common_class_give_zero():
    source, _, target, _, weights = problem(0)
    labels = torch.zeros(13, dtype=torch.int64), torch.ones(7, dtype=torch.int64)
    rest = weights[:2], [2], False, torch.ones(()), True, None
    found = _dense(source, labels[0], target, labels[1], *rest)
    assert all(float(x.abs().max()) == 0 for x in found)


def test_too_many_rows_are_refused():
    rows, labels = torch.zeros(9000, 1), torch.zeros(9000, dtype=torch.int64)
    with pytest.raises(ValueError, match="18000 rows are too many to be aligned in a CUDA graph"):
        dense_gram(rows, labels, rows, labels, 1, [2], False, None)
