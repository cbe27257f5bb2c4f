from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from official_sets import write_depth, write_picture
from PIL import Image

from sohot.data import UnreadableImage
from sohot.data.readers import colourise, fill_holes, read_depth, scale_depth

depths = st.lists(st.lists(st.integers(0, 65535), min_size=3, max_size=3), min_size=1, max_size=4).map(
    lambda rows: np.array(rows, dtype=np.uint16)
)


@given(depths)
def test_holes_are_filled_with_measured_depths_and_the_rest_stays(depth: np.ndarray) -> None:
    filled = fill_holes(depth)
    if depth.any():
        assert filled.all()
        assert set(filled.flat) == set(depth[depth > 0].flat)
    assert np.array_equal(filled[depth > 0], depth[depth > 0])


@given(depths)
def test_scaling_keeps_the_order_and_uses_the_whole_range(depth: np.ndarray) -> None:
    grey = scale_depth(depth)
    order = np.argsort(depth, axis=None, kind="stable")
    assert (np.diff(grey.flat[order].astype(int)) >= 0).all()
    if depth.min() < depth.max():
        assert (grey.min(), grey.max()) == (0, 255)


def test_the_nearest_pixel_fills_a_hole(tmp_path: Path) -> None:
    file = write_depth(tmp_path / "a_depthcrop.png", [[600, 0, 0, 1110]])
    assert np.asarray(read_depth(file)).tolist() == [[0, 0, 255, 255]]


def test_one_channel_or_colours(tmp_path: Path) -> None:
    file = write_depth(tmp_path / "a_depthcrop.png", [[500, 600], [700, 900]])
    assert (read_depth(file, 1).mode, read_depth(file, 3).mode) == ("L", "RGB")
    colours = np.asarray(read_depth(file, 3)).astype(int)
    assert colours[0, 0, 2] > colours[0, 0, 0]  # near is blue
    assert colours[1, 1, 0] > colours[1, 1, 2]  # far is red
    assert colourise(np.zeros((2, 5), dtype=np.uint8)).shape == (2, 5, 3)


def test_a_flat_map_and_an_8_bit_one(tmp_path: Path) -> None:
    assert np.asarray(read_depth(write_depth(tmp_path / "flat.png", [[700, 700]]))).tolist() == [[0, 0]]
    Image.fromarray(np.array([[3, 0, 9]], dtype=np.uint8)).save(tmp_path / "eight.png")
    assert np.asarray(read_depth(tmp_path / "eight.png")).max() == 255


def test_bad_input_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnreadableImage, match=r"holes\.png cannot be read: it contains no depth: all pixels are 0"):
        read_depth(write_depth(tmp_path / "holes.png", [[0, 0]]))
    with pytest.raises(UnreadableImage, match="one channel of 8 or 16 bits, but this image has mode RGB"):
        read_depth(write_picture(tmp_path / "photo.png"))
    with pytest.raises(UnreadableImage, match="there is no such file"):
        read_depth(tmp_path / "missing.png")
    with pytest.raises(ValueError, match="channels must be 1 or 3, got 2"):
        read_depth(tmp_path / "holes.png", 2)
