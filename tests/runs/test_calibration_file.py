"""The calibration in a run's folder."""

import json

import numpy as np
import pytest

from sohot.runs.calibration_file import CALIBRATION, read_calibration, write_calibration
from sohot.selection.held_out import HeldOut

ROWS = HeldOut(np.tile([[3.0, 0.0, 0.0]], (9, 1)), [0] * 6 + [1] * 3)


def test_what_is_written_is_what_is_read(tmp_path):
    written = write_calibration(tmp_path, ROWS)
    read = read_calibration(tmp_path)
    assert read is not None
    assert read.as_json() == written.as_json()
    assert (read.rows, read.answers.right.sum()) == (9, 6)
    stored = json.loads((tmp_path / CALIBRATION).read_text())
    assert (stored["rows"], stored["rows_right"], stored["temperature"]) == (9, 6, read.temperature)


def test_a_folder_without_the_file_has_none_and_nothing_held_out_leaves_none(tmp_path):
    assert read_calibration(tmp_path) is None
    write_calibration(tmp_path, ROWS)
    write_calibration(tmp_path, HeldOut(np.zeros((0, 3)), []))
    assert read_calibration(tmp_path) is None
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: {**content, "temperature": 2.5},
        lambda content: {name: value for name, value in content.items() if name != "format"},
        lambda _: {"format": 2},
        lambda _: {"format": 1},
        lambda content: [content],
        lambda _: None,
    ],
)
def test_a_damaged_file_ends_in_one_sentence(tmp_path, spoil):
    write_calibration(tmp_path, ROWS)
    file = tmp_path / CALIBRATION
    file.write_text(json.dumps(spoil(json.loads(file.read_text()))))
    with pytest.raises(ValueError, match=r"damaged or from another version .*: remove it"):
        read_calibration(tmp_path)
    file.write_text("{")
    with pytest.raises(ValueError, match=r"damaged or from another version .*: remove it"):
        read_calibration(tmp_path)
