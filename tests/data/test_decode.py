import shutil
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from sohot.data import UnreadableImage, read_image
from sohot.data.decode import FORMATS, SUFFIXES, convert


def save(image: Image.Image, path: Path, **options: object) -> Path:
    image.save(path, **options)
    return path


def gradient(mode: str = "RGB", size: tuple[int, int] = (40, 30)) -> Image.Image:
    """An image whose four corners differ, so that a turn or a mirroring shows."""
    across, down = np.meshgrid(np.linspace(0, 255, size[0]), np.linspace(0, 255, size[1]))
    return Image.fromarray(np.stack([across, down, 255 - across], axis=-1).astype(np.uint8)).convert(mode)


def close(a: Image.Image, b: Image.Image, tolerance: float) -> bool:
    difference = np.abs(np.asarray(a, dtype=float) - np.asarray(b, dtype=float))
    return a.size == b.size and difference.max() <= tolerance


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    "mode", ["1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBa", "La", "CMYK", "YCbCr", "HSV", "I;16", "I", "F"]
)
def test_every_mode_becomes_eight_bit_colour_or_grey(mode: str, channels: int) -> None:
    size = (5, 4)
    image = Image.new("LA", size).convert("La") if mode == "La" else Image.new(mode, size)
    converted = convert(image, channels)
    assert converted.mode == {1: "L", 3: "RGB"}[channels]
    assert converted.size == size


@pytest.mark.parametrize(("value", "expected"), [(0, 0), (257, 1), (32896, 128), (65535, 255)])
@pytest.mark.parametrize("suffix", [".png", ".tif", ".pgm"])
def test_sixteen_bits_are_scaled_by_their_range(tmp_path: Path, suffix: str, value: int, expected: int) -> None:
    pixels = np.full((3, 4), value, dtype=np.uint16)
    file = save(Image.fromarray(pixels), tmp_path / f"deep{suffix}")
    assert np.unique(np.asarray(read_image(file, channels=1))).tolist() == [expected]
    assert read_image(file, channels=3).getpixel((0, 0)) == (expected,) * 3


def test_sixteen_bit_grey_with_a_transparent_value(tmp_path: Path) -> None:
    file = tmp_path / "keyed.png"
    file.write_bytes(
        png(2, 1, depth=16, colour=0, pixels=struct.pack(">2H", 0, 30000), transparent=struct.pack(">H", 0))
    )
    assert np.asarray(read_image(file, channels=1)).ravel().tolist() == [255, 117]


@pytest.mark.parametrize("value", [70000, -1])
def test_values_without_a_known_range_are_refused(tmp_path: Path, value: int) -> None:
    file = save(Image.fromarray(np.full((2, 2), value, dtype=np.int32)), tmp_path / "odd.tif")
    with pytest.raises(UnreadableImage, match=r"odd\.tif cannot be read: its values range from"):
        read_image(file)


def test_transparency_shows_white(tmp_path: Path) -> None:
    half = Image.new("RGBA", (2, 1), (0, 0, 0, 0))
    half.putpixel((1, 0), (255, 0, 0, 128))
    image = read_image(save(half, tmp_path / "half.png"))
    assert image.getpixel((0, 0)) == (255, 255, 255)
    assert image.getpixel((1, 0)) == (255, 127, 127)
    assert read_image(tmp_path / "half.png", channels=1).getpixel((0, 0)) == 255


def test_a_transparent_palette_colour_shows_white(tmp_path: Path) -> None:
    palette = Image.new("P", (2, 1), 0)
    palette.putpalette([10, 20, 30, 200, 100, 50])
    palette.putpixel((1, 0), 1)
    for name, options in {"key.gif": {"transparency": 0}, "table.png": {"transparency": bytes([0, 255])}}.items():
        image = read_image(save(palette, tmp_path / name, **options))
        assert [image.getpixel((x, 0)) for x in (0, 1)] == [(255, 255, 255), (200, 100, 50)]


def test_palette_and_grey_keep_their_colours(tmp_path: Path) -> None:
    colours = gradient()
    assert close(read_image(save(colours.quantize(256), tmp_path / "p.png")), colours, 40)
    grey = gradient("L")
    assert close(read_image(save(grey, tmp_path / "l.png")), grey.convert("RGB"), 0)
    assert close(read_image(save(colours, tmp_path / "c.png"), channels=1), grey, 0)


