"""Real folders; skipped where the data set is not there."""

import os
from pathlib import Path

import pytest

OFFICE31 = Path(os.environ.get("SOHOT_OFFICE31", Path(__file__).parents[3] / "shared" / "data" / "office31"))

pytestmark = pytest.mark.skipif(
    not OFFICE31.is_dir(), reason="needs Office-31: set SOHOT_OFFICE31 to the folder with amazon, dslr and webcam"
)


def test_dslr_to_webcam(sohot, tmp_path):
    folders = "--source", OFFICE31 / "dslr", "--target", OFFICE31 / "webcam"
    network = "--backbone", "small-cnn", "--image-size", 16, "--loggers", "none", "--device", "cpu"
    ended = sohot(
        "fit", *folders, *network, "--source-shots", 8, "--shots", 3, "--steps", 2, "--out", tmp_path / "run", "--json"
    )
    data = ended.json["data"]
    assert (len(data["classes"]), data["source"]["images"], data["target"]["images"]) == (31, 247, 93)
    assert data["test"]["images"] == 702
    assert "ruler (7)" in ended.err
