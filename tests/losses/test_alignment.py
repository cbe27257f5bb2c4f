"""ScatterAlignment: every option of it, on examples a user would try."""

import pytest
import torch
from hypothesis import given
from oracle import alignment, batch, batches
from torch import Tensor

from sohot import ScatterAlignment
from sohot.functional import scatter_alignment

Batch = tuple[Tensor, Tensor, Tensor, Tensor]
SIZES = ([4, 3, 0, 5, 1, 2], [2, 3, 4, 1, 3, 2])


@given(data=batches())
def test_equals_the_oracle(data: Batch) -> None:
    align = ScatterAlignment(4, orders=(2, 3), sigma1=0.3, sigma2=0.7)
    torch.testing.assert_close(align(*data), alignment(*data, orders=(2, 3), sigma1=0.3, sigma2=0.7))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"orders": (2, 3, 4)},
        {"orders": (2, 3), "class_weights": "learned"},
        {"orders": (2, 3), "class_weights": "closed-form", "alpha1": 30.0, "alpha2": 3.0},
        {"scope": "marginal"},
        {"scope": "marginal", "orders": (2, 3), "class_weights": "learned"},
        {"estimator": "unbiased", "orders": (2, 3)},
        {"sigma1": (0.5, 0.1), "orders": (2, 4)},
    ],
    ids=str,
)
def test_gradcheck(options: dict) -> None:
    source, source_labels, target, target_labels = batch(0, *SIZES, size=2)
    align = ScatterAlignment(6, **options).double()
    for parameter in align.parameters():
        torch.nn.init.uniform_(parameter, 0.2, 2.0)

    def loss(source: Tensor, target: Tensor, *_: Tensor) -> Tensor:
        return align(source, source_labels, target, target_labels)

    features = (source.mul_(0.5).requires_grad_(), target.mul_(0.5).requires_grad_())
    assert torch.autograd.gradcheck(loss, (*features, *align.parameters()))


def test_parts_add_up_to_the_loss() -> None:
    align = ScatterAlignment(6, orders=(2, 4), class_weights="learned")
    torch.nn.init.uniform_(align.weights.raw_zeta, 0, 2)
    loss, parts = align(*batch(0, *SIZES), return_parts=True)
    assert list(parts) == ["means", "order2", "order4", "weight_penalty"]
    torch.testing.assert_close(sum(parts.values()), loss.detach(), check_dtype=False)
    assert not any(part.requires_grad for part in parts.values())


def test_marginal_is_one_class_and_needs_no_labels() -> None:
    source, source_labels, target, target_labels = batch(0, *SIZES)
    align = ScatterAlignment(6, scope="marginal")
    one = torch.zeros(len(source), dtype=torch.long), torch.zeros(len(target), dtype=torch.long)
    expected = alignment(source, one[0], target, one[1])
    torch.testing.assert_close(align(source, source_labels, target, target_labels), expected)
    torch.testing.assert_close(align(source, None, target, None), expected)


def test_a_sigma_for_each_order() -> None:
    data = batch(0, *SIZES)
    both = ScatterAlignment(6, (2, 4), sigma1=(0.5, 0.1))(*data)
    halves = [ScatterAlignment(6, (order,), sigma1=s, sigma2=1.0) for order, s in ((2, 0.25), (4, 0.05))]
    means = ScatterAlignment(6, (2,), sigma1=0.0)(*data)
    torch.testing.assert_close(both, halves[0](*data) + halves[1](*data) - means)


def test_initial_scale_is_fixed_by_the_first_call() -> None:
    data = batch(0, *SIZES)
    align = ScatterAlignment(6, (2, 3), feature_scale="initial").double()
    spread = scatter_alignment(*data, num_classes=6).spread
    expected = ScatterAlignment(6, (2, 3))(data[0] / spread, data[1], data[2] / spread, data[3])
    torch.testing.assert_close(align(*data), expected)
    torch.testing.assert_close(align.scale, spread)
    torch.testing.assert_close(
        align(5 * data[0], data[1], 5 * data[2], data[3], return_parts=True)[1]["order2"],
        5**4 * align(*data, return_parts=True)[1]["order2"],
    )
    torch.testing.assert_close(align.scale, spread)