def test_cmyk_keeps_its_colours(tmp_path: Path) -> None:
    red = Image.new("RGB", (16, 16), (220, 30, 40))
    # Pillow stores CMYK JPEG as Adobe does, inverted, and TIFF as it is: both must come back red.
    for name in ("adobe.jpg", "plain.tif"):
        assert close(read_image(save(red.convert("CMYK"), tmp_path / name)), red, 4)
    assert b"Adobe" in (tmp_path / "adobe.jpg").read_bytes()


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("suffix", [".jpg", ".png"])
def test_the_rotation_noted_by_the_camera_is_applied(tmp_path: Path, suffix: str, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored = gradient(size=(64, 48))
    image = read_image(save(stored, tmp_path / f"turned{suffix}", exif=exif))
    undo = {
        1: lambda x: x,
        2: ImageOps.mirror,
        3: lambda x: x.rotate(180),
        4: ImageOps.flip,
        5: lambda x: ImageOps.mirror(x.rotate(270, expand=True)),
        6: lambda x: x.rotate(270, expand=True),
        7: lambda x: ImageOps.mirror(x.rotate(90, expand=True)),
        8: lambda x: x.rotate(90, expand=True),
    }[orientation]
    assert close(image, undo(stored), 30)


@pytest.mark.filterwarnings("ignore:.*orrupt EXIF:UserWarning")
def test_damaged_camera_notes_do_not_cost_the_picture(tmp_path: Path) -> None:
    exif = b"Exif\0\0II*\0\x08\0\0\0\x05\0" + b"\xff" * 7
    file = save(gradient(), tmp_path / "notes.jpg", exif=exif)
    assert read_image(file).size == (40, 30)


def test_a_large_jpeg_is_decoded_smaller_but_never_too_small(tmp_path: Path) -> None:
    file = save(gradient(size=(1600, 1200)), tmp_path / "large.jpg", quality=95)
    small = read_image(file, at_least=300)
    assert small.size == (400, 300)
    assert close(small, read_image(file).resize(small.size, Image.Resampling.BOX), 3)
    assert read_image(file, at_least=1201).size == (1600, 1200)


def test_the_first_picture_of_an_animation_is_taken(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "blue")]
    file = save(frames[0], tmp_path / "two.gif", save_all=True, append_images=frames[1:])
    assert read_image(file).getpixel((0, 0)) == (255, 0, 0)


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "zero.jpg").touch()
    with pytest.raises(UnreadableImage, match=r"zero\.jpg cannot be read: the file is empty$"):
        read_image(tmp_path / "zero.jpg")


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".bmp", ".gif", ".webp", ".tif"])
@pytest.mark.parametrize("at_least", [None, 8])
def test_a_file_that_was_cut_short(tmp_path: Path, suffix: str, at_least: int | None) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8)
    file = save(Image.fromarray(noise), tmp_path / f"cut{suffix}")
    file.write_bytes(file.read_bytes()[: file.stat().st_size * 2 // 3])
    with pytest.raises(UnreadableImage, match=f"cut{suffix} cannot be read: ") as caught:
        read_image(file, at_least=at_least)
    assert caught.value.path == file
    assert "\n" not in str(caught.value)


def test_bytes_that_are_no_image(tmp_path: Path) -> None:
    (tmp_path / "page.jpg").write_text("<html>not found</html>")
    with pytest.raises(UnreadableImage, match="it is not an image in a supported format"):
        read_image(tmp_path / "page.jpg")


def test_a_program_that_calls_itself_an_image_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "script.jpg").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n")
    with pytest.raises(UnreadableImage, match="not an image in a supported format"):
        read_image(tmp_path / "script.jpg")
    assert "EPS" not in FORMATS


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UnreadableImage, match="there is no such file"):
        read_image(tmp_path / "none.jpg")
    with pytest.raises(UnreadableImage, match="directory"):
        read_image(tmp_path)


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("factor", [1.5, 3])
def test_an_image_too_large_to_be_safe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    file = save(gradient(), tmp_path / "bomb.png")  # Pillow warns up to twice its limit, and refuses above
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", int(40 * 30 / factor))
    with pytest.raises(UnreadableImage, match="million pixels that are safe to decode"):
        read_image(file)


def test_the_content_counts_not_the_suffix(tmp_path: Path) -> None:
    file = save(gradient(), tmp_path / "photo.png")
    shutil.move(file, tmp_path / "photo.JPG")
    assert close(read_image(tmp_path / "photo.JPG"), gradient(), 0)


def test_every_format_written_by_pillow_is_read_back(tmp_path: Path) -> None:
    for suffix in sorted(SUFFIXES - {".heic", ".heif", ".avif"}):
        assert read_image(save(gradient(), tmp_path / f"image{suffix}")).size == (40, 30)


def test_channels_other_than_one_and_three(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="channels must be 1 or 3, got 2"):
        read_image(tmp_path / "any.jpg", channels=2)


def png(width: int, height: int, depth: int, colour: int, pixels: bytes, transparent: bytes) -> bytes:
    """Write a PNG of one row by hand, for what Pillow does not write."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"tRNS", transparent), (b"IDAT", zlib.compress(b"\0" + pixels)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(kind, data) for kind, data in chunks)
