import pytest
import torch
from torch import Tensor

from sohot.data import font_digits, handwritten_digits
from sohot.data.digits import SIDE


def centroid_accuracy(images: Tensor, labels: Tensor) -> float:
    """Share of images that are most like the mean printed digit of their class."""
    printed, digits = font_digits(40, seed=0)
    centroids = torch.stack([printed[digits == digit].flatten(1).mean(0) for digit in range(10)])
    scores = images.flatten(1) @ torch.nn.functional.normalize(centroids).T
    return float((scores.argmax(1) == labels).float().mean())


@pytest.mark.parametrize("domain", ["printed", "handwritten"])
def test_form(domain: str) -> None:
    images, labels = font_digits(7, seed=3) if domain == "printed" else handwritten_digits()
    assert images.shape == (70 if domain == "printed" else 1797, 1, SIDE, SIDE)
    assert (images.dtype, labels.dtype) == (torch.float32, torch.int64)
    assert images.min() == 0
    assert 0.9 < images.max() <= 1
    assert images.isfinite().all()
    assert set(labels.tolist()) == set(range(10))


def test_printed_digits_are_balanced_and_repeat_with_their_seed() -> None:
    (first, labels), (again, _), (other, _) = (font_digits(5, seed) for seed in (1, 1, 2))
    assert torch.bincount(labels).tolist() == [5] * 10
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_every_printed_digit_can_be_seen() -> None:
    images, _ = font_digits(60, seed=0)
    ink = images.flatten(1).sum(1)
    assert ink.min() > 8
    assert images[:, :, 4:12, 4:12].flatten(1).amax(1).min() > 0.4  # white on black, in the middle


def test_both_domains_are_upright_white_on_black_and_unlike() -> None:
    images, labels = handwritten_digits()
    accuracy = centroid_accuracy(images, labels)
    assert 0.5 < accuracy < 0.9  # the same digits, and yet a shift to bridge
    for spoiled in (images.flip(2), images.flip(3), images.transpose(2, 3), 1 - images):
        assert centroid_accuracy(spoiled, labels) < accuracy - 0.2


@pytest.mark.parametrize("count", [0, -1, 2.5, True])
def test_bad_input_is_named(count: int) -> None:
    with pytest.raises(ValueError, match="n_per_class must be an integer of at least 1"):
        font_digits(count, seed=0)
