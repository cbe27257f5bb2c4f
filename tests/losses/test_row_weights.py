"""Weights of rows in the losses of other papers: laws that hold for all of them, and where one does not."""

from typing import Any

import pytest
import torch
from domain_losses import LOSSES, SCALED, draw
from torch import Tensor

from sohot.losses import SupervisedContrastive, domain_labels

each_loss = pytest.mark.parametrize("name", LOSSES)


def weights_for(seed: int = 1) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    source, target = (0.1 + 0.9 * torch.rand(n, generator=generator).double() for n in (14, 7))
    return {"source_weights": source, "target_weights": target}


def new_loss(name: str) -> torch.nn.Module:
    """With the scale of the first batch, so that its spread counts too."""
    return LOSSES[name](**({"feature_scale": "initial"} if name in SCALED else {})).double()


def value_and_slopes(name: str, data: tuple[Tensor, ...], **weights: Tensor) -> tuple[Tensor, ...]:
    features = [data[k].detach().clone().requires_grad_() for k in (0, 2)]
    loss = new_loss(name)
    value = loss(features[0], data[1], features[1], data[3], **weights)
    return value, loss.scale, *torch.autograd.grad(value, features)


@each_loss
def test_weight_0_leaves_a_row_out(name: str) -> None:
    data, weights = draw(), weights_for()
    weights["source_weights"][::3] = 0
    weights["target_weights"][data[3] == 1] = 0  # a whole class
    kept = weights["source_weights"] > 0, weights["target_weights"] > 0
    rest = data[0][kept[0]], data[1][kept[0]], data[2][kept[1]], data[3][kept[1]]
    left = {key: w[own] for (key, w), own in zip(weights.items(), kept, strict=True)}
    found, expected = value_and_slopes(name, data, **weights), value_and_slopes(name, rest, **left)
    torch.testing.assert_close(found[:2], expected[:2])
    for slope, of_rest, own in zip(found[2:], expected[2:], kept, strict=True):
        torch.testing.assert_close(slope[own], of_rest)
        assert not slope[~own].any()


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "supcon"])  # whose copies would find each other
def test_whole_numbers_repeat_rows(name: str) -> None:
    data = draw()
    times = torch.tensor([1, 2, 3] * 5)[:14], torch.tensor([2, 1, 1, 3, 1, 2, 1])  # the lone row of class 2 stays one
    again = [x.repeat_interleave(times[k // 2], 0) for k, x in enumerate(data)]
    found = value_and_slopes(name, data, source_weights=times[0], target_weights=times[1])
    torch.testing.assert_close(found[:2], value_and_slopes(name, tuple(again))[:2])


@each_loss
def test_a_common_factor_changes_nothing(name: str) -> None:
    data, weights = draw(), weights_for()
    scaled = {key: 7.3 * w for key, w in weights.items()}
    torch.testing.assert_close(value_and_slopes(name, data, **scaled), value_and_slopes(name, data, **weights))


@each_loss
def test_equal_weights_are_none_bit_for_bit(name: str) -> None:
    source, ys, target, yt = draw()
    data = source.float(), ys, target.float(), yt
    expected = value_and_slopes(name, data)
    weights = {"source_weights": torch.full((14,), 0.3), "target_weights": torch.full((7,), 0.3)}
    assert all(map(torch.equal, value_and_slopes(name, data, **weights), expected))
    if name != "supcon":  # which compares rows of both domains with each other
        loss = LOSSES[name]()
        assert loss(*data) == loss(*data, target_weights=weights["target_weights"])


@each_loss
def test_the_gradient_is_that_of_finite_differences(name: str) -> None:
    source, ys, target, yt = draw(size=2)
    loss, weights = LOSSES[name](), weights_for()
    weights["target_weights"][0] = 0
    inputs = source.requires_grad_(), target.requires_grad_()
    assert torch.autograd.gradcheck(lambda x, y: loss(x, ys, y, yt, **weights), inputs, fast_mode=True)
    assert torch.autograd.gradgradcheck(lambda x, y: loss(x, ys, y, yt, **weights), inputs, fast_mode=True)


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "variance"])  # which has no pairs
def test_many_rows_part_by_part(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data, weights = draw(), weights_for()
    weights["source_weights"][3] = 0
    expected = value_and_slopes(name, data, **weights)
    monkeypatch.setattr(domain_labels, "MOST_PAIRS", 0)
    monkeypatch.setattr(domain_labels, "PAIRS_OF_PART", 60)
    torch.testing.assert_close(value_and_slopes(name, data, **weights), expected)


def test_supcon_weighs_the_sum_of_its_softmax_and_both_means() -> None:
    source, ys, target, yt = draw()
    weights = weights_for()
    rows, labels = torch.nn.functional.normalize(torch.cat([source, target]), dim=1), torch.cat([ys, yt])
    w = torch.cat(list(weights.values()))
    w = w / w.max()  # otherwise a factor of all weights would add its logarithm
    similarity, total, anchors = (rows @ rows.T) / 0.1, 0.0, 0.0
    for k in range(21):
        others = torch.arange(21) != k
        partners = others & (labels == labels[k])
        if partners.any():
            shares = similarity[k] - (w[others] * similarity[k][others].exp()).sum().log()
            total -= w[k] * (w[partners] * shares[partners]).sum() / w[partners].sum()
            anchors += w[k]
    found = SupervisedContrastive(4, weight=1.0)(source, ys, target, yt, **weights)
    torch.testing.assert_close(found, total / anchors)


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        ({"source_weights": torch.ones(3)}, r"source_weights must hold one weight per row of source: .* got \(3,\)"),
        (
            {"target_weights": -torch.ones(7)},
            "target_weights must hold finite numbers of at least 0, got -1.0 in row 0",
        ),
        ({"target_weights": torch.full((7,), torch.nan)}, "target_weights must .* got nan in row 0"),
    ],
    ids=["shape", "negative", "nan"],
)
def test_nonsense_gets_one_sentence(weights: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        LOSSES["ccsa"]()(*draw(), **weights)
