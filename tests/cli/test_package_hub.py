"""`sohot export --hub`: a package goes to a hub as it is, private unless asked otherwise; here to one of our own."""

import base64
import json
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from command_line import Domains, Ended
from huggingface_hub import constants

from sohot.networks import connection
from sohot.runs.package_hub import check_repository_name

Sohot = Callable[..., Ended]
NAME = "me/sketches-model"


class Hub(ThreadingHTTPServer):
    """A hub that knows what an upload needs: who asks, what is there, a new repository, a commit."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.repositories: dict[str, bool] = {}
        self.files: dict[str, bytes] = {}
        self.refused: dict[str, int] = {}
        self.calls: list[str] = []


class _Answers(BaseHTTPRequestHandler):
    server: Hub

    def do_HEAD(self) -> None:
        self._answer(200, {})

    def do_GET(self) -> None:
        if self.path == "/api/whoami-v2":
            self._answer(200 if self.headers["Authorization"] == "Bearer hf_good" else 401, {"name": "me"})
        elif (name := self.path.removeprefix("/api/models/")) in self.server.repositories:
            private = self.server.repositories[name]
            self._answer(200, {"id": name, "private": private, "siblings": [], "tags": [], "downloads": 0, "likes": 0})
        else:
            self._answer(404, {"error": "none"}, {"X-Error-Code": "RepoNotFound"})

    def do_POST(self) -> None:
        body = self._body()
        action = next(one for one in ("create", "preupload", "commit", "validate-yaml") if f"/{one}" in self.path)
        page = f"{constants.ENDPOINT}/{NAME}"
        answer: dict[str, Any] = {"url": page, "commitUrl": f"{page}/commit/{'1' * 40}", "commitOid": "1" * 40}
        if action in self.server.refused:
            self._answer(self.server.refused[action], {"error": "no"})
            return
        if action == "create":
            about = json.loads(body)
            private = about.get("private", about.get("visibility") == "private")  # versions of the library differ
            self.server.repositories[f"{about['organization']}/{about['name']}"] = private
        elif action == "preupload":
            paths = [one["path"] for one in json.loads(body)["files"]]
            answer = {"files": [{"path": path, "uploadMode": "regular", "shouldIgnore": False} for path in paths]}
        elif action == "commit":
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    self.server.files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
        self._answer(200, answer)

    def _body(self) -> bytes:
        if "Content-Length" in self.headers:
            return self.rfile.read(int(self.headers["Content-Length"]))
        chunks = []  # what is not known to be short is sent in chunks
        while size := int(self.rfile.readline(), 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def _answer(self, code: int, content: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        self.server.calls.append(f"{self.command} {self.path.partition('?')[0]}")
        body = json.dumps(content).encode()
        self.send_response(code)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with Hub() as running:
        threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{running.server_port}")
        monkeypatch.setenv("HF_TOKEN", "hf_good")
        yield running
        running.shutdown()


@pytest.fixture
def export(
    sohot: Sohot, trained: tuple[Path, Domains], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Ended]:
    def write(_: object, __: object, file: Path, **___: object) -> float:
        file.write_bytes(b"model")  # the run's own takes seconds
        return 0.0

    monkeypatch.setattr("sohot.runs.loaded_run.export_onnx", write)
    return lambda *words: sohot("export", trained[0], "--package", tmp_path / "package", *words)


@pytest.mark.parametrize("public", [False, True])
def test_the_hub_gets_the_package_file_by_file(export, hub: Hub, tmp_path: Path, public: bool) -> None:
    ended = export("--hub", NAME, "--json", *(["--public"] if public else []))
    assert ended.code == 0, ended.err
    assert hub.files == {file.name: file.read_bytes() for file in (tmp_path / "package").iterdir()}
    assert hub.repositories == {NAME: not public}
    page = f"{constants.ENDPOINT}/{NAME}"
    assert ended.json["hub"] == {"repository": NAME, "url": page, "private": not public}
    card = hub.files["README.md"].decode()
    assert card.startswith("---\nlicense: unknown\nlibrary_name: onnx\npipeline_tag: image-classification\ntags:\n")
    assert "\n---\n\n# Image classifier, 3 classes\n" in card


def test_a_second_upload_adds_to_the_repository_and_says_where(export, hub: Hub) -> None:
    hub.repositories[NAME] = True
    ended = export("--hub", NAME)
    assert ended.code == 0, ended.err
    assert ended.out.splitlines()[-1] == f"{constants.ENDPOINT}/{NAME}: uploaded, private"


@pytest.mark.parametrize(
    ("private", "words", "advice"), [(False, [], "public: add --public"), (True, ["--public"], "private: leave out")]
)
def test_nothing_becomes_public_by_accident(export, hub: Hub, tmp_path: Path, private, words, advice) -> None:
    hub.repositories[NAME] = private
    ended = export("--hub", NAME, *words)
    assert ended.code == 2
    assert f"--hub {NAME} exists already and is {advice}" in ended.last
    assert not hub.files
    assert not (tmp_path / "package").exists()


@pytest.mark.parametrize(
    ("action", "status", "sentence"),
    [
        ("create", 403, f"the hub refuses to write {NAME} with this token (403): make one that may"),
        ("commit", 400, f"the hub answered 400 for {NAME} ("),
    ],
)
def test_what_was_made_stays_when_the_hub_refuses_it(
    export, hub: Hub, tmp_path: Path, action, status, sentence
) -> None:
    hub.refused[action] = status
    ended = export("--hub", NAME)
    assert ended.code == 1
    assert sentence in ended.last
    package = tmp_path / "package"
    assert ended.last.endswith(f"not uploaded; repeat it with: hf upload {NAME} {package} . --private")
    assert (package / "package.json").is_file()


@pytest.mark.usefixtures("hub")
def test_a_token_that_is_not_valid_is_noticed_first(export, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_bad")
    ended = export("--hub", NAME)
    assert (ended.code, f"the hub refuses to write {NAME} with this token (401)" in ended.last) == (1, True)
    assert not (tmp_path / "package").exists()


def test_no_token(export, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: None)
    ended = export("--hub", NAME)
    assert (ended.code, hub.calls) == (2, [])
    assert ended.last == (
        "sohot: --hub needs a token of the hub that may write: `hf auth login` stores one, or set HF_TOKEN"
    )


def test_no_network(export, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "reaches", lambda *_: False)
    ended = export("--hub", NAME)
    assert (ended.code, hub.calls) == (1, [])
    assert ended.last.endswith("cannot be reached: export without --hub, and upload later")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert export("--hub", NAME).last == "sohot: --hub needs a connection, but HF_HUB_OFFLINE is set"


def test_no_library(export, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    ended = export("--hub", NAME)
    assert (ended.code, "pip install 'sohot[hub]'" in ended.last) == (1, True)


@pytest.mark.parametrize("name", ["me", "me/", "/x", "me/x/y", "me/a b", "me/..", "me/x.git", "me/a--b", "mé/x", ""])
def test_names_that_no_hub_takes(name: str) -> None:
    with pytest.raises(ValueError, match=r"^--hub must read OWNER/NAME, .*, got '"):
        check_repository_name(name)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--onnx", "model.onnx", "--hub", NAME], "--hub uploads a package: give --package DIR instead of --onnx"),
        (["--package", "p", "--public"], "--public is about --hub: give --hub OWNER/NAME, too"),
        (["--package", "p", "--hub", "me"], "--hub must read OWNER/NAME"),
    ],
)
def test_wrong_calls(sohot: Sohot, words: list[str], sentence: str) -> None:
    ended = sohot("export", "run", *words)
    assert (ended.code, sentence in ended.last) == (2, True)
