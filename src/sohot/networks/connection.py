"""Whether a server can be reached, asked within seconds: what downloads weights would wait for minutes, or for ever."""

import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from urllib.parse import urlsplit

import torch

PATIENCE = 5.0
"""Seconds to wait for an answer."""
_STALLED = 30.0
"""Seconds without data after which a download has failed."""


def ask(address: str) -> None:
    """Ask a server for an answer, as torch.hub reaches it; any will do."""
    try:
        urllib.request.urlopen(urllib.request.Request(address, method="HEAD"), timeout=PATIENCE).close()
    except urllib.error.HTTPError:
        return


def ask_hub(address: str) -> None:
    """Ask a server for an answer, as the model hub's own library reaches it."""
    from huggingface_hub import get_session

    get_session().head(address, timeout=PATIENCE)


def reaches(address: str, asking: Callable[[str], None] = ask) -> bool:
    """Whether an address answers in time.

    A request limits the wait for each address that a name has, and not that for the name: a thread limits the whole.
    """
    answered = Event()

    def wait() -> None:
        try:
            asking(address)
        except Exception:  # errors differ between libraries and versions; all mean that no answer came
            return
        answered.set()

    thread = Thread(target=wait, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return answered.is_set()


@contextmanager
def torch_hub(url: str) -> Iterator[None]:
    """Let torch.hub fetch a file from its cache or from its address, which must answer soon and keep sending.

    Raises:
        ConnectionError: The cache does not hold the file, and the address cannot be reached.
    """
    cache, file = Path(torch.hub.get_dir()) / "checkpoints", Path(urlsplit(url).path).name
    if not (cache / file).is_file() and not reaches(url):
        raise ConnectionError(
            f"{urlsplit(url).hostname} cannot be reached, and the cache {cache}, which you may copy from a machine "
            f"that has used them, holds no {file}"
        )
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(_STALLED if before is None else before)  # torch.hub itself sets none
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)
