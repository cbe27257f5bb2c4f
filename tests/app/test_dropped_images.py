"""Whatever is dropped stays in its folder, under a name of ours, within limits; or is refused in a sentence."""

import zlib
from pathlib import Path

import pytest
from local_app import picture

from sohot.app import dropped_images
from sohot.app.dropped_images import DroppedImages, TooMuch, Unknown
from sohot.data import UnreadableImage

HOSTILE = [
    *("../../evil.png", "/etc/passwd", "..\\..\\evil.png", "C:\\evil.png", "a\0b.png", "", ".", "..", "-rf.png"),
    *("<script>alert(1)</script>.png", '"><img src=x onerror=alert(1)>.png', "a.html", "a.svg", "\u202egnp.exe"),
    *("x" * 5000 + ".png", "caf\udce9.png", "$(touch evil).png", "con", "%2e%2e%2fevil.png"),
]


@pytest.fixture
def images(tmp_path: Path) -> DroppedImages:
    (tmp_path / "app").mkdir()
    return DroppedImages(tmp_path / "app")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_decides_nothing(images: DroppedImages, tmp_path: Path, name: str) -> None:
    before = set(tmp_path.rglob("*"))
    image = images.add(name, picture(1))
    new = set(tmp_path.rglob("*")) - before
    assert {path.name for path in new} == {"dropped", "dropped.json", image.file.name}
    assert image.file.parent == images.folder
    assert image.file.name == f"{image.key}.png"
    assert len(image.name) <= 6 * dropped_images.LONGEST_NAME
    assert image.name.encode().decode().isprintable()


def test_what_was_dropped_is_there_again_and_the_same_bytes_are_one_image(images: DroppedImages) -> None:
    first, second = images.add("b.png", picture(1)), images.add("a.png", picture(2))
    assert images.add("other name.png", picture(1)) == first
    again = DroppedImages(images.folder.parent)
    assert again.all() == images.all() == [first, second]
    again.remove([first.key])
    assert not first.file.exists()
    assert DroppedImages(images.folder.parent).all() == [second]
    with pytest.raises(Unknown, match="there is no such image"):
        again.find(first.key)


@pytest.mark.parametrize("kind", ["JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM"])
def test_the_suffix_tells_the_format_of_the_bytes(images: DroppedImages, kind: str) -> None:
    assert images.add("a.html", picture(kind=kind)).file.suffix == f".{kind.lower()}"


def bomb() -> bytes:
    """A small PNG of 10,000 × 10,000 pixels."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return len(content).to_bytes(4, "big") + kind + content + zlib.crc32(kind + content).to_bytes(4, "big")

    side = (10_000).to_bytes(4, "big")
    lines = zlib.compress(bytes(1251) * 10_000, 9)
    header = side + side + bytes([1, 0, 0, 0, 0])
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", lines) + chunk(b"IEND", b"")


def cut() -> bytes:
    content = picture(size=(100, 100))
    return content[: len(content) // 2]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"<html><script>alert(1)</script></html>", "not an image"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>", "not an image"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not an image"),
        (bomb(), "million pixels"),
        (cut(), "cut short"),
    ],
)
def test_what_is_no_image_is_refused_by_its_name_and_leaves_nothing(
    images: DroppedImages, content: bytes, reason: str
) -> None:
    with pytest.raises(UnreadableImage, match=f"evil.png cannot be read: .*{reason}"):
        images.add("evil.png", content)
    assert len(images) == 0
    assert list(images.folder.iterdir()) == []


def test_there_are_limits(images: DroppedImages, monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(picture(1))
    images.add("a.png", picture(1))
    monkeypatch.setattr(dropped_images, "MOST_TOGETHER", 2 * size - 100)
    with pytest.raises(TooMuch, match="together"):
        images.add("b.png", picture(2))
    monkeypatch.setattr(dropped_images, "MOST_IMAGES", 1)
    with pytest.raises(TooMuch, match="1 images already"):
        images.add("b.png", picture(2))
    monkeypatch.setattr(dropped_images, "MOST_BYTES", size // 2)
    with pytest.raises(TooMuch, match="larger"):
        images.add("b.png", picture(2))
    assert len(images) == 1


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "dropped").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="is a link"):
        DroppedImages(tmp_path / "app")


def test_a_damaged_list_is_told(images: DroppedImages) -> None:
    images.add("a.png", picture(1))
    (images.folder.parent / dropped_images.LIST).write_text("[1]")
    with pytest.raises(ValueError, match="is damaged: remove it"):
        DroppedImages(images.folder.parent)
