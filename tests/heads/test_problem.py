"""Problems of rows: what is refused, and what they share."""

from dataclasses import replace

import pytest
import torch
from made_up_problems import problem

from sohot.heads import FeatureProblem
from sohot.methods import HeadSettings

GOOD = problem(dtype=torch.float32)


@pytest.mark.parametrize(
    ("changes", "error", "sentence"),
    [
        ({"num_classes": 0}, ValueError, "num_classes must be an integer of at least 1, got 0"),
        ({"source": GOOD.source[0]}, ValueError, r"source must have the shape \(rows, features\)"),
        ({"target": GOOD.target.long()}, TypeError, "target must hold floating-point numbers"),
        ({"target": GOOD.target / 0}, ValueError, "target holds NaN or infinite values in 9 of its 9 rows"),
        ({"source_labels": GOOD.source_labels[:2]}, ValueError, "source_labels must hold one label per row of source"),
        ({"source_labels": GOOD.source_labels.tolist()}, TypeError, "source_labels must be a torch.Tensor, got list"),
        ({"target_labels": GOOD.target_labels + 1}, ValueError, r"target_labels must lie in 0 … 2 .*, got 3"),
        ({"target_rows": torch.tensor([9])}, ValueError, "target_rows must be row numbers of target in 0 … 8"),
        ({"source_rows": torch.tensor([0.5])}, TypeError, "source_rows must hold integers"),
        ({"source_rows": torch.tensor([0, 1])}, ValueError, "source_labels must hold one label per row of source"),
    ],
)
def test_bad_problems_get_one_sentence(changes, error, sentence):
    with pytest.raises(error, match=sentence):
        replace(GOOD, **changes)


def test_precision_is_that_of_the_features():
    assert GOOD.dtype == torch.float32
    assert replace(GOOD, source=GOOD.source.half(), target=GOOD.target.half()).dtype == torch.float32
    assert replace(GOOD, source=GOOD.source.double()).dtype == torch.float64


def test_problems_of_one_tensor_share_its_memory():
    features, labels = torch.randn(10, 4), torch.arange(10) % 2
    found = FeatureProblem.from_rows(features, labels, torch.arange(6), torch.arange(6, 10), 2)
    assert found.source is found.target is features
    assert found.sizes == (6, 4)


def test_settings_survive_json():
    settings = HeadSettings(method="so+to", sigma1=(0.1, 0.2), orders=(2, 5), hidden=4)
    assert HeadSettings.from_json(settings.as_json()) == settings
    with pytest.raises(ValueError, match="unknown settings: 'sigma3'"):
        HeadSettings.from_json({"sigma3": 1})
