"""The server of the app: on this machine alone, until Ctrl-C."""

import os
import socket
import sys
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp

from .guard import HOST


def listen(port: int) -> socket.socket:
    """Take a port of this machine, which others cannot reach.

    Args:
        port: Its number; 0 for any that is free.

    Raises:
        ValueError: It is in use.
    """
    taken = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if sys.platform != "win32":
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # also soon after an app that used it has ended
    try:
        taken.bind((HOST, port))
        taken.listen(64)
    except OSError as error:
        taken.close()
        raise ValueError(f"--port {port} cannot be used: {error.strerror}") from None
    return taken


def address(taken: socket.socket, token: str) -> str:
    """Return the address to open, with the token that it needs."""
    return f"http://{HOST}:{taken.getsockname()[1]}/{token}/"


def make_server(app: ASGIApp) -> uvicorn.Server:
    """Make the server; it writes no log, because addresses hold the token."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
    )


def serve(app: ASGIApp, taken: socket.socket, ready: Callable[[], None]) -> None:
    """Answer requests until Ctrl-C; SIGTERM ends it too, and is passed on.

    Args:
        app: What answers them.
        taken: The port.
        ready: Called before the first request is answered.
    """
    ready()
    try:
        make_server(app).run(sockets=[taken])
    except KeyboardInterrupt:
        pass
    finally:
        taken.close()


def has_browser() -> bool:
    """Tell whether a browser with windows can be opened: there is a terminal, and on Linux a display."""
    display = sys.platform in ("win32", "darwin") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    return display and sys.stderr.isatty()
