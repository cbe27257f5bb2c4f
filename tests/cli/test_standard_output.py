"""`-` as the name of an output: the result alone on standard output, everything else on standard error."""

import numpy as np
import pytest
from command_line import QUICK
from safetensors.torch import load

from sohot.cli import main


@pytest.fixture
def shown(capfdbinary, tmp_path, monkeypatch):
    """Call a command in an empty folder; give what it writes to standard output and standard error."""
    monkeypatch.chdir(tmp_path)

    def call(*words: object) -> tuple[bytes, bytes]:
        capfdbinary.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        assert not ended.value.code
        assert list(tmp_path.iterdir()) == []
        return capfdbinary.readouterr()

    return call


def test_predict(shown, trained):
    run, domains = trained
    assert shown("predict", run, domains.test, "--out", "-").out == shown("predict", run, domains.test).out


def test_report(shown, trained):
    page, told = shown("report", trained[0], "--images", 0, "--out", "-")
    assert page.startswith(b"<!DOCTYPE html>")
    assert page.rstrip().endswith(b"</html>")
    assert b"report of the run" in told


def test_features(shown, trained, tmp_path_factory):
    file = tmp_path_factory.mktemp("features") / "out.npz"
    file.write_bytes(shown("features", trained[1].test, "--out", "-", *QUICK[:4], "--quiet").out)
    with np.load(file) as arrays:
        assert len(arrays["features"]) == 12


def test_packed_weights(shown):
    packed, told = shown("weights", "lite0", "--out", "-", "--quiet")
    assert len(load(packed)) == 296
    assert told.startswith(b"-: weights of lite0")


@pytest.mark.parametrize(
    "words",
    [("report", "RUN", "--out", "-"), ("export", "RUN", "--onnx", "-"), ("features", "RUN", "--out", "-")],
    ids=lambda words: words[0],
)
def test_two_things_do_not_go_there(sohot, words):
    ended = sohot(*words, "--json")
    assert (ended.code, ended.out) == (2, "")
    assert f"{words[2]} - and --json both write to standard output" in ended.last
