from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from sohot.data import AugmentedImages, InputSpec, LabelledImages, UnreadableImage, to_tensor
from sohot.data import augment as module
from sohot.data.crops import draw_crops, random_crop
from sohot.data.random_views import STRONG, Strength
from sohot.data.readers import read_item

SPEC = InputSpec(size=8, mean=(0.5,) * 3, std=(0.5,) * 3, resize=9)
GREY = InputSpec(size=8, mean=(0.5,), std=(0.5,), resize=9)
CPU = torch.device("cpu")
ROWS = torch.tensor([3, 0, 6, 3])
WAYS = {
    "in memory": {"room": lambda: 1e9},
    "no room": {"room": lambda: 0},
    "part of them in memory": {"room": lambda: 3000, "workers": 0},
    "on the device": {"room": lambda: 0, "gpu": CPU, "gpu_room": lambda: 1e9},
    "sent to the device": {"room": lambda: 1e9, "gpu": CPU},
    "decoded and sent to the device": {"room": lambda: 0, "gpu": CPU, "workers": 0},
}


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> LabelledImages:
    tmp_path = tmp_path_factory.mktemp("images")
    random = np.random.default_rng(0)
    files = [tmp_path / f"{n}.png" for n in range(70)]
    for n, file in enumerate(files):
        Image.fromarray(random.integers(0, 256, (10 + n % 7, 14 - n % 5, 3), dtype=np.uint8)).save(file)
    return LabelledImages(files, [0] * 70, ["a"], tmp_path)


@pytest.fixture(params=WAYS)
def make(request: pytest.FixtureRequest) -> Callable[..., AugmentedImages]:
    """Make augmented images in each way; a processor stands in for the GPU."""
    return lambda images, spec=SPEC: AugmentedImages(images, spec, **{"workers": 2, **WAYS[request.param]})


@pytest.mark.parametrize("spec", [SPEC, GREY])
def test_every_way_gives_the_pictures_of_reading_anew(make: Callable, images: LabelledImages, spec: InputSpec) -> None:
    inputs = make(images, spec)
    for rows in (ROWS, torch.arange(70), ROWS):
        torch.manual_seed(5)
        found = inputs.batch(rows)
        numbers = draw_crops(len(rows), torch.Generator().manual_seed(5)).tolist()
        pictures = [read_item(images, row, spec.channels) for row in rows.tolist()]
        crops = [random_crop(*picture.size, own) for picture, own in zip(pictures, numbers, strict=True)]
        expected = torch.stack([to_tensor(*one) for one in zip(pictures, [spec] * len(rows), crops, strict=True)])
        if inputs.gpu is None:
            assert torch.equal(found, expected)
        else:
            torch.testing.assert_close(found, expected, rtol=0, atol=2.5 / 255 / 0.5)
            assert (found - expected).abs().mean() < 0.02 / 255 / 0.5


def test_what_is_drawn_decides(make: Callable, images: LabelledImages) -> None:
    inputs = make(images)
    drawn = inputs.draw(4)
    state = torch.get_rng_state()
    first = inputs.batch(ROWS, drawn)
    torch.testing.assert_close(inputs.batch(ROWS[2:], drawn[2:]), first[2:], rtol=0, atol=1e-6)
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.equal(inputs.batch(ROWS), first)
    assert not torch.equal(inputs.batch(ROWS), inputs.batch(ROWS))


def test_an_image_that_cannot_be_read_is_named(make: Callable, images: LabelledImages, tmp_path: Path) -> None:
    empty = tmp_path / "empty.png"
    empty.write_bytes(b"")
    damaged = replace(images, files=(*images.files[:6], empty, *images.files[7:]))
    with pytest.raises(UnreadableImage, match=r"empty\.png cannot be read: the file is empty"):
        make(damaged).batch(ROWS)


def test_bad_rows_are_named(make: Callable, images: LabelledImages) -> None:
    with pytest.raises(IndexError, match=r"rows must lie in 0 … 69, got 70"):
        make(images).batch(torch.tensor([70]))


@pytest.mark.parametrize("way", ["in memory", "on the device", "sent to the device"])
def test_files_are_read_once(images: LabelledImages, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    read, real = [], module.read_item
    monkeypatch.setattr(
        module, "read_item", lambda images, row, *a, **b: read.append(row) or real(images, row, *a, **b)
    )
    inputs = AugmentedImages(images, SPEC, **WAYS[way])
    for _ in range(3):
        inputs.batch(torch.arange(70))
    assert sorted(read) == list(range(70))


def test_weak_and_strong_views_share_pictures_and_rows(
    make: Callable, images: LabelledImages, monkeypatch: pytest.MonkeyPatch
) -> None:
    weak = make(images)
    strong, nothing = weak.views(STRONG), weak.views(Strength(0, 0, 0, 0, 0, 0))
    drawn = strong.draw(4)
    torch.testing.assert_close(nothing.batch(ROWS, drawn), weak.batch(ROWS, drawn[:, :5]), rtol=0, atol=0)
    changed = strong.batch(ROWS, drawn)
    assert (changed - weak.batch(ROWS, drawn[:, :5])).abs().mean() > 0.05
    some = weak.views(STRONG, ROWS.tolist())
    assert len(some) == 4
    torch.testing.assert_close(some.batch(torch.tensor([2, 0]), drawn[[2, 0]]), changed[[2, 0]], rtol=0, atol=1e-6)
    with pytest.raises(IndexError, match=r"rows must lie in 0 … 3, got 4"):
        some.batch(torch.tensor([4]))
    if weak._pictures._kept.get(3) is not None or weak._on_gpu.get(3) is not None:
        monkeypatch.setattr(module, "read_item", lambda *_, **__: pytest.fail("decoded again"))
        strong.batch(torch.tensor([3]))


@pytest.mark.parametrize("file", ["large.png", "large.jpg"])
def test_large_pictures_are_kept_smaller_and_show_the_same(tmp_path: Path, file: str) -> None:
    across, down = np.meshgrid(np.linspace(0, 255, 600), np.linspace(0, 255, 400))
    picture = Image.fromarray(np.stack([across, down, 255 - across], axis=-1).astype(np.uint8))
    picture.save(tmp_path / file)
    inputs = AugmentedImages(LabelledImages([tmp_path / file], [0], ["a"]), SPEC, lambda: 4 * 60 * 40)
    drawn = inputs.draw(1)
    found = inputs.batch(torch.tensor([0]), drawn)
    expected = to_tensor(picture, SPEC, random_crop(*picture.size, drawn[0].tolist()))
    assert (found[0] - expected).abs().max() < 0.1
    (tmp_path / file).unlink()
    assert torch.equal(inputs.batch(torch.tensor([0]), drawn), found)
