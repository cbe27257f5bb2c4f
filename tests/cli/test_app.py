"""`sohot app`, from the terminal: it prints its address, ends at Ctrl-C, and refuses what cannot work in a sentence."""

import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from urllib.request import urlopen

import pytest
from command_line import Ended

from sohot._files import lock_folder
from sohot.cli import app as app_module
from sohot.cli.output import print_json


def test_it_prints_its_address_answers_there_and_ends_at_ctrl_c(
    sohot: Callable[..., Ended], run_copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labelled = tmp_path / "mine" / "labelled" / "red"
    labelled.mkdir(parents=True)
    (labelled / f"{'0' * 32}.png").touch()
    pages: list[bytes] = []

    def visit(said: dict[str, str]) -> None:
        print_json(said)

        def look() -> None:
            with urlopen(said["address"]) as answer:
                pages.append(answer.read())
            os.kill(os.getpid(), signal.SIGINT)

        Thread(target=look).start()

    monkeypatch.setattr(app_module, "print_json", visit)
    ended = sohot("app", run_copy, "--folder", tmp_path / "mine", "--json")
    assert ended.json["address"].startswith("http://127.0.0.1:")
    assert b"<title>sohot</title>" in pages[0]
    assert ended.code == 0
    assert ended.last == f"the app has ended; 1 labelled image is in {tmp_path / 'mine' / 'labelled'}"
    assert not (run_copy / "app").exists()


def test_what_cannot_work_is_refused_in_a_sentence(
    sohot: Callable[..., Ended], run_copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = sohot("app", run_copy, "--port", port)
        assert (ended.code, ended.last) == (2, f"sohot: --port {port} cannot be used: Address already in use")
    assert not (run_copy / "app").exists()
    (tmp_path / "mine").mkdir()
    with lock_folder(tmp_path / "mine"):
        ended = sohot("app", run_copy, "--folder", tmp_path / "mine")
    assert ended.code == 2
    assert "mine is in use by another process" in ended.last
    ended = sohot("app", run_copy, tmp_path)
    assert (ended.code, ended.last) == (2, f"sohot: {tmp_path} is not a run folder: it has no run.json")
    (run_copy / "app").symlink_to(tmp_path)
    ended = sohot("app", run_copy)
    assert ended.code == 2
    assert "is a link" in ended.last
    monkeypatch.setattr(app_module, "find_spec", lambda name: None if name == "uvicorn" else True)
    ended = sohot("app", run_copy)
    assert (ended.code, ended.last) == (1, "sohot: the app needs uvicorn: pip install 'sohot[app]'")
