"""The addresses of the app: one page, its parts, and requests that are answered with JSON or small pictures."""

from collections.abc import Awaitable, Callable
from functools import cache
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from .._reading import parse_json
from ..data.decode import UnreadableImage
from .dropped_images import MOST_BYTES, TooMuch, Unknown
from .guard import Guard
from .session import Session

MOST_JSON = 1 << 16
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
STATUS: dict[type[Exception], int] = {
    Unknown: 404,
    TooMuch: 413,
    UnreadableImage: 415,
    ValueError: 400,
    OSError: 500,
    RuntimeError: 500,
}
"""What each error is to the browser; the page shows its sentence."""


def make_app(session: Session, token: str) -> ASGIApp:
    """Build what answers the requests of the page."""
    handlers: dict[Any, Any] = {kind: _refused(status) for kind, status in STATUS.items()}
    return Guard(Starlette(routes=Routes(session).all(), exception_handlers=handlers), token)


def _refused(status: int) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def answer(_request: Request, error: Exception) -> Response:
        sentence = str(error)
        if isinstance(error, OSError) and error.strerror:
            sentence = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        return JSONResponse({"error": " ".join(sentence.split()) or type(error).__name__}, status)

    return answer


class Routes:
    """The requests that a session answers. What takes time is done in a thread, so that others are answered meanwhile.

    Args:
        session: The session.
    """

    def __init__(self, session: Session) -> None:
        self.session = session

    def all(self) -> list[Route]:
        """List the addresses."""
        table: list[tuple[str, str, Any]] = [
            ("GET", "/", self.page),
            ("GET", "/assets/{name}", self.asset),
            ("GET", "/api/state", self.state),
            ("GET", "/api/map", self.map),
            ("GET", "/api/progress", self.progress),
            ("PUT", "/api/images", self.drop),
            ("DELETE", "/api/images", self.remove),
            ("GET", "/api/images/{key}", self.answer),
            ("DELETE", "/api/images/{key}", self.remove),
            ("PUT", "/api/images/{key}/label", self.label),
            ("POST", "/api/suggestions", self.suggest),
            ("GET", "/api/training", self.training),
            ("POST", "/api/training", self.train),
            ("DELETE", "/api/training", self.stop),
            ("PUT", "/api/run", self.use),
            ("GET", "/api/comparison", self.compare),
            ("GET", "/images/{key}", self.small),
            ("GET", "/run-images/{part}/{row:int}", self.small_of_run),
        ]
        return [Route(path, endpoint, methods=[method]) for method, path, endpoint in table]

    async def page(self, _request: Request) -> Response:
        """Send the page."""
        return Response(_assets()["app.html"], media_type="text/html")

    async def asset(self, request: Request) -> Response:
        """Send a part of the page, by its name in the package."""
        name = request.path_params["name"]
        if name not in _assets():
            raise Unknown("there is no such part of the page")
        return Response(_assets()[name], media_type=KINDS[name[name.rindex(".") :]])

    async def state(self, _request: Request) -> Response:
        """Send everything but the answers about images."""
        return await _answer(self.session.state)

    async def map(self, _request: Request) -> Response:
        """Send the map of the run's images."""
        return await _answer(self.session.map)

    async def progress(self, _request: Request) -> Response:
        """Send how far what is asked for has come."""
        return JSONResponse({"progress": self.session.progress})

    async def drop(self, request: Request) -> Response:
        """Take one image: the body is the file."""
        content = await _body(request, MOST_BYTES, f"the file is larger than {MOST_BYTES >> 20} MB")
        return await _answer(self.session.drop, request.query_params.get("name", ""), content)

    async def answer(self, request: Request) -> Response:
        """Send what the run says about an image."""
        return await _answer(self.session.answer, request.path_params["key"])

    async def remove(self, request: Request) -> Response:
        """Remove an image, or all without a label."""
        return await _answer(self.session.remove, request.path_params.get("key"))

    async def label(self, request: Request) -> Response:
        """Give an image a label, or none."""
        label = (await _values(request, label=(str, type(None))))["label"]
        return await _answer(self.session.label, request.path_params["key"], label)

    async def suggest(self, request: Request) -> Response:
        """Choose images to label next."""
        values = await _values(request, where=str, count=int)
        return await _answer(self.session.suggest, values["where"], values["count"])

    async def training(self, _request: Request) -> Response:
        """Send how far the training is."""
        return await _answer(self.session.training)

    async def train(self, _request: Request) -> Response:
        """Start training again."""
        return await _answer(self.session.train)

    async def stop(self, _request: Request) -> Response:
        """Stop the training."""
        return await _answer(self.session.stop)

    async def use(self, request: Request) -> Response:
        """Use another run."""
        return await _answer(self.session.use, (await _values(request, run=str))["run"])

    async def compare(self, request: Request) -> Response:
        """Send the comparison with another run."""
        return await _answer(self.session.compare, request.query_params.get("with", ""))

    async def small(self, request: Request) -> Response:
        """Send a dropped image as a small JPEG of our own making, never as the file that came."""
        return Response(
            await run_in_threadpool(self.session.small, request.path_params["key"]), media_type="image/jpeg"
        )

    async def small_of_run(self, request: Request) -> Response:
        """Send an image of the run as a small JPEG."""
        return await _picture(self.session.small_of_run, request.path_params["part"], request.path_params["row"])


async def _answer(work: Callable[..., Any], *values: Any) -> Response:
    return JSONResponse(await run_in_threadpool(work, *values))


async def _picture(work: Callable[..., bytes], *values: Any) -> Response:
    return Response(await run_in_threadpool(work, *values), media_type="image/jpeg")


async def _body(request: Request, most: int, complaint: str) -> bytes:
    """Read the body, but never more than a number of bytes."""
    if int(request.headers.get("content-length", 0)) > most:
        raise TooMuch(complaint)
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > most:
            raise TooMuch(complaint)
    return bytes(content)


async def _values(request: Request, **kinds: Any) -> dict[str, Any]:
    """Read the JSON object of a request, which has values of these kinds."""
    values = parse_json(await _body(request, MOST_JSON, "the request is too long"))
    if not isinstance(values, dict) or not all(isinstance(values.get(name), kind) for name, kind in kinds.items()):
        raise ValueError("the request is not understood")
    return values


@cache
def _assets() -> dict[str, bytes]:
    """Read the parts of the page, which come with the package."""
    folder = files(__package__) / "assets"
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name.endswith(tuple(KINDS))}
