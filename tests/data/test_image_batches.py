import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from sohot.data import (
    ImageInputs,
    InputSpec,
    LabelledImages,
    UnreadableImage,
    image_batches,
    iter_batches,
    load_batch,
    scan_folder,
)
from sohot.data.image_batches import load_image

MakeFolder = Callable[..., Path]

SPEC = InputSpec(size=8, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5), resize=8)


@pytest.fixture
def images(make_folder: MakeFolder) -> LabelledImages:
    root = make_folder({name: [f"{n}.png" for n in range(5)] for name in ("mug", "pen")})
    return scan_folder(root, check=False).images


def test_rows_come_in_the_order_asked_for(images: LabelledImages) -> None:
    rows = [7, 0, 7, 3]
    expected = torch.stack([load_image(images, row, SPEC) for row in rows])
    with ThreadPoolExecutor(3) as pool:
        assert torch.equal(load_batch(images, rows, SPEC), expected)
        assert torch.equal(load_batch(images, torch.tensor(rows), SPEC, pool=pool), expected)
    assert load_batch(images, [], SPEC).shape == (0, 3, 8, 8)
    assert ImageInputs(images, SPEC, workers=2).batch(torch.tensor(rows)).equal(expected)
    assert len(ImageInputs(images, SPEC, workers=0)) == 10


@pytest.mark.parametrize("workers", [None, 0, 1, 3])
@pytest.mark.parametrize("batch_size", [1, 4, 10, 99])
def test_all_batches_together_are_all_images(images: LabelledImages, workers: int | None, batch_size: int) -> None:
    batches = list(iter_batches(images, SPEC, batch_size, workers))
    assert [len(batch) for batch in batches[:-1]] == [batch_size] * (len(batches) - 1)
    assert torch.equal(torch.cat(batches), load_batch(images, range(10), SPEC))


def test_no_images_give_no_batches(images: LabelledImages) -> None:
    assert list(iter_batches(images.subset([]), SPEC, 4, 2)) == []


@pytest.mark.parametrize("workers", [0, 2])
def test_images_can_be_read_in_inference_mode(images: LabelledImages, workers: int) -> None:
    expected = load_batch(images, range(len(images)), SPEC)
    with torch.inference_mode():
        assert torch.equal(torch.cat(list(iter_batches(images, SPEC, 2, workers))), expected)
        assert torch.equal(ImageInputs(images, SPEC, workers).batch(torch.arange(len(images))), expected)


def test_the_next_batches_are_read_while_one_is_used(images: LabelledImages, monkeypatch: pytest.MonkeyPatch) -> None:
    read, enough = [], threading.Event()

    def count(_images: LabelledImages, row: int, *_: object) -> torch.Tensor:
        read.append(row)
        if len(read) == 6:
            enough.set()
        return torch.zeros(1)

    monkeypatch.setattr(image_batches, "load_image", count)
    batches = iter_batches(images, SPEC, batch_size=2, workers=1, prefetch=2)
    next(batches)
    assert enough.wait(5)
    batches.close()  # type: ignore[attr-defined]
    assert sorted(read) == list(range(6))  # the batch in use and two ahead, no more


def test_an_error_names_the_file_and_ends_the_threads(images: LabelledImages) -> None:
    images.files[6].write_bytes(b"")
    before = threading.active_count()
    with pytest.raises(UnreadableImage, match=r"pen/1\.png cannot be read: the file is empty"):
        list(iter_batches(images, SPEC, 4, workers=2))
    assert threading.active_count() == before
    with pytest.raises(UnreadableImage, match=r"pen/1\.png"):
        load_batch(images, [6], SPEC)


def test_bad_input_is_named(images: LabelledImages) -> None:
    with pytest.raises(IndexError, match=r"rows must lie in 0 … 9, got 10"):
        load_batch(images, [0, 10], SPEC)
    with pytest.raises(IndexError, match="got -1"):
        load_batch(images, [-1], SPEC)
    with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
        iter_batches(images, SPEC, 0, 1)
    with pytest.raises(ValueError, match="workers must be at least 0, got -1"):
        iter_batches(images, SPEC, 1, -1)
