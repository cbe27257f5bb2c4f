from pathlib import Path

import numpy as np
import pytest
from official_sets import make_digits, write_idx

from sohot.data import InputSpec, load_batch
from sohot.data.datasets import open_dataset

SPEC = InputSpec(size=16, mean=(0.5,), std=(0.5,), resize=16)


@pytest.mark.parametrize(("part", "count"), [("all", 80), ("train", 40), ("test", 40)])
def test_both_domains_over_ten_digits(tmp_path: Path, part: str, count: int) -> None:
    dataset = open_dataset("digits", make_digits(tmp_path), part=part)
    source, target = dataset.pair("M-U")
    assert source.classes == target.classes == tuple("0123456789")
    assert source.counts() == target.counts() == [count // 10] * 10
    assert load_batch(source, [0, 1], SPEC).shape == load_batch(target, [0, 1], SPEC).shape == (2, 1, 16, 16)
    names = {source.name(row) for row in range(len(source))}
    assert len(names) == count
    assert dataset.official == {"all": {"mnist": 70000, "usps": 9298}, "train": {"mnist": 60000, "usps": 7291}}.get(
        part, {"mnist": 10000, "usps": 2007}
    )


def test_labels_go_with_their_images(tmp_path: Path) -> None:
    write_idx(tmp_path / "train-images-idx3-ubyte", np.arange(3).reshape(3, 1, 1) * 100, packed=False)
    write_idx(tmp_path / "train-labels-idx1-ubyte", np.array([7, 0, 7]), packed=False)
    images = open_dataset("digits", tmp_path).domains["mnist"]
    assert [(images.labels[row], images.parts[row]) for row in range(3)] == [(0, "1"), (7, "0"), (7, "2")]
    pixels = load_batch(images, range(3), InputSpec(size=1, mean=(0.0,), std=(1.0,), resize=1)).flatten() * 255
    assert pixels.round().tolist() == [100, 0, 200]


def test_what_does_not_go_together_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="does not contain digits"):
        open_dataset("digits", tmp_path)
    write_idx(tmp_path / "train-images-idx3-ubyte.gz", np.zeros((2, 3, 3)))
    with pytest.raises(FileNotFoundError, match=r"train-images-idx3-ubyte\.gz exists, but its labels are missing"):
        open_dataset("digits", tmp_path)
    write_idx(tmp_path / "train-labels-idx1-ubyte.gz", np.zeros(3))
    with pytest.raises(ValueError, match=r"do not match: \(2, 3, 3\) and \(3,\)"):
        open_dataset("digits", tmp_path)
    write_idx(tmp_path / "train-labels-idx1-ubyte.gz", np.array([1, 10]))
    with pytest.raises(ValueError, match="has label 10, but digits end at 9"):
        open_dataset("digits", tmp_path)
    with pytest.raises(ValueError, match="part must be one of 'all', 'train', 'test', got 'half'"):
        open_dataset("digits", tmp_path, part="half")
