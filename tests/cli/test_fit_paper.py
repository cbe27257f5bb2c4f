"""`sohot fit --method paper`: one line says what it stands for, and what is stored repeats the run."""

import json
import shlex

from command_line import weights

from sohot.runs import read_config


def fit(sohot, domains, out, *more):
    return sohot("fit", *domains.options(), "--steps", 3, "--shots", 2, "--out", out, *more)


def test_it_is_resolved_told_and_repeated(sohot, domains, tmp_path):
    ended = fit(sohot, domains, tmp_path / "one", "--method", "paper", "--sigma2", "1e-5")
    assert ended.code == 0
    told = [line for line in ended.err.splitlines() if line.startswith("method paper stands for --method so")]
    assert len(told) == 1
    assert "norm about 40" in told[0]  # of one of the two weights at least
    stored = read_config(tmp_path / "one" / "config.toml")
    assert (stored["method"], stored["sigma1"], stored["sigma2"]) == ("so", 1.6e-8, 1e-5)
    assert (stored["streams"], stored["feature_scale"]) == ("separate", "none")
    sohot("fit", "--config", tmp_path / "one" / "config.toml", "--out", tmp_path / "two")
    command = json.loads((tmp_path / "one" / "report.json").read_text())["command"]
    _, *words, _, _ = shlex.split(command)
    again = sohot(*words, "--out", tmp_path / "three")
    assert "stands for" not in again.err
    assert weights(tmp_path / "one") == weights(tmp_path / "two") == weights(tmp_path / "three")


def test_an_option_of_the_file_wins_too(sohot, domains, tmp_path):
    file = tmp_path / "options.toml"
    file.write_text('method = "paper"\nfeature-scale = "initial"\n')
    assert fit(sohot, domains, tmp_path / "run", "--config", file).code == 0
    stored = read_config(tmp_path / "run" / "config.toml")
    assert (stored["method"], stored["feature_scale"]) == ("so", "initial")  # though that is the default


def test_asking_again_resumes(sohot, domains, tmp_path):
    fit(sohot, domains, tmp_path / "run", "--method", "paper")
    assert fit(sohot, domains, tmp_path / "run", "--method", "paper", "--resume").code == 0
    ended = fit(sohot, domains, tmp_path / "run", "--method", "paper", "--sigma1", "1", "--resume")
    assert ended.code == 2
    assert "settings.sigma1 was 1.6e-08, is 1.0" in ended.last
