"""Who may talk to the app: a browser on this machine that knows the address, and only its own pages."""

from secrets import compare_digest, token_urlsafe

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOST = "127.0.0.1"
"""The only address that the app listens on."""
OWN_NAMES = (HOST, "localhost")
"""What a browser may call this machine. Another name is a web site that points its own name here (DNS rebinding)."""
READING = ("GET", "HEAD")
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Sent with every answer: no script but our own, no network, and the address is told to nobody."""


def new_token() -> str:
    """Make the secret part of the address."""
    return token_urlsafe(24)


class Guard:
    """Passes on the requests whose path begins with the token, and that come from our own pages.

    Args:
        app: What answers them; it sees paths without the token.
        token: The secret part of the address.
    """

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app, self.token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # the app has no web sockets: the server closes them

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        answer = self._answer(scope)
        if answer is not None:
            await answer(scope, receive, send_with_headers)
            return
        inner = {**scope, "path": scope["path"].removeprefix(f"/{self.token}"), "root_path": ""}
        await self.app(inner, receive, send_with_headers)

    def _answer(self, scope: Scope) -> Response | None:
        """Return the answer to a request that is not passed on; None for one that is."""
        headers, (_, token, *rest) = Headers(scope=scope), scope["path"].split("/")
        host = headers.get("host", "")
        if host.lower().split(":")[0] not in OWN_NAMES:
            return PlainTextResponse(f"The app answers only to {HOST}.", 403)
        if not compare_digest(token.encode(), self.token.encode()):
            return PlainTextResponse("Open the whole address that `sohot app` printed: its token is missing here.", 403)
        if not rest:
            return RedirectResponse(f"/{self.token}/")
        origin = headers.get("origin")
        foreign = origin != f"http://{host}" if origin else headers.get("sec-fetch-site", "none") == "cross-site"
        if scope["method"] not in READING and foreign:
            return PlainTextResponse("The app takes changes only from its own page.", 403)
        return None
