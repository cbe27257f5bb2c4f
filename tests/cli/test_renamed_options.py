"""An option by the name that it had once ends in a sentence with the one it has now."""

import pytest


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (("fit", "--rival-weight", "1"), "--rival-weight is now called --loss-weight"),
        (("fit", "--workers", "2"), "--workers is now called --read-threads"),
        (("predict", "run", "images", "--workers", "2"), "--workers is now called --read-threads"),
        (("features", "images", "--workers", "2"), "--workers is now called --read-threads"),
        (("fit-features", "--learning-rate", "0.1"), "--learning-rate is now called --lr"),
        (("fit-features", "--workers", "2"), "No such option: --workers"),  # it reads no images
    ],
)
def test_on_the_command_line(sohot, command, sentence):
    ended = sohot(*command)
    assert ended.code == 2
    assert sentence in ended.last


@pytest.mark.parametrize(
    ("line", "sentence"),
    [("rival_weight = 1.0", "'rival_weight' is now called 'loss_weight'"), ("workers = 2", "'workers' is now called")],
)
def test_in_a_file_of_options(sohot, tmp_path, line, sentence):
    (tmp_path / "options.toml").write_text(line, encoding="utf-8")
    ended = sohot("fit", "--config", tmp_path / "options.toml")
    assert ended.code == 2
    assert sentence in ended.last


def test_in_a_grid(sohot, tmp_path):
    grid = 'dataset = "office31"\nshifts = ["A-W"]\nmethods = ["ccsa"]\n'
    for table in ("[settings]\nrival_weight = 1.0", "[frozen]\nlearning_rate = 0.1"):
        (tmp_path / "grid.toml").write_text(f"{grid}{table}\n", encoding="utf-8")
        ended = sohot("experiment", tmp_path / "grid.toml", "--data", tmp_path)
        assert ended.code == 2
        assert "is now called" in ended.last
