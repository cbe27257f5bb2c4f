"""Lists of images: they name what a folder holds, and what is wrong with one is said with its line."""

import csv
import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from sohot.data import LabelledImages, scan_folder, scan_images, take_shots
from sohot.data.image_places import folder_of
from sohot.data.labelled import UNLABELLED
from sohot.data.manifest import MissingLabels, read_manifest
from sohot.data.manifest_rows import SUFFIXES, is_manifest

MakeFolder = Callable[..., Path]
Pairs = Sequence[tuple[str, str | None]]


@pytest.fixture
def root(make_folder: MakeFolder) -> Path:
    return make_folder({"pen": ["10.png", "9.png", "b/1.png"], "mug": ["2.png", "1.png", "new/3.png"]})


def pairs(images: LabelledImages) -> list[tuple[str, str]]:
    return [(images.name(row), images.classes[images.labels[row]]) for row in range(len(images))]


def as_csv(file: Path, rows: Pairs, header: str = "path,label") -> Path:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    file.write_bytes(f"{header}\r\n{text.getvalue()}".encode())
    return file


def as_json_lines(file: Path, rows: Pairs) -> Path:
    file.write_text("".join(json.dumps({"path": path, "label": label}) + "\n" for path, label in rows))
    return file


# Laws


def test_a_list_of_a_folder_is_that_folder(root: Path) -> None:
    """In any order of its rows, and in each format."""
    folder = scan_folder(root).images
    rows = pairs(folder)
    for file in (
        as_csv(root / "list.csv", rows),
        as_csv(root / "back.csv", rows[::-1]),
        as_json_lines(root / "list.jsonl", rows),
        as_json_lines(root / "back.NDJSON", rows[::-1]),
        as_csv(root / "file.csv", rows, "file,label"),
    ):
        listed = scan_images(file).images
        assert (listed.files, listed.labels, listed.classes) == (folder.files, folder.labels, folder.classes)
        assert take_shots(listed, 2, seed=5)[0].files == take_shots(folder, 2, seed=5)[0].files
        assert (listed.root, listed.origin, folder_of(file)) == (root, str(file), root)
        assert scan_images(file, check=False).images == listed
        assert scan_images(file, labelled=False).images.files == scan_images(root, labelled=False).images.files


def test_a_list_beside_the_images_names_the_same_images(root: Path, tmp_path: Path) -> None:
    folder = scan_folder(root).images
    (tmp_path / "lists").mkdir()
    rows = [(f"../{root.relative_to(tmp_path)}/{name}", label) for name, label in pairs(folder)]
    listed = scan_images(as_csv(tmp_path / "lists" / "list.csv", rows)).images
    assert (listed.files, pairs(listed), listed.root) == (folder.files, pairs(folder), root)
    rows.append((str(folder.files[0]), "mug"))
    with pytest.raises(ValueError, match="is in line 2 already"):
        scan_images(as_csv(tmp_path / "lists" / "list.csv", rows))


