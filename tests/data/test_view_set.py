"""Fixed views: each depends on the seed and on the image's own name alone."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from sohot.data import InputSpec, LabelledImages, UnreadableImage, load_batch
from sohot.data import view_set as module
from sohot.data.random_views import STRONG, Strength
from sohot.data.view_set import ViewSet, iter_views

SPEC = InputSpec(size=8, mean=(0.5,) * 3, std=(0.5,) * 3, resize=9)
VIEWS = ViewSet(seed=3, each=3)


@pytest.fixture
def images(tmp_path: Path) -> LabelledImages:
    random = np.random.default_rng(0)
    files = [tmp_path / f"{n}.png" for n in range(5)]
    for n, file in enumerate(files):
        Image.fromarray(random.integers(0, 256, (10 + n, 14 - n, 3), dtype=np.uint8)).save(file)
    return LabelledImages(files, [0] * 5, ["a"], tmp_path)


def all_views(images: LabelledImages, views: ViewSet = VIEWS, batch: int = 2, workers: int = 0) -> torch.Tensor:
    return torch.cat(list(iter_views(images, SPEC, views, batch, workers)))


def test_views_depend_on_seed_and_name_alone(images: LabelledImages) -> None:
    found = all_views(images)
    assert found.shape == (5, 6, 3, 8, 8)
    order = [4, 0, 2]
    assert torch.equal(all_views(images.subset(order), batch=3, workers=2), found[order])
    assert torch.equal(all_views(images, ViewSet(3, 3, None)), found[:, :3])
    assert torch.equal(all_views(images, ViewSet(3, 1, None)), found[:, :1])
    assert torch.equal(all_views(images, ViewSet(3, 2))[:, [0, 1, 2, 3]], found[:, [0, 1, 3, 4]])
    other = all_views(images, ViewSet(4, 3))
    assert torch.equal(other[:, 0], found[:, 0])
    assert all(not torch.equal(other[:, view], found[:, view]) for view in range(1, 6))
    elsewhere = LabelledImages(images.files, images.labels, images.classes, images.root.parent)
    assert not torch.equal(all_views(elsewhere)[:, 1:], found[:, 1:])


def test_the_first_view_is_the_plain_one_and_all_others_differ(images: LabelledImages) -> None:
    found = all_views(images)
    assert torch.equal(found[:, VIEWS.of("plain")][:, 0], load_batch(images, range(5), SPEC))
    for own in found:
        assert len({view.numpy().tobytes() for view in own}) == 6


def test_strong_views_without_strength_are_crops_without_squares(images: LabelledImages) -> None:
    blank = [
        (all_views(images, ViewSet(3, 3, strength))[:, 3:] == 0).float().mean()
        for strength in (Strength(0, 0, 0, 0, 0, 0), STRONG)
    ]
    assert blank[0] < 0.01 < blank[1]


def test_numbers_are_spread_evenly() -> None:
    drawn = torch.tensor([ViewSet(0, 1).numbers(f"{n}.png", "strong", 0) for n in range(500)])
    even = torch.linspace(0, 1, 500)[:, None]
    assert (drawn.sort(0).values - even).abs().max() < 0.11  # Kolmogorov-Smirnov, one in a hundred thousand
    assert (drawn.T.corrcoef() - torch.eye(13)).abs().max() < 0.2


def test_each_image_is_decoded_once(images: LabelledImages, monkeypatch: pytest.MonkeyPatch) -> None:
    read, real = [], module.read_item
    monkeypatch.setattr(
        module, "read_item", lambda images, row, *a, **b: read.append(row) or real(images, row, *a, **b)
    )
    all_views(images)
    assert read == list(range(5))


@pytest.mark.parametrize("workers", [0, 2])
def test_an_image_that_cannot_be_read_is_named(images: LabelledImages, workers: int) -> None:
    images.files[3].write_bytes(b"")
    with pytest.raises(UnreadableImage, match=r"3\.png cannot be read: the file is empty"):
        all_views(images, workers=workers)
