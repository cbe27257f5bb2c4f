"""Helpers of the app's tests: images to drop, and requests to an app that answers."""

import http.client
import io
import json
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image


def picture(seed: int = 0, size: tuple[int, int] = (18, 16), kind: str = "PNG") -> bytes:
    """The bytes of an image file."""
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, kind)
    return content.getvalue()


@dataclass
class App:
    """An app that answers."""

    port: int
    token: str

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/{self.token}/"

    def ask(
        self, method: str, path: str, body: Any = None, token: str | None = None, **headers: str
    ) -> "tuple[http.client.HTTPResponse, Any]":
        """Send a request, with any headers; give the answer, and its content, as JSON if it is that."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            given = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, f"/{self.token if token is None else token}/{path}", content, given)
            answer = connection.getresponse()
            said = answer.read()
        kind = answer.headers.get("content-type", "")
        return answer, json.loads(said) if kind == "application/json" else said