def test_paths_are_below_the_list_wherever_it_is_read_from(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = pairs(scan_folder(root).images)
    as_csv(root / "list.csv", expected)
    for place, name in ((root, "list.csv"), (root.parent, "root/list.csv"), (root / "mug", "../list.csv")):
        monkeypatch.chdir(place)
        found = scan_images(Path(name)).images
        assert pairs(found) == expected
        assert all(file.is_file() for file in found.files)


def test_no_file_is_looked_up_by_itself(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = as_csv(root / "list.csv", pairs(scan_folder(root).images))
    looked, stat = [], os.stat
    monkeypatch.setattr(os, "stat", lambda path, **named: looked.append(str(path)) or stat(path, **named))
    read_manifest(file)
    assert not [path for path in looked if path.endswith(".png")]


# Examples


def test_csv_as_spreadsheets_write_it(make_folder: MakeFolder) -> None:
    root = make_folder({"": ["a,b.png", 'c"d.png', "é.png", " e .png", "f\ng.png"]})
    names = '"a,b.png"', '"c""d.png"', "é.png", " e .png", '"f\ng.png"'
    rows = "\r\n".join(f"{number},{name}, mug {number % 2} " for number, name in enumerate(names))
    (root / "list.csv").write_bytes(f"\ufeffid,path, label\r\n\r\n{rows}\r\n".encode())
    found = scan_images(root / "list.csv").images
    assert found.classes == ("mug 0", "mug 1")
    assert sorted(pairs(found)) == sorted(
        zip(["a,b.png", 'c"d.png', "é.png", " e .png", "f\ng.png"], ["mug 0", "mug 1"] * 3, strict=False)
    )


def test_labels_may_be_whole_numbers_in_natural_order(root: Path) -> None:
    names = [name for name, _ in pairs(scan_folder(root).images)][:3]
    rows = zip(names, (10, 9.0, "2"), strict=True)
    file = as_json_lines(root / "list.jsonl", rows)  # type: ignore[arg-type]
    assert scan_images(file).images.classes == ("2", "9", "10")


def test_damaged_images_are_left_out(root: Path) -> None:
    file = as_csv(root / "list.csv", pairs(scan_folder(root).images))
    (root / "mug" / "1.png").write_bytes(b"no picture")
    scan = scan_images(file)
    assert [path.path.name for path in scan.left_out] == ["1.png"]
    assert len(scan.images) == 5
    for name in ("2.png", "new/3.png"):
        (root / "mug" / name).write_bytes(b"no picture")
    with pytest.raises(
        ValueError, match=r"none of the 3 images of class 'mug' in .*list\.csv can be read; the first, "
    ):
        scan_images(file)


def test_a_list_may_hold_images_with_and_without_labels(root: Path) -> None:
    rows: Pairs = [("mug/1.png", "mug"), ("pen/9.png", ""), ("pen/10.png", None), ("mug/2.png", "mug")]
    for file in (as_csv(root / "list.csv", rows), as_json_lines(root / "list.jsonl", rows)):
        with pytest.raises(MissingLabels, match=r"list\.\w+: 2 of 4 rows have no label, the first in line [23]; fill"):
            scan_images(file)
        assert pairs(scan_images(file, partly=True).images) == [("mug/1.png", "mug"), ("mug/2.png", "mug")]
        without = scan_images(file, labelled=False, partly=True).images
        assert pairs(without) == [("pen/9.png", UNLABELLED), ("pen/10.png", UNLABELLED)]
        assert len(scan_images(file, labelled=False).images) == 4


def test_images_without_labels_need_no_column(root: Path) -> None:
    file = as_csv(root / "list.csv", [("pen/9.png",), ("pen/10.png",)], "path")  # type: ignore[list-item]
    assert pairs(scan_images(file, labelled=False, partly=True).images) == [
        ("pen/9.png", UNLABELLED),
        ("pen/10.png", UNLABELLED),
    ]
    labelled = as_csv(root / "all.csv", pairs(scan_folder(root).images))
    assert len(scan_images(labelled, labelled=False, partly=True).images) == 6  # as of a folder of class folders


def test_a_folder_is_never_a_list(root: Path) -> None:
    folder = root.rename(root.with_name("root.csv"))
    assert not is_manifest(folder)
    assert scan_images(folder).images.classes == ("mug", "pen")
    assert SUFFIXES == (".csv", ".jsonl", ".ndjson", ".parquet")


# Parquet


def test_parquet_files_name_the_same_images(root: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow, which reads Parquet, is not installed")
    import pyarrow
    from pyarrow import parquet

    folder = scan_folder(root).images
    paths, labels = zip(*pairs(folder), strict=True)
    file = root / "list.parquet"
    parquet.write_table(pyarrow.table({"id": range(6), "label": labels, "path": paths}), file)
    assert scan_images(file).images.files == folder.files
    parquet.write_table(pyarrow.table({"path": paths, "label": [3, None, 3, 4, 4, 4]}), file)
    with pytest.raises(MissingLabels, match="1 of 6 rows have no label, the first in row 2"):
        scan_images(file)
    assert scan_images(file, partly=True).images.classes == ("3", "4")
    parquet.write_table(pyarrow.table({"path": [*paths, "gone.png"], "label": [*labels, "mug"]}), file)
    with pytest.raises(ValueError, match=r"list\.parquet, row 7: 'gone\.png' cannot be found"):
        scan_images(file)
    parquet.write_table(pyarrow.table({"file": paths, "label": labels}), file)
    assert scan_images(file).images.files == folder.files
    parquet.write_table(pyarrow.table({"name": paths}), file)
    with pytest.raises(ValueError, match=r"list\.parquet: the column 'path' is missing: the columns are 'name'$"):
        scan_images(file)
    file.write_bytes(b"no table")
    with pytest.raises(ValueError, match=r"list\.parquet is not a Parquet file: "):
        scan_images(file)


def test_without_pyarrow_a_sentence_names_the_extra(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "list.parquet").write_bytes(b"")
    for name in ("pyarrow", "pyarrow.parquet", "pandas"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModuleNotFoundError, match=r"list\.parquet needs pyarrow: pip install 'sohot\[parquet\]'"):
        scan_images(root / "list.parquet")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        scan_images(root / "gone.parquet")


# Bad lists

FIRST = "path,label\nmug/1.png,mug\n"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", r"the list .*list\.csv names no images"),
        ("path,label\n\n", r"the list .*list\.csv names no images"),
        ("name,label\n", r"line 1: the column 'path' is missing: the columns are 'name', 'label'$"),
        ("path;label\nmug/1.png;mug\n", r"line 1: the column 'path' is missing: the columns are 'path;label'$"),
        ("path,class\nmug/1.png,mug\n", r"line 1: the column 'label' is missing: the columns are 'path', 'class'$"),
        ("path,label,label\n", "line 1: there are two columns 'label'$"),
        (f"{FIRST}gone.png,mug\n", r"line 3: 'gone\.png' cannot be found: there is no such file$"),
        (f"{FIRST}gone.png,a\nmug/2.png,b\n1.png,c\n", r"line 3: 'gone\.png' .* \(1 other row is wrong like this\)$"),
        (
            f"{FIRST}mug\\2.png,mug\n",
            r"line 3: 'mug\\\\2\.png' cannot be found: there is no such file; write / between",
        ),
        (f"{FIRST}mug,mug\n", "line 3: 'mug' is a folder: name each image in it$"),
        (f"{FIRST},mug\n", "line 3: the path is empty$"),
        (f"{FIRST}mug/2.png,\n", r"list\.csv: 1 of 2 rows have no label, the first in line 3; fill them in, or remove"),
        (f'{FIRST}"pen/9.png",pen\n./mug//1.png,pen\n', r"line 4: '\./mug//1\.png' is in line 2 already$"),
        (f"{FIRST}mug/../../x.png,mug\n", r"line 3: 'mug/\.\./\.\./x\.png' cannot be found: there is no such file$"),
        (f"{FIRST}mug/2.png\n", "line 3: there are 1 values for 2 columns; a value that holds a comma needs quotes$"),
        (f"{FIRST}a,b.png,mug\n", "line 3: there are 3 values for 2 columns"),
        (f'{FIRST}"mug/2.png,mug\n\n', "line 3: this is not CSV: unexpected end of data$"),
        (f'{FIRST}"mug/2.png"x,mug\n', "line 3: this is not CSV: "),
        (f"{FIRST}mug/\udcff.png,mug\n", "line 3: this is not UTF-8 text$"),
        (f"{FIRST}{'x' * 999},mug\n", "line 3: 'x{200}'… cannot be found: "),
        (f'{FIRST}"\x1b[2J\n.png",mug\n', r"line 3: '\\x1b\[2J\\n\.png' cannot be found: there is no such file$"),
    ],
)
def test_what_is_wrong_with_csv_is_said_with_its_line(root: Path, content: str, sentence: str) -> None:
    file = root / "list.csv"
    file.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(ValueError, match=sentence) as error:
        scan_images(file)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("{", "line 3: this is not JSON: "),
        ("[" * 100_000, "line 3: this is not JSON: it is nested too deeply$"),
        ("[1]", "line 3: this is not a JSON object$"),
        ('{"name": "a", "label": "b"}', "line 3: the column 'path' is missing: the columns are 'name', 'label'$"),
        ('{"path": ["a"], "label": "b"}', r"line 3: the path must be text or a whole number, got .*'a'"),
        ('{"path": "a", "label": true}', "line 3: the label must be text or a whole number, got 'True'$"),
        ('{"path": "a", "label": 0.5}', "line 3: the label must be text or a whole number, got '0.5'$"),
        ('{"path": "a\\u0000", "label": "b"}', "line 3: a null character is in it$"),
        ('{"path": "a", "label": "b\\u0000"}', "line 3: a null character is in it$"),
        ('{"path": "\\ud800.png", "label": "b"}', "line 3: .* is no name that this system can store$"),
        ('{"path": "\\ud800/1.png", "label": "b"}', "line 3: .* is no name that this system can store$"),
        ('{"path": null, "label": "b"}', "line 3: the path is empty$"),
    ],
)
def test_what_is_wrong_with_json_lines_is_said_with_its_line(root: Path, line: str, sentence: str) -> None:
    file = as_json_lines(root / "list.jsonl", [("mug/1.png", "mug")])
    file.write_text(f"{file.read_text()}\n{line}\n")
    with pytest.raises(ValueError, match=sentence):
        scan_images(file)


def test_other_files_are_no_lists(root: Path) -> None:
    for labelled in (True, False):
        with pytest.raises(NotADirectoryError, match=r"1\.png is not a folder or a list of images \(\.csv, \.jsonl, "):
            scan_images(root / "mug" / "1.png", labelled=labelled)


def test_pipes_and_missing_lists_are_refused(root: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"the list .*gone\.csv does not exist"):
        scan_images(root / "gone.csv")
    os.mkfifo(root / "pipe.csv")
    with pytest.raises(ValueError, match=r"the list .*pipe\.csv cannot be read: it is a pipe or a device"):
        scan_images(root / "pipe.csv")
    os.mkfifo(root / "pipe.png")
    with pytest.raises(ValueError, match=r"line 2: 'pipe\.png' is a pipe or a device, not a file"):
        scan_images(as_csv(root / "list.csv", [("pipe.png", "mug")]))
