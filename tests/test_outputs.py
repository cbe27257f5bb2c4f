"""Results go where the user says: files whole, links to what they point at, pipes and devices as a stream."""

import errno
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from sohot._outputs import is_stream, write_output, writing

posix = pytest.mark.skipif(os.name != "posix", reason="pipes and devices are those of POSIX systems")


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_that_the_user_names_stays_and_leads_to_the_file(tmp_path: Path, exists: bool) -> None:
    (tmp_path / "there").mkdir()
    real, link = tmp_path / "there" / "real.csv", tmp_path / "link.csv"
    if exists:
        real.write_text("old")
    link.symlink_to(real)
    with pytest.raises(TypeError), writing(link) as stream:
        stream.writelines([b"half", "no bytes"])
    assert (real.read_text() if exists else not real.exists()) == ("old" if exists else True)
    write_output(link, b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["real.csv"]


@posix
def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    with writing(tmp_path / "pipe") as stream:
        np.savez(stream, a=np.arange(3))
    reader.join(10)
    assert received[0].startswith(b"PK")
    assert (tmp_path / "pipe").is_fifo()


@posix
def test_the_name_of_a_descriptor_is_written_to() -> None:
    readable, writable = os.pipe()
    write_output(Path(f"/dev/fd/{writable}"), b"labels")
    os.close(writable)
    with os.fdopen(readable, "rb") as stream:
        assert stream.read() == b"labels"


@posix
@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="this system has no /dev/full")
def test_a_device_stays_a_device_and_its_errors_are_seen(tmp_path: Path) -> None:
    link = tmp_path / "full"
    link.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device; free some") as caught:
        write_output(link, b"labels")
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(link))
    assert link.is_symlink()


@posix
def test_a_file_that_standard_output_goes_to_is_continued(tmp_path: Path) -> None:
    file = tmp_path / "log"
    before = os.dup(1)
    with open(file, "wb") as stream:
        os.dup2(stream.fileno(), 1)
    try:
        os.write(1, b"first ")
        assert is_stream(file)
        write_output(file, b"second ")
        os.write(1, b"third")
    finally:
        os.dup2(before, 1)
        os.close(before)
    assert file.read_bytes() == b"first second third"