def test_initial_scale_is_part_of_the_saved_state() -> None:
    data = batch(0, *SIZES)
    align, fresh = (ScatterAlignment(6, feature_scale="initial") for _ in range(2))
    align(*data)
    fresh.load_state_dict(align.state_dict())
    big = 7 * data[0], data[1], 7 * data[2], data[3]
    torch.testing.assert_close(fresh(*big), align(*big))


def test_initial_scale_waits_for_a_batch_that_has_a_spread() -> None:
    align = ScatterAlignment(2, feature_scale="initial")
    align(torch.randn(3, 2), torch.tensor([0, 0, 0]), torch.randn(2, 2), torch.tensor([1, 1]))
    assert align.scale == 0
    align(*batch(0, [3, 3], [2, 2], dtype=torch.float32))
    assert align.scale > 0


def test_unit_scale_follows_the_features_in_training_only() -> None:
    data = batch(0, [5] * 6, [5] * 6)
    big = 3 * data[0], data[1], 3 * data[2], data[3]
    align = ScatterAlignment(6, feature_scale="unit").double()
    align(*data)
    first = align.scale.clone()
    align.eval()
    align(*big)
    assert torch.equal(align.scale, first)
    align.train()
    align(*big)
    torch.testing.assert_close(align.scale, 0.9 * first + 0.1 * 3 * first)
    for _ in range(200):
        align(*big)
    torch.testing.assert_close(align(*big), ScatterAlignment(6, feature_scale="initial").double()(*big))


def test_labels_of_any_integer_type() -> None:
    data = batch(0, *SIZES)
    align = ScatterAlignment(6)
    for dtype in (torch.int32, torch.int16, torch.uint8):
        torch.testing.assert_close(align(data[0], data[1].to(dtype), data[2], data[3].to(dtype)), align(*data))


