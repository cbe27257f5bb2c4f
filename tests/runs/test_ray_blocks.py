"""A worker's part, without Ray: it opens its work once, tells errors in words, and gives up on a block that kills."""

import os
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from sohot.runs import ray_blocks
from sohot.runs.ray_blocks import TRIES, BlockFailed, BlockWorker, RayBlocks, Tries, _failures_in_words


@dataclass(frozen=True)
class Echo:
    """Notes where it is opened, and gives back what it is given."""

    log: Path

    def open(self, device: str, read_threads: int) -> Callable[[bytes], bytes]:
        with open(self.log, "a") as stream:
            stream.write(f"{device} {read_threads} {os.getcwd()}\n")

        def echo(block: bytes) -> bytes:
            if block == b"bad":
                raise ValueError("this block\ncannot be computed")
            return block

        return echo


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BlockWorker:
    monkeypatch.chdir(tmp_path)  # which is undone at the end
    monkeypatch.setattr(ray_blocks, "prepare_process", lambda: None)
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)
    monkeypatch.setattr(ray_blocks, "import_ray", lambda: SimpleNamespace(get=lambda value: value))
    counter = Tries()
    tries = SimpleNamespace(begin=SimpleNamespace(remote=counter.begin))
    (tmp_path / "inner").mkdir()
    return BlockWorker(pickle.dumps(Echo(tmp_path / "log")), tries, str(tmp_path / "inner"), "cpu", 1, 3)


def block(number: int, content: bytes) -> dict:
    return {"number": [number], "block": [pickle.dumps(content)]}


def test_a_worker_opens_its_work_once_in_the_folder_of_the_command(worker: BlockWorker, tmp_path: Path) -> None:
    answers = [worker(block(number, b"content")) for number in range(3)]
    assert [answer["content"] for answer in answers] == [[b"content"]] * 3
    assert [answer["number"][0] for answer in answers] == [0, 1, 2]
    assert (tmp_path / "log").read_text() == f"cpu 3 {tmp_path / 'inner'}\n"


def test_an_error_is_an_answer_of_one_sentence(worker: BlockWorker) -> None:
    answer = worker(block(0, b"bad"))
    assert answer["error"][0].endswith(" failed: this block cannot be computed")
    assert answer["content"] == [b""]
    assert worker(block(1, b"good"))["error"] == [""]


def test_a_block_that_kills_its_worker_again_and_again_is_given_up(worker: BlockWorker) -> None:
    assert [worker(block(7, b"x"))["tries"] for _ in range(TRIES)] == [[number + 1] for number in range(TRIES)]
    assert f"block 7 of the images has killed its worker {TRIES} times" in worker(block(7, b"x"))["error"][0]


def test_nothing_to_do_needs_no_ray(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert list(RayBlocks().run([], Echo(tmp_path))) == []
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'sohot\[ray\]'"):
        next(RayBlocks().run([(0, b"")], Echo(tmp_path)))


def test_what_is_no_address_is_refused() -> None:
    with pytest.raises(ValueError, match="must be HOST:PORT"):
        RayBlocks("nowhere")


def test_what_ray_raises_becomes_one_sentence() -> None:
    class RayError(Exception):
        """Ray's own."""

    ray = SimpleNamespace(exceptions=SimpleNamespace(RayError=RayError))
    data = SimpleNamespace(exceptions=SimpleNamespace(UserCodeException=RayError, SystemException=RayError))
    with (
        pytest.raises(BlockFailed, match=r"^Ray could not go on: the head is gone; run the same command again"),
        _failures_in_words(ray, data),
    ):
        raise RayError("Traceback\n  the head is gone\n")
    with pytest.raises(KeyboardInterrupt), _failures_in_words(ray, data):
        raise SystemError("a signal") from KeyboardInterrupt()
