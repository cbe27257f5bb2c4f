from pathlib import Path

import numpy as np
import pytest
import torch
from official_sets import write_idx, write_picture, write_usps
from PIL import Image

from sohot.data import ImageInputs, InputSpec, LabelledImages, UnreadableImage, iter_batches, load_batch
from sohot.data.digit_formats import read_idx, read_usps
from sohot.data.readers import read_item

GREY = InputSpec(size=4, mean=(0.0,), std=(1.0,), resize=4, interpolation="bilinear")


def boxes(file: Path, *parts: str) -> LabelledImages:
    return LabelledImages([file] * len(parts), [0] * len(parts), ["mug"], file.parent, parts=parts)


def test_a_box_is_the_part_of_the_picture(tmp_path: Path) -> None:
    file = write_picture(tmp_path / "a.png", 1, (12, 10))
    images = boxes(file, "2,1,7,9", "0,0,12,10", "")
    whole = np.asarray(Image.open(file))
    assert np.array_equal(np.asarray(read_item(images, 0)), whole[1:9, 2:7])
    assert np.array_equal(np.asarray(read_item(images, 1)), whole)
    assert np.array_equal(np.asarray(read_item(images, 2)), whole)


@pytest.mark.parametrize("box", ["0,0,13,10", "5,0,5,3", "-1,0,3,3", "9,9,3,3"])
def test_a_box_outside_is_refused(tmp_path: Path, box: str) -> None:
    images = boxes(write_picture(tmp_path / "a.png"), box)
    with pytest.raises(UnreadableImage, match=rf"a\.png cannot be read: the box {box} does not lie in its 12 × 10"):
        read_item(images, 0)
    with pytest.raises(UnreadableImage, match="its part must be a box"):
        read_item(boxes(images.files[0], "1,2"), 0)


@pytest.mark.parametrize("packed", [True, False])
def test_images_of_an_idx_file(tmp_path: Path, packed: bool) -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (5, 4, 4)).astype(np.uint8)
    file = write_idx(tmp_path / "train-images-idx3-ubyte", pixels, packed)
    assert np.array_equal(read_idx(file), pixels)
    images = LabelledImages([file] * 3, [0] * 3, ["7"], parts=["4", "0", "2"], reader="idx")
    expected = torch.from_numpy(pixels[[4, 0, 2]]).float().unsqueeze(1) / 255
    assert torch.equal(load_batch(images, range(3), GREY), expected)
    assert torch.equal(torch.cat(list(iter_batches(images, GREY, 2, 2))), expected)
    assert torch.equal(ImageInputs(images, GREY, 2).batch(torch.tensor([1])), expected[1:2])


def test_images_of_a_usps_file(tmp_path: Path) -> None:
    values = np.random.default_rng(0).uniform(-1, 1, (3, 256))
    values[0, :2] = [-1, 1]
    file = write_usps(tmp_path / "usps.bz2", [0, 9, 4], values)
    pixels, digits = read_usps(file)
    assert digits.tolist() == [0, 9, 4]
    assert pixels[0, 0, :2].tolist() == [0, 255]
    assert np.abs(pixels.reshape(3, 256) / 127.5 - 1 - values).max() < 0.01
    images = LabelledImages([file], [0], ["4"], parts=["2"], reader="usps")
    assert np.array_equal(np.asarray(read_item(images, 0, 1)), pixels[2])


def test_a_value_that_usps_leaves_out_is_grey(tmp_path: Path) -> None:
    file = tmp_path / "usps"
    file.write_text("10 1:-1 256:1\n")
    pixels, digits = read_usps(file)
    assert (digits.tolist(), pixels[0, 0, 0], pixels[0, 0, 1], pixels[0, 15, 15]) == ([9], 0, 128, 255)


def test_a_file_that_changed_is_read_again(tmp_path: Path) -> None:
    file = write_idx(tmp_path / "labels", np.array([1, 2]), packed=False)
    assert read_idx(file).tolist() == [1, 2]
    write_idx(file, np.array([3, 4, 5]), packed=False)
    assert read_idx(file).tolist() == [3, 4, 5]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is not an IDX file"),
        (b"\0\0\x0d\1\0\0\0\0", "it holds values of IDX type 0x0d"),
        (b"\0\0\x08\1\0\0\0\x05ab", "its header declares 13 bytes, but it has 10"),
        (b"\x1f\x8bnonsense", "it cannot be unpacked"),
    ],
)
def test_broken_idx_files_are_named(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(UnreadableImage, match=f"x cannot be read: {reason}"):
        read_idx(tmp_path / "x")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"11 1:0", "line 1 is not .*the label must lie in 1 … 10, got 11"),
        (b"1 1:0\n2 257:0", "line 2 is not .*indices must lie in 1 … 256"),
        (b"1 1:x", "line 1 is not"),
        (b"BZhxx", "it cannot be unpacked"),
        (b"\xff\xfe", "it cannot be unpacked"),
    ],
)
def test_broken_usps_files_are_named(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(UnreadableImage, match=f"x cannot be read: {reason}"):
        read_usps(tmp_path / "x")


def test_missing_files_numbers_and_readers_are_named(tmp_path: Path) -> None:
    for read in (read_idx, read_usps):
        with pytest.raises(UnreadableImage, match="there is no such file"):
            read(tmp_path / "missing")
    file = write_idx(tmp_path / "images", np.zeros((2, 3, 3)))
    with pytest.raises(UnreadableImage, match="it contains images 0 … 1, got '2'"):
        read_item(LabelledImages([file], [0], ["a"], parts=["2"], reader="idx"), 0)
    with pytest.raises(ValueError, match="reader must be one of 'image', 'depth', 'idx', 'usps', got 'x'"):
        read_item(LabelledImages([file], [0], ["a"], reader="x"), 0)
