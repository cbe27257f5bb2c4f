"""Downloads against a server on this machine: whole, broken off, resumed, wrong."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sohot.data.fetch import Download, DownloadError, fetch_file

CONTENT = bytes(range(256)) * 40
CHECKSUM = f"md5:{hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()}"


class Server:
    """What the server does, and what it was asked."""

    ranges = True
    breaks: list[int]
    asked: list[str | None]

    def __init__(self) -> None:
        self.breaks, self.asked = [], []
        self.url = ""

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        wanted = request.headers.get("Range")
        self.asked.append(wanted)
        if request.path == "/missing":
            request.send_error(404, "Not Found")
            return
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and self.ranges else 0
        if start >= len(CONTENT):
            request.send_error(416)
            return
        body = CONTENT[start:]
        request.send_response(206 if wanted and self.ranges else 200)
        if wanted and self.ranges:
            request.send_header("Content-Range", f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}")
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        if self.breaks:
            body = body[: self.breaks.pop(0)]
            request.close_connection = True
        request.wfile.write(body)


@pytest.fixture
def server() -> Iterator[Server]:
    told = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            told.answer(self)

        def log_message(self, format: str, *args: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        told.url = f"http://127.0.0.1:{httpd.server_port}/file"
        yield told
        httpd.shutdown()
        thread.join()


def fetch(server: Server, folder: Path, checksum: str = CHECKSUM, **options: Any) -> Path:
    return fetch_file(Download(server.url, "inside/file.bin", checksum), folder, pause=0.01, **options)


def test_a_whole_file(server: Server, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    file = fetch(server, tmp_path, progress=lambda *stage: seen.append(stage))
    assert file.read_bytes() == CONTENT
    assert seen[-1] == ("inside/file.bin", len(CONTENT), len(CONTENT))
    assert [path.name for path in file.parent.iterdir()] == ["file.bin"]


def test_what_is_there_is_not_fetched_again(server: Server, tmp_path: Path) -> None:
    fetch(server, tmp_path)
    fetch(server, tmp_path)
    assert len(server.asked) == 1
    (tmp_path / "inside" / "file.bin").write_bytes(b"mine")
    with pytest.raises(DownloadError, match="a different file is already there: move it away"):
        fetch(server, tmp_path)
    assert (tmp_path / "inside" / "file.bin").read_bytes() == b"mine"


def test_a_broken_connection_goes_on_where_it_was(server: Server, tmp_path: Path) -> None:
    server.breaks = [1000, 500]
    assert fetch(server, tmp_path).read_bytes() == CONTENT
    assert server.asked == [None, "bytes=1000-", "bytes=1500-"]


def test_a_later_call_goes_on_too(server: Server, tmp_path: Path) -> None:
    server.breaks = [700]
    with pytest.raises(DownloadError, match=r"700 bytes are kept in file\.bin\.part, run the command again to resume"):
        fetch(server, tmp_path, tries=1)
    assert not (tmp_path / "inside" / "file.bin").exists()
    assert fetch(server, tmp_path).read_bytes() == CONTENT
    assert server.asked == [None, "bytes=700-"]


def test_a_server_that_cannot_go_on_sends_all(server: Server, tmp_path: Path) -> None:
    server.ranges, server.breaks = False, [1000]
    assert fetch(server, tmp_path).read_bytes() == CONTENT
    assert server.asked == [None, "bytes=1000-"]


def test_all_was_received_but_not_put_in_place(server: Server, tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "file.bin.part").write_bytes(CONTENT)
    assert fetch(server, tmp_path).read_bytes() == CONTENT
    assert server.asked == [f"bytes={len(CONTENT)}-"]


def test_the_wrong_file_is_not_kept(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"the received file is not the expected one \(sha256"):
        fetch(server, tmp_path, "sha256:" + "0" * 64)
    assert list((tmp_path / "inside").iterdir()) == []


def test_a_rotten_beginning_is_found(server: Server, tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "file.bin.part").write_bytes(b"x" * 1000)
    with pytest.raises(DownloadError, match="the received file is not the expected one"):
        fetch(server, tmp_path)
    assert fetch(server, tmp_path).read_bytes() == CONTENT  # begins anew


def test_refusals_and_dead_servers_are_named(server: Server, tmp_path: Path) -> None:
    missing = Download(server.url.replace("/file", "/missing"), "x", CHECKSUM)
    with pytest.raises(DownloadError, match="missing: the server answered 404 Not Found"):
        fetch_file(missing, tmp_path)
    with pytest.raises(DownloadError, match="refused"):
        fetch_file(Download("http://127.0.0.1:9/x", "x", CHECKSUM), tmp_path, tries=2, pause=0.01)
