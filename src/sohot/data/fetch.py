"""Download files: resumed where they broke off, checked, and in place whole or not at all."""

import hashlib
import http.client
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from .._files import sync_folder
from .labelled import Progress

_CHUNK = 1 << 18
_WAIT = 30.0


class DownloadError(ConnectionError):
    """A download that failed: the sentence says which and why. What was received is kept, and the next try goes on."""


@dataclass(frozen=True)
class Download:
    """A file to fetch.

    Attributes:
        url: Where it lies.
        file: Its path below the folder it is fetched to.
        checksum: "md5:…" or "sha256:…" in hexadecimal.
    """

    url: str
    file: str
    checksum: str


def fetch_file(
    download: Download, folder: Path, *, progress: Progress | None = None, tries: int = 3, pause: float = 1.0
) -> Path:
    """Download one file, unless it is there already.

    Args:
        download: What to fetch.
        folder: The folder to put it below.
        progress: Called with the file's name, the bytes that are there and those of the whole file (0 if not known).
        tries: How often to go on after the connection broke.
        pause: Seconds before the first further try; each waits twice as long.

    Returns:
        Where it lies.

    Raises:
        DownloadError: The connection failed, or the file is not the one that was wanted.
    """
    file = folder / download.file
    if file.is_file():
        _check(download, file, "it lies there already and is another one: move it away")
        return file
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f"{file.name}.part")
    for attempt in range(tries):
        try:
            _go_on(download, partial, progress)
            break
        except urllib.error.HTTPError as error:
            raise DownloadError(f"{download.url}: the server answers {error.code} {error.reason}") from None
        except (OSError, http.client.HTTPException) as error:
            if attempt + 1 == tries:
                kept = partial.stat().st_size if partial.exists() else 0
                reason = getattr(error, "reason", None) or error
                goes_on = f"; {kept} bytes are kept in {partial.name}, the same command goes on there" if kept else ""
                raise DownloadError(f"{download.url}: {reason}{goes_on}") from None
            time.sleep(pause * 2**attempt)
    try:
        _check(download, partial, "what was received is not the file that was wanted")
    except DownloadError:
        partial.unlink()  # it would never become right by going on
        raise
    os.replace(partial, file)
    sync_folder(file.parent)
    return file


def _go_on(download: Download, partial: Path, progress: Progress | None) -> None:
    """Receive what is missing of a file."""
    have = partial.stat().st_size if partial.exists() else 0
    request = urllib.request.Request(download.url, headers={"User-Agent": "sohot", "Accept-Encoding": "identity"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        answer = urllib.request.urlopen(request, timeout=_WAIT)
    except urllib.error.HTTPError as error:
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and have:
            return  # all of it is there; the checksum tells whether it is right
        raise
    with answer:
        if answer.status != http.HTTPStatus.PARTIAL_CONTENT or not _starts_at(answer, have):
            have = 0  # a server that does not go on sends the whole file
        whole = have + int(answer.headers.get("Content-Length") or 0)
        with open(partial, "ab" if have else "wb") as stream:
            received = _receive(answer, stream, lambda count: progress and progress(download.file, have + count, whole))
            stream.flush()
            os.fsync(stream.fileno())
    if whole > have and have + received < whole:
        raise DownloadError(f"the connection broke after {have + received} of {whole} bytes")


def _starts_at(answer: http.client.HTTPResponse, place: int) -> bool:
    return str(answer.headers.get("Content-Range", "")).startswith(f"bytes {place}-")


def _receive(answer: http.client.HTTPResponse, stream: BinaryIO, report: Callable[[int], object]) -> int:
    received = 0
    while chunk := answer.read(_CHUNK):
        stream.write(chunk)
        received += len(chunk)
        report(received)
    return received


def _check(download: Download, file: Path, otherwise: str) -> None:
    kind, _, wanted = download.checksum.partition(":")
    digest = hashlib.new(kind, usedforsecurity=False)
    with open(file, "rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    if digest.hexdigest() != wanted:
        raise DownloadError(f"{file}: {otherwise} ({kind} {digest.hexdigest()} instead of {wanted})")