def test_training_with_it_brings_the_scatters_together() -> None:
    source, source_labels, target, target_labels = batch(0, [20], [10], size=2, dtype=torch.float32)
    mapping = torch.nn.Linear(2, 2)
    align = ScatterAlignment(1, orders=(2,), feature_scale="initial")
    optimizer = torch.optim.SGD(mapping.parameters(), lr=0.05)
    losses = []
    for _ in range(200):
        loss = align(source, source_labels, mapping(target), target_labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.01 * losses[0]


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"num_classes": 0}, ValueError, "num_classes must be an integer of at least 1, got 0"),
        ({"num_classes": 2.5}, ValueError, "num_classes must be an integer"),
        ({"orders": (1,)}, ValueError, "each of orders must be at least 2"),
        ({"orders": ()}, ValueError, "orders must name at least one order; for the means alone pass sigma1=0"),
        ({"orders": (2, 2)}, ValueError, "orders must not repeat"),
        ({"orders": 2}, TypeError, "orders must be a sequence of integers"),
        ({"orders": (2.0,)}, TypeError, "each of orders must be an integer"),
        ({"sigma1": -1.0}, ValueError, "sigma1 must be a finite number of at least 0, got -1.0"),
        ({"sigma1": (1.0, 2.0)}, ValueError, r"sigma1 must hold one number for each of the orders \(2,\), got 2"),
        ({"sigma2": float("nan")}, ValueError, "sigma2 must be a finite number"),
        ({"sigma2": "big"}, TypeError, "sigma2 must be a number"),
        ({"alpha1": -0.1}, ValueError, "alpha1 must be"),
        ({"alpha2": -0.1}, ValueError, "alpha2 must be"),
        ({"most_rows": 0}, ValueError, "most_rows must be an integer of at least 1, got 0"),
        ({"class_weights": "yes"}, ValueError, "class_weights, if given, must be one of 'learned', 'closed-form'"),
        ({"scope": "all"}, ValueError, "scope must be one of 'class', 'marginal'"),
        ({"estimator": "best"}, ValueError, "estimator must be one of 'plugin', 'unbiased'"),
        ({"feature_scale": "auto"}, ValueError, "feature_scale must be one of 'none', 'initial', 'unit'"),
        ({"num_sources": 0}, ValueError, "num_sources must be"),
    ],
    ids=str,
)
def test_bad_settings_get_one_sentence(options: dict, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        ScatterAlignment(**{"num_classes": 3, **options})


ROWS, LABELS = torch.zeros(4, 2), torch.tensor([0, 1, 2, 0])


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ((ROWS[0], LABELS, ROWS, LABELS), ValueError, r"source must have the shape \(rows, features\), got \(2,\)"),
        ((ROWS, LABELS, torch.zeros(4, 3), LABELS), ValueError, "same number of features, got 2 and 3"),
        ((ROWS, LABELS[:3], ROWS, LABELS), ValueError, r"source_labels .* expected the shape \(4,\), got \(3,\)"),
        ((ROWS, LABELS, ROWS, LABELS.float()), TypeError, "target_labels must hold integers, got torch.float32"),
        ((ROWS, LABELS > 0, ROWS, LABELS), TypeError, "source_labels must hold integers, got torch.bool"),
        ((ROWS, LABELS + 1, ROWS, LABELS), ValueError, r"source_labels must lie in 0 … 2 \(num_classes=3\), got 3"),
        ((ROWS, LABELS, ROWS, LABELS - 1), ValueError, "target_labels must lie in 0 … 2 .*, got -1"),
        ((ROWS / 0, LABELS, ROWS, LABELS), ValueError, "source holds NaN .* in 4 of its 4 rows"),
        ((ROWS, LABELS, ROWS[:0], LABELS[:0]), ValueError, "target is empty"),
        ((ROWS.tolist(), LABELS, ROWS, LABELS), TypeError, "source.* must be a .*torch.Tensor|list"),
        (
            (ROWS.numpy(), LABELS, ROWS, LABELS),
            TypeError,
            "source must be a torch.Tensor or a list of them, got ndarray",
        ),
        ((ROWS, None, ROWS, LABELS), ValueError, "source_labels and target_labels are required unless"),
        ((ROWS, LABELS.tolist(), ROWS, LABELS), TypeError, "source_labels must be a torch.Tensor, got list"),
        ((ROWS.long(), LABELS, ROWS, LABELS), TypeError, "source must hold floating-point numbers"),
        ((ROWS, LABELS, ROWS + 1j, LABELS), TypeError, "target must hold floating-point numbers, got torch.complex64"),
        ((ROWS.to_sparse(), LABELS, ROWS, LABELS), TypeError, "source must be a dense tensor, got torch.sparse_coo"),
        ((ROWS, LABELS, ROWS.to("meta"), LABELS), ValueError, "source is on cpu but target is on meta"),
    ],
)
def test_bad_batches_get_one_sentence(arguments: tuple, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        ScatterAlignment(3)(*arguments)


@pytest.mark.parametrize("arguments", [(None, ROWS), (ROWS, None), ([ROWS, "x"], ROWS), ("x", ROWS)], ids=str)
def test_whole_domains_that_are_no_tensors_get_one_sentence(arguments: tuple) -> None:
    with pytest.raises(TypeError, match=r"source.* must (be a|hold) torch\.Tensor"):
        ScatterAlignment(3, scope="marginal")(arguments[0], None, arguments[1], None)


def test_a_single_nan_is_found_and_named_even_in_a_class_without_a_partner() -> None:
    source = torch.randn(4, 2)
    source[2, 1] = torch.nan
    with pytest.raises(ValueError, match=r"source holds NaN .* in 1 of its 4 rows, first in row 2"):
        ScatterAlignment(3)(source, LABELS, torch.randn(2, 2), torch.tensor([0, 1]))


def test_the_look_at_values_can_be_switched_off() -> None:
    source = torch.full((4, 2), torch.nan)
    assert torch.isnan(ScatterAlignment(3, check_values=False)(source, LABELS, ROWS, LABELS))
