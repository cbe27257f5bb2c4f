"""How the end of several processes is told; that they end so is seen in tests/cli/test_devices.py."""

import json
import threading
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from sohot.runs import RunConfig
from sohot.runs.launcher import PARENT, _failure, end_with_parent
from sohot.training import RankLost
from sohot.training.errors import ENDING, record_ending

LOST = {"code": 1, "sentence": "rank 0 has lost the connection", "lost": True}
CONFIG = RunConfig(devices=2)


@dataclass
class Rank:
    """A process that has ended."""

    number: int
    code: int
    told: dict = field(default_factory=dict)
    stopped: bool = False

    @property
    def failed(self):
        return self.code != 0

    @property
    def process(self):
        return SimpleNamespace(returncode=self.code)

    def ending(self):
        return self.told

    def last_words(self):
        return "the last line"


def told(code, sentence):
    return {"code": code, "sentence": sentence, "lost": False}


@pytest.mark.parametrize(
    ("ranks", "code", "sentence"),
    [
        (
            [Rank(0, 1, LOST), Rank(1, -9)],
            1,
            "rank 1 was killed by SIGKILL; no checkpoint was written yet; continue",
        ),
        ([Rank(0, 1, LOST), Rank(1, 1, told(1, "out of memory"))], 1, "rank 1: out of memory"),
        ([Rank(0, 2, told(2, "lr must be above 0")), Rank(1, -15, stopped=True)], 2, "lr must be above 0"),
        ([Rank(0, 130, told(130, "stopped")), Rank(1, 130, told(130, "stopped"))], 130, "stopped"),
        ([Rank(0, 1, LOST), Rank(1, 7)], 1, "rank 1 ended with exit code 7 (the last line); no checkpoint"),
        ([Rank(0, 1, LOST), Rank(1, 1, LOST)], 1, "rank 0 has lost the connection to another rank; no checkpoint"),
    ],
)
def test_the_cause_is_told_and_not_what_followed_from_it(tmp_path, ranks, code, sentence):
    failure = _failure(ranks, RunConfig(devices=2, out=tmp_path))
    assert failure.code == code
    assert str(failure).startswith(sentence)


def test_ranks_that_end_well_have_no_failure_to_tell():
    assert _failure([Rank(0, 0), Rank(1, 0)], CONFIG) is None


def test_a_process_leaves_its_end_to_the_one_that_started_it(tmp_path, monkeypatch):
    monkeypatch.delenv(ENDING, raising=False)
    assert not record_ending(1, "a sentence", ValueError())
    file = tmp_path / "end.json"
    monkeypatch.setenv(ENDING, str(file))
    gone = RuntimeError("[gloo/transport/tcp/pair.cc:554] Connection closed by peer")
    for error, lost in ((RankLost(), True), (gone, True), (RuntimeError("other"), False), (ValueError(), False)):
        assert record_ending(1, "a sentence", error)
        assert json.loads(file.read_text()) == {"code": 1, "sentence": "a sentence", "lost": lost}


def test_nobody_watches_a_process_that_was_not_started_here(monkeypatch):
    monkeypatch.delenv(PARENT, raising=False)
    before = threading.active_count()
    end_with_parent()
    assert threading.active_count() == before
