"""Download files: resume after a broken connection, verify, and store only complete files."""

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

from .._files import no_follow, sync_folder
from .labelled import Progress

_CHUNK = 1 << 18
_WAIT = 30.0


class DownloadError(ConnectionError):
    """A download failed; the message says which and why. Received data is kept, and the next try resumes."""


@dataclass(frozen=True)
class Download:
    """A file to fetch.

    Attributes:
        url: Its address.
        file: Its path below the download folder.
        checksum: "md5:…" or "sha256:…" in hexadecimal.
    """

    url: str
    file: str
    checksum: str


def fetch_file(
    download: Download, folder: Path, *, progress: Progress | None = None, tries: int = 3, pause: float = 1.0
) -> Path:
    """Download one file, unless it already exists.

    Args:
        download: What to fetch.
        folder: The download folder.
        progress: Called with the file's name, the bytes received and the bytes of the whole file (0 if unknown).
        tries: How often to resume after the connection breaks.
        pause: Seconds before the first retry; each further retry waits twice as long.

    Returns:
        Path of the file.

    Raises:
        DownloadError: The connection failed, or the file has the wrong checksum.
    """
    file = folder / download.file
    if file.is_file():
        _check(download, file, "a different file is already there: move it away")
        return file
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f"{file.name}.part")
    for attempt in range(tries):
        try:
            _go_on(download, partial, progress)
            break
        except urllib.error.HTTPError as error:
            raise DownloadError(f"{download.url}: the server answered {error.code} {error.reason}") from None
        except (OSError, http.client.HTTPException) as error:
            if attempt + 1 == tries:
                kept = partial.stat().st_size if partial.exists() else 0
                reason = getattr(error, "reason", None) or error
                goes_on = f"; {kept} bytes are kept in {partial.name}, run the command again to resume" if kept else ""
                raise DownloadError(f"{download.url}: {reason}{goes_on}") from None
            time.sleep(pause * 2**attempt)
    try:
        _check(download, partial, "the received file is not the expected one")
    except DownloadError:
        partial.unlink()  # resuming it could never make it right
        raise
    os.replace(partial, file)
    sync_folder(file.parent)
    return file


def _go_on(download: Download, partial: Path, progress: Progress | None) -> None:
    """Receive the missing part of a file."""
    have = partial.stat().st_size if partial.exists() else 0
    request = urllib.request.Request(download.url, headers={"User-Agent": "sohot", "Accept-Encoding": "identity"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        answer = urllib.request.urlopen(request, timeout=_WAIT)
    except urllib.error.HTTPError as error:
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and have:
            return  # already complete; the checksum tells whether it is right
        raise
    with answer:
        if answer.status != http.HTTPStatus.PARTIAL_CONTENT or not _starts_at(answer, have):
            have = 0  # a server that cannot resume sends the whole file
        whole = have + int(answer.headers.get("Content-Length") or 0)
        with open(partial, "ab" if have else "wb", opener=no_follow) as stream:
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
