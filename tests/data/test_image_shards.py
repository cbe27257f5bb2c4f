"""Images in tar and Parquet files are those of a folder, in the order of the files."""

import io
import tarfile
from pathlib import Path

import pytest
from PIL import Image

from sohot.data import UnreadableImage, read_image
from sohot.data.image_shards import images_in, scan_shards, shards_at
from sohot.runs import find_images

COLOURS = ("red", "green", "blue")


def png(colour: str) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (4, 4), colour).save(stream, "PNG")
    return stream.getvalue()


def write_tar(file: Path, entries: dict[str, bytes], mode: str = "w") -> Path:
    with tarfile.open(file, mode) as opened:
        for name, content in entries.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            opened.addfile(entry, io.BytesIO(content))
    return file


def write_parquet(file: Path, rows: int = 3, *, struct: bool = False, labels: bool = True, group: int = 2) -> Path:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow, which writes Parquet, is not installed")
    import pyarrow

    contents = [png(COLOURS[row % 3]) for row in range(rows)]
    images = [{"bytes": one, "path": None} for one in contents] if struct else contents
    columns = {"image": images, **({"label": [COLOURS[row % 3] for row in range(rows)]} if labels else {})}
    parquet.write_table(pyarrow.table(columns), file, row_group_size=group)
    return file


@pytest.fixture
def webdataset(tmp_path: Path) -> Path:
    """A tar file as WebDataset writes it: each image beside the text of its class."""
    entries = {}
    for number, colour in enumerate(COLOURS):
        entries |= {f"{number:04d}.png": png(colour), f"{number:04d}.cls": f"{colour}\n".encode()}
    return write_tar(tmp_path / "000.tar", entries)


def colour_of(file: Path) -> tuple[int, ...]:
    pixel = read_image(file).getpixel((0, 0))
    assert isinstance(pixel, tuple)
    return pixel


# The same images


@pytest.mark.parametrize("struct", [False, True])
def test_images_in_a_shard_are_those_that_were_put_there(tmp_path: Path, webdataset: Path, struct: bool) -> None:
    table = write_parquet(tmp_path / "000.parquet", struct=struct)
    for shard in (webdataset, table):
        found = list(images_in(shard))
        assert [image.label for image in found] == list(COLOURS)
        assert [colour_of(image.file) for image in found] == [(255, 0, 0), (0, 128, 0), (0, 0, 255)]
        assert find_images([shard]) == [image.file for image in found]


def test_a_folder_of_shards_is_all_of_them_in_natural_order(tmp_path: Path) -> None:
    for number in (10, 2):
        write_tar(tmp_path / f"{number}.tar", {f"{number}.png": png("red")})
    assert find_images([tmp_path]) == [tmp_path / "2.tar" / "2.png", tmp_path / "10.tar" / "10.png"]
    (tmp_path / "beside.png").write_bytes(png("red"))  # a folder of images, in which an archive may lie about
    assert find_images([tmp_path]) == [tmp_path / "beside.png"]


def test_classes_are_texts_beside_images_or_folders(tmp_path: Path, webdataset: Path) -> None:
    folders = write_tar(tmp_path / "folders.tar", {f"./{name}/1.png": png(name) for name in COLOURS})
    for shard in (webdataset, folders):
        images = scan_shards(shard).images
        assert images.classes == ("blue", "green", "red")
        assert [images.classes[label] for label in images.labels] == list(COLOURS)
    assert images.name(0) == "red/1.png"
    assert scan_shards(webdataset, labelled=False).images.classes == ("unlabelled",)


def test_a_list_is_not_taken_for_a_shard(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow, which writes Parquet, is not installed")
    import pyarrow

    (tmp_path / "1.png").write_bytes(png("red"))
    parquet.write_table(pyarrow.table({"path": ["1.png"], "image": [b"thumbnail"]}), tmp_path / "list.parquet")
    assert shards_at(tmp_path / "list.parquet") == []
    assert find_images([tmp_path / "list.parquet"]) == [tmp_path / "1.png"]


# Bad input


def test_damaged_images_are_left_out(tmp_path: Path) -> None:
    shard = write_tar(tmp_path / "a.tar", {"1.png": png("red"), "2.png": b"\x89PNG", "3.png": b""})
    scan = scan_shards(shard, labelled=False)
    assert [scan.images.name(row) for row in range(len(scan.images))] == ["1.png"]
    assert [str(one.path.relative_to(tmp_path)) for one in scan.left_out] == ["a.tar/2.png", "a.tar/3.png"]


def test_entries_that_lead_out_of_a_folder_are_passed_over(tmp_path: Path) -> None:
    names = ("../1.png", "/2.png", "a/../3.png", ".4.png", "5.txt", "6.png")
    shard = write_tar(tmp_path / "a.tar", dict.fromkeys(names, png("red")))
    assert [image.file.name for image in images_in(shard)] == ["6.png"]


@pytest.mark.parametrize("name", ["gone.png", "1.png/more.png"])
def test_an_image_that_is_not_there_is_named(tmp_path: Path, name: str) -> None:
    shard = write_tar(tmp_path / "a.tar", {"1.png": png("red")})
    with pytest.raises(UnreadableImage, match=r"a\.tar.*cannot be read: there is no such file"):
        read_image(shard / name)
    table = write_parquet(tmp_path / "a.parquet")
    with pytest.raises(UnreadableImage, match="there is no such file"):
        read_image(table / "3")


def test_a_compressed_tar_file_is_refused(tmp_path: Path) -> None:
    shard = write_tar(tmp_path / "a.tar", {"1.png": png("red")}, "w:gz")
    with pytest.raises(ValueError, match=r"a\.tar is not an uncompressed tar file: "):
        find_images([shard])


def test_an_image_without_a_label_is_named(tmp_path: Path) -> None:
    shard = write_tar(tmp_path / "a.tar", {"red/1.png": png("red"), "2.png": png("red")})
    with pytest.raises(ValueError, match=r"a\.tar/2\.png has no label: its shard needs one for each image"):
        scan_shards(shard)
    with pytest.raises(ValueError, match="holds no images"):
        scan_shards(write_tar(tmp_path / "b.tar", {"1.txt": b""}))
    assert {image.label for image in images_in(write_parquet(tmp_path / "a.parquet", labels=False))} == {None}
