"""A tiny run with names that would be HTML, a session on it, and the app that answers over a real connection."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import pytest
from local_app import App, picture
from made_up_results import make_run

from sohot.app.guard import new_token
from sohot.app.routes import make_app
from sohot.app.server import address, listen, make_server
from sohot.app.session import Session
from sohot.runs import open_model


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run; not to be changed."""
    return make_run(tmp_path_factory.mktemp("made"))


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    """A copy of the run in a folder of its own."""
    return Path(shutil.copytree(made, tmp_path / "runs" / "first"))


@pytest.fixture
def session(run: Path) -> Iterator[Session]:
    folder = run / "app"
    folder.mkdir()
    opened = Session(run, folder, open_model)
    yield opened
    opened.close()


@pytest.fixture
def app(session: Session) -> Iterator[App]:
    token = new_token()
    with listen(0) as taken:
        server = make_server(make_app(session, token))
        thread = Thread(target=server.run, kwargs={"sockets": [taken]})
        thread.start()
        assert address(taken, token) == App(taken.getsockname()[1], token).address
        yield App(taken.getsockname()[1], token)
        server.should_exit = True
        thread.join()


@pytest.fixture
def drop(app: App) -> Callable[..., str]:
    """Upload an image, and give its key."""

    def upload(seed: int = 0, name: str = "a.png") -> str:
        answer, said = app.ask("PUT", f"api/images?name={name}", picture(seed))
        assert answer.status == 200, said
        return str(said["key"])

    return upload
