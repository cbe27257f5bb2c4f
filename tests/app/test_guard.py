"""Nobody talks to the app but a page of its own, on this machine, that knows the address."""

import http.client
from pathlib import Path

from local_app import App, picture

from sohot.app.guard import HEADERS, new_token
from sohot.app.routes import Routes
from sohot.app.session import Session


def every_request(session: Session) -> list[tuple[str, str]]:
    """Each method and address of the app."""
    values = {"{key}": "0" * 32, "{name}": "app.js", "{part}": "source", "{row:int}": "0"}
    found = []
    for route in Routes(session).all():
        path = route.path.removeprefix("/")
        for name, value in values.items():
            path = path.replace(name, value)
        found += [(method, path) for method in sorted(route.methods or ()) if method != "HEAD"]
    return found


def test_every_address_needs_the_token_and_every_answer_has_the_headers(app: App, session: Session) -> None:
    asked = every_request(session)
    assert len(asked) > 15
    for method, path in asked:
        for token in ("", "x", app.token[:-1], app.token + "x", app.token.swapcase(), f"../{app.token}"):
            answer, said = app.ask(method, path, b"{}" if method != "GET" else None, token=token)
            assert answer.status == 403, (method, path, token)
            assert b"token" in said
            assert all(answer.headers[name] == value for name, value in HEADERS.items())
    answer, _ = app.ask("GET", "")
    assert answer.status == 200
    assert all(answer.headers[name] == value for name, value in HEADERS.items())
    assert "server" not in answer.headers


FOREIGN = (
    "evil.example",
    "127.0.0.1.evil.example",
    "evil.example:80",
    "",
    "10.0.0.1",
    "[::1",
    "127.0.0.1@evil.example",
)


def test_another_name_for_this_machine_is_refused(app: App) -> None:
    for host in FOREIGN:
        for method, path in (("GET", ""), ("GET", "api/state"), ("DELETE", "api/images")):
            assert app.ask(method, path, Host=host)[0].status in (400, 403), host


def test_localhost_is_this_machine_whatever_the_port(app: App) -> None:
    for host in ("localhost", "localhost:1", "127.0.0.1"):
        assert app.ask("GET", "api/progress", Host=host)[0].status == 200


def test_other_pages_change_nothing(app: App, session: Session) -> None:
    others = [{"Origin": name} for name in ("http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1")]
    for headers in [*others, {"Sec_Fetch_Site": "cross-site"}]:
        for method, path in every_request(session):
            if method != "GET":
                assert app.ask(method, path, picture(), **headers)[0].status == 403
    assert len(session.dropped) == 0


def test_its_own_page_may(app: App) -> None:
    own = {"Origin": f"http://127.0.0.1:{app.port}", "Sec_Fetch_Site": "same-origin"}
    assert app.ask("PUT", "api/images?name=a.png", picture(), **own)[0].status == 200


def test_the_policy_lets_nothing_run_or_load_but_our_own() -> None:
    policy = dict(part.strip().split(" ", 1) for part in HEADERS["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert {value for name, value in policy.items() if name.endswith("-src")} == {"'none'", "'self'"}
    page = (Path(__file__).parents[2] / "src/sohot/app/assets/app.html").read_text(encoding="utf-8")
    assert "<script>" not in page
    assert "style=" not in page
    assert "http" not in page


def test_an_address_without_its_last_slash_leads_to_the_page(app: App) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", app.port)
    connection.request("GET", f"/{app.token}")
    answer = connection.getresponse()
    assert (answer.status, answer.headers["location"]) == (307, f"/{app.token}/")
    connection.close()


def test_tokens_cannot_be_guessed() -> None:
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert all(len(token) >= 32 for token in tokens)
