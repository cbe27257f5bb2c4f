import pytest
import torch

from sohot.data import handwritten_digits
from sohot.experiments.digit_splits import HALVES, SHOTS, content_hash, draw_split, handwritten_half


def contents(images: torch.Tensor) -> set[bytes]:
    return {content_hash(image) for image in images}


def test_the_halves_are_disjoint_and_together_all_there_is() -> None:
    development, demo = (contents(handwritten_half(half)[0]) for half in HALVES)
    assert not development & demo
    assert development | demo == contents(handwritten_digits()[0])
    assert min(len(development), len(demo)) > 800


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("split", range(3))
def test_no_image_both_trains_and_tests_and_all_are_of_the_half(half: str, split: int) -> None:
    data = draw_split(split, half=half)
    train, test = contents(data.target), contents(data.test)
    assert not train & test
    assert train | test == contents(handwritten_half(half)[0])
    assert torch.bincount(data.target_labels).tolist() == [SHOTS] * 10


def test_labels_stay_with_their_images() -> None:
    truth = {content_hash(image): int(label) for image, label in zip(*handwritten_digits(), strict=True)}
    data = draw_split(1)
    for images, labels in ((data.target, data.target_labels), (data.test, data.test_labels)):
        assert [truth[content_hash(image)] for image in images] == labels.tolist()


def test_a_split_repeats_and_others_differ() -> None:
    first, again, other, seeded = draw_split(0), draw_split(0), draw_split(1), draw_split(0, seed=1)
    assert first.target.equal(again.target)
    assert first.source.equal(again.source)
    for different in (other, seeded):
        assert not first.target.equal(different.target)
        assert not first.source.equal(different.source)


def test_a_tiny_difference_from_rounding_does_not_change_the_hash() -> None:
    image = handwritten_digits()[0][0]
    assert content_hash(image) == content_hash(image + 1e-6)
    assert content_hash(image) != content_hash(image + 1 / 256)


def test_an_unknown_half_is_named() -> None:
    with pytest.raises(ValueError, match="half must be one of"):
        draw_split(0, half="test")
