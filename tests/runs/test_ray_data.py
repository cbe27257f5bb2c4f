"""A worker's part, without Ray: it opens its network once, tells errors in words, and gives up on a part that kills."""

import os
import pickle
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from sohot.runs import ray_data
from sohot.runs.ray_data import Cluster, ClusterFailed, compute


def opened(log: Path, device: str, readers: int):
    with open(log, "a") as stream:
        stream.write(f"{device} {readers} {os.getcwd()}\n")
    return echoed


def echoed(part: bytes) -> bytes:
    if part == b"bad":
        raise ValueError("this part\ncannot be computed")
    return part


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ray_data._Worker:
    monkeypatch.chdir(tmp_path)  # which is undone at the end
    monkeypatch.setattr(ray_data, "prepare_process", lambda: None)
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)
    monkeypatch.setattr(ray_data, "import_ray", lambda: SimpleNamespace(get=lambda value: value))
    counter = ray_data._Tries()
    tries = SimpleNamespace(begin=SimpleNamespace(remote=counter.begin))
    (tmp_path / "inner").mkdir()
    opens = pickle.dumps(partial(opened, tmp_path / "log"))
    return ray_data._Worker(opens, tries, str(tmp_path / "inner"), "cpu", 1, 3)


def part(number: int, content: bytes) -> dict:
    return {"number": [number], "part": [pickle.dumps(content)]}


def test_a_worker_opens_its_network_once_in_the_folder_of_the_command(worker: ray_data._Worker, tmp_path: Path) -> None:
    answers = [worker(part(number, b"content")) for number in range(3)]
    assert answers == [{"number": [number], "result": [b"content"], "error": [""]} for number in range(3)]
    assert (tmp_path / "log").read_text() == f"cpu 3 {tmp_path / 'inner'}\n"


def test_an_error_is_an_answer_of_one_sentence(worker: ray_data._Worker) -> None:
    answer = worker(part(0, b"bad"))
    assert answer["error"][0].endswith(" failed: this part cannot be computed")
    assert worker(part(1, b"good"))["error"] == [""]


def test_a_part_that_kills_its_worker_again_and_again_is_given_up(worker: ray_data._Worker) -> None:
    assert [worker(part(7, b"x"))["error"] for _ in range(4)] == [[""]] * 4
    assert "images from number 7 on have killed their worker 4 times" in worker(part(7, b"x"))["error"][0]


def test_without_ray_the_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'sohot\[ray\]'"):
        next(compute(Cluster(None, "auto", None, None), {0: b""}, partial(opened, Path("log"))))


def test_what_ray_raises_becomes_one_sentence() -> None:
    class RayError(Exception):
        """Ray's own."""

    ray = SimpleNamespace(exceptions=SimpleNamespace(RayError=RayError))
    data = SimpleNamespace(exceptions=SimpleNamespace(UserCodeException=RayError, SystemException=RayError))
    with (
        pytest.raises(ClusterFailed, match=r"^Ray could not go on: the head is gone; run the same command again"),
        ray_data._in_words(ray, data),
    ):
        raise RayError("Traceback\n  the head is gone\n")
    with pytest.raises(KeyboardInterrupt), ray_data._in_words(ray, data):
        raise SystemError("a signal") from KeyboardInterrupt()
