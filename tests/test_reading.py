"""Files of strangers: what is not a regular file is never opened, and no content ends in a traceback."""

import os
from pathlib import Path

import pytest
from PIL import Image

from sohot._files import parse_toml
from sohot._reading import UnsuitableFile, inside, open_regular, parse_json, read_json, read_regular, read_text


@pytest.fixture(params=["pipe", "link to a pipe", "device"])
def special(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A name that leads to no regular file; opening a pipe would wait for a writer for ever."""
    if not hasattr(os, "mkfifo"):
        pytest.skip("needs POSIX")
    if request.param == "device":
        (tmp_path / "zero").symlink_to("/dev/zero")
        return tmp_path / "zero"
    os.mkfifo(tmp_path / "pipe")
    if request.param == "pipe":
        return tmp_path / "pipe"
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    return tmp_path / "link"


@pytest.mark.parametrize("read", [open_regular, read_regular, read_text, read_json])
def test_only_regular_files_are_read(special, read):
    with pytest.raises(UnsuitableFile, match="not a regular file"):
        read(special)


def test_a_link_to_a_regular_file_is_read(tmp_path):
    (tmp_path / "file").write_bytes(b"[1]\r\n")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert read_regular(tmp_path / "link") == b"[1]\r\n"
    assert read_text(tmp_path / "link") == "[1]\n"
    assert read_json(tmp_path / "link") == [1]


def test_folders_and_missing_files_keep_their_errors(tmp_path):
    with pytest.raises(IsADirectoryError):
        read_regular(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "nothing")


def test_a_huge_file_is_not_read(tmp_path):
    with open(tmp_path / "sparse", "wb") as stream:
        stream.truncate(1 << 40)  # takes no room on the disk
    with pytest.raises(UnsuitableFile, match="1099511627776 bytes"):
        read_json(tmp_path / "sparse")


@pytest.mark.parametrize("text", ["[" * 10**5, '{"a":' * 10**5])
def test_deep_json_is_refused(text):
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json(text)


def test_deep_toml_is_refused():
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_toml("a = " + "[" * 10**5)


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "/dev/zero", "a/b", "a\\b", "C:x", "a\0b"])
def test_a_listed_name_stays_in_its_folder(tmp_path, name):
    with pytest.raises(ValueError, match="leads out of the folder"):
        inside(tmp_path, name)


def test_images_are_regular_files(special, tmp_path):
    from sohot.data import UnreadableImage, read_image

    with pytest.raises(UnreadableImage, match="not a regular file"):
        read_image(special)
    Image.new("RGB", (2, 2), "red").save(tmp_path / "red.png")
    (tmp_path / "linked.png").symlink_to(tmp_path / "red.png")
    assert read_image(tmp_path / "linked.png").getpixel((0, 0)) == (255, 0, 0)
