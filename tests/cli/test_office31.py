"""Real folders; skipped where the data set is not there."""

from real_data import OFFICE31, needs_office31

pytestmark = needs_office31


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
