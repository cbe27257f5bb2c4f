"""A server that does not answer is noticed within seconds, and said in one sentence."""

import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import torch

from sohot.networks import connection
from sohot.networks.connection import reaches, torch_hub
from sohot.networks.torchvision_models import torchvision_weights
from sohot.networks.weights import download


class _Answers(BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self.send_response(404 if "missing" in self.path else 200)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def server() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _Answers) as running:
        threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that takes calls and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))


@pytest.mark.parametrize("asking", [connection.ask, connection.ask_hub])
def test_any_answer_will_do(server: str, asking) -> None:
    assert reaches(f"{server}/there", asking)
    assert reaches(f"{server}/missing", asking)


@pytest.mark.parametrize("asking", [connection.ask, connection.ask_hub])
def test_no_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, silent: str, asking) -> None:
    monkeypatch.setattr(connection, "PATIENCE", 0.2)
    before = time.monotonic()
    assert not reaches(silent, asking)
    assert time.monotonic() - before < 1


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    assert not reaches(f"http://127.0.0.1:{port}")


def test_what_is_cached_asks_nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(connection, "reaches", lambda _: pytest.fail("a server was asked"))
    (tmp_path / "checkpoints" / "net-12.pth").touch()
    with torch_hub("https://example.org/models/net-12.pth?raw=1"):
        assert socket.getdefaulttimeout() == 30
    assert socket.getdefaulttimeout() is None


def test_a_limit_that_was_set_stays(server: str) -> None:
    socket.setdefaulttimeout(7)
    try:
        with torch_hub(f"{server}/net.pth"):
            assert socket.getdefaulttimeout() == 7
        assert socket.getdefaulttimeout() == 7
    finally:
        socket.setdefaulttimeout(None)


def test_a_network_whose_weights_cannot_be_had(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(connection, "reaches", lambda _: False)
    sentence = (
        r"^the pre-trained weights of alexnet could not be downloaded \(download.pytorch.org cannot be reached, and "
        rf"the cache {tmp_path}/checkpoints, .* holds no alexnet-owt-[0-9a-f]+.pth\): give a file with --weights FILE"
    )
    with pytest.raises(ConnectionError, match=sentence):
        download(lambda: torchvision_weights("AlexNet_Weights"), "alexnet")
