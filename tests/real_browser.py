"""A real browser for tests of pages, and a page together with all that it said or asked for."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


def need(found: Any, what: str) -> Any:
    """Skip where a tool is missing; on the build machine that is a failure."""
    if found is None:
        if os.environ.get("CI"):
            pytest.fail(f"{what} is missing, and CI must run this test")
        pytest.skip(f"needs {what}")
    return found


@contextmanager
def real_browser() -> Iterator[Any]:
    """Start Chromium."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        sync_playwright = None
    start = need(sync_playwright, "playwright")
    names = ("chromium", "chromium-browser", "google-chrome")
    program = need(next((path for name in names if (path := shutil.which(name))), None), "Chromium")
    with start() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        yield opened
        opened.close()


@dataclass
class Opened:
    """A page and all that it said or asked for."""

    page: Any
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        page = self.page
        page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (self.said.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: self.asked.append(request.url))
        page.set_default_timeout(90_000)  # of a machine that has much else to do
