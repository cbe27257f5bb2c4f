"""The app listens on this machine alone."""

import pytest

from sohot.app.server import address, has_browser, listen


def test_only_this_machine_reaches_it() -> None:
    with listen(0) as taken:
        host, port = taken.getsockname()
        assert host == "127.0.0.1"
        assert address(taken, "secret") == f"http://127.0.0.1:{port}/secret/"
        with pytest.raises(ValueError, match=f"--port {port} cannot be used"):
            listen(port)


def test_no_browser_is_opened_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    assert not has_browser()
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert has_browser()
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    assert not has_browser()
