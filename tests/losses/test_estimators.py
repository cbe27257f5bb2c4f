"""What the plug-in and the unbiased estimate say of two samples of one population."""

import pytest
import torch

from sohot import ScatterAlignment
from sohot.functional import scatter_alignment

DRAWS, ROWS, TARGET_ROWS, SIZE = 4000, 8, 3, 4


def draws_of_equal_populations() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Many classes, each a draw of one skewed population for both domains."""
    source = torch.distributions.Exponential(1.0).sample((DRAWS * ROWS, SIZE)).double()
    target = torch.distributions.Exponential(1.0).sample((DRAWS * TARGET_ROWS, SIZE)).double()
    classes = torch.arange(DRAWS)
    return source, classes.repeat_interleave(ROWS), target, classes.repeat_interleave(TARGET_ROWS)


@pytest.mark.parametrize("term", [0, 1, 2, 3], ids=["means", "order2", "order3", "order4"])
def test_only_the_unbiased_estimate_is_zero_on_average(term: int) -> None:
    data = draws_of_equal_populations()
    z_scores = {}
    for estimator in ("plugin", "unbiased"):
        values = scatter_alignment(*data, num_classes=DRAWS, orders=(2, 3, 4), estimator=estimator).distances[term]
        z_scores[estimator] = float(values.mean() / (values.std() / DRAWS**0.5))
    assert abs(z_scores["unbiased"]) < 3.5
    assert z_scores["plugin"] > 5


def test_the_unbiased_estimate_sees_a_real_difference() -> None:
    labels = torch.zeros(800, dtype=torch.long)
    same, wide = torch.randn(800, 3).double(), 2 * torch.randn(800, 3).double()
    plugin, unbiased = (
        ScatterAlignment(1, sigma2=0.0, estimator=estimator)(same, labels, wide, labels)
        for estimator in ("plugin", "unbiased")
    )
    torch.testing.assert_close(plugin.item(), 27.0, rtol=0.2, atol=0)  # covariances I and 4 I: ‖3 I‖² = 27
    torch.testing.assert_close(unbiased, plugin, rtol=0.02, atol=0)


def test_the_unbiased_means_estimate_the_squared_distance_of_the_population_means() -> None:
    source = torch.randn(40000, 2).double()
    target = torch.randn(20000, 2).double() + torch.tensor([1.0, 0.0])
    classes = torch.arange(5000)
    align = ScatterAlignment(5000, estimator="unbiased", sigma1=0.0)
    loss = align(source, classes.repeat_interleave(8), target, classes.repeat_interleave(4))
    torch.testing.assert_close(loss.item(), 1.0, rtol=0.1, atol=0)


def test_the_plug_in_prefers_a_shrunken_target_and_the_unbiased_one_does_not() -> None:
    """Three target rows of the same population: the plug-in loss is lowest far from their true size."""
    torch.manual_seed(0)
    classes = torch.arange(1000)
    source, target = torch.randn(20000, 30).double(), torch.randn(3000, 30).double()
    labels = classes.repeat_interleave(20), classes.repeat_interleave(3)
    scales = [0.3, 0.5, 0.8, 1.0, 1.2]
    best = {}
    for estimator in ("plugin", "unbiased"):
        align = ScatterAlignment(1000, sigma2=0.0, estimator=estimator)
        losses = [align(source, labels[0], scale * target, labels[1]).item() for scale in scales]
        best[estimator] = scales[losses.index(min(losses))]
    assert best["plugin"] <= 0.5
    assert best["unbiased"] >= 0.8
