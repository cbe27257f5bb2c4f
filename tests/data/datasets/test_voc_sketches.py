from pathlib import Path

import pytest
from official_sets import make_voc_sketches, voc_object, write_voc

from sohot.data.datasets import open_dataset
from sohot.data.datasets.voc_sketches import CLASSES, read_annotation
from sohot.data.readers import read_item


def voc(root: Path, **options: bool) -> list[tuple[str, str]]:
    images = open_dataset("voc-sketches", root, **options).domains["voc"]
    return [(images.classes[label], images.name(row)) for row, label in enumerate(images.labels)]


def test_fourteen_classes_from_both_releases(tmp_path: Path) -> None:
    dataset = open_dataset("voc-sketches", make_voc_sketches(tmp_path, photos=2, sketches=4))
    photos, sketches = dataset.pair(None)
    assert photos.classes == sketches.classes == tuple(CLASSES)
    assert len(CLASSES) == 14
    assert (photos.counts(), sketches.counts()) == ([2] * 14, [4] * 14)
    assert dataset.official == {"sketches": 1120}
    assert dataset.problems == (
        "voc has 30 annotated photographs; official releases have: trainval 5011, test 4952, trainval and test 9963",
    )


def test_an_object_is_cut_out_by_its_box(tmp_path: Path) -> None:
    make_voc_sketches(tmp_path)
    images = open_dataset("voc-sketches", tmp_path).domains["voc"]
    assert images.parts[0] == "1,2,8,9"  # Pascal counts from 1 and includes the last pixel
    assert read_item(images, 0).size == (7, 7)


def test_difficult_and_truncated_objects_by_choice(tmp_path: Path) -> None:
    boxes = [(1, 1, 5, 5), (2, 2, 6, 6), (3, 3, 7, 7)]
    write_voc(
        tmp_path,
        1,
        voc_object("dog", boxes[0]),
        voc_object("dog", boxes[1], difficult=1),
        voc_object("dog", boxes[2], truncated=1),
    )
    name = "JPEGImages/000001.jpg"
    plain, hard, cut = f"{name}#0,0,5,5", f"{name}#1,1,6,6", f"{name}#2,2,7,7"
    assert voc(tmp_path) == [("dog", plain), ("dog", cut)]
    assert voc(tmp_path, difficult=True) == [("dog", plain), ("dog", hard), ("dog", cut)]
    assert voc(tmp_path, truncated=False) == [("dog", plain)]


def test_whole_photographs_have_one_label(tmp_path: Path) -> None:
    write_voc(tmp_path, 1, voc_object("dog", (1, 1, 5, 5)), voc_object("dog", (2, 2, 6, 6)))
    write_voc(tmp_path, 2, voc_object("dog"), voc_object("cat"))
    write_voc(tmp_path, 3, voc_object("tvmonitor"))
    write_voc(tmp_path, 4, voc_object("dog"), voc_object("person", difficult=1))
    assert voc(tmp_path, whole=True) == [("dog", "JPEGImages/000001.jpg"), ("tv", "JPEGImages/000003.jpg")]


def test_objects_of_one_photograph_are_one_group(tmp_path: Path) -> None:
    write_voc(tmp_path, 1, voc_object("dog", (1, 1, 5, 5)), voc_object("cat", (2, 2, 6, 6)))
    write_voc(tmp_path, 2, voc_object("dog"))
    images = open_dataset("voc-sketches", tmp_path).domains["voc"]
    assert sorted(images.groups) == ["voc/000001", "voc/000001", "voc/000002"]


def test_one_box_with_two_names_is_no_example(tmp_path: Path) -> None:
    write_voc(tmp_path, 1, voc_object("dog"), voc_object("cat"), voc_object("cow", (1, 1, 2, 2)))
    assert voc(tmp_path) == [("cow", "JPEGImages/000001.jpg#0,0,2,2")]


def test_broken_annotations_are_left_out_and_named(tmp_path: Path) -> None:
    for number in range(1, 6):
        write_voc(tmp_path, number, voc_object("dog"))
    folder = tmp_path / "VOCdevkit" / "VOC2007"
    (folder / "Annotations" / "000001.xml").write_text("<annotation>")
    (folder / "Annotations" / "000002.xml").write_text("<a><object><name>dog</name></object></a>")
    write_voc(tmp_path, 3, voc_object("dog", (5, 5, 4, 6)))
    (folder / "JPEGImages" / "000004.jpg").unlink()
    dataset = open_dataset("voc-sketches", tmp_path)
    assert len(dataset.domains["voc"]) == 1
    reasons = {one.path.stem: one.reason for one in dataset.left_out}
    assert reasons["000001"].startswith("it is not XML")
    assert reasons["000002"] == "an object in it has no name or no box"
    assert reasons["000003"] == "the box 5,5,4,6 of a dog in it is empty"
    assert reasons["000004"] == "its photograph 000004.jpg is missing"
    (folder / "Annotations" / "000005.xml").write_text(
        "<a><object><name>dog</name><bndbox><xmin>x</xmin></bndbox></object></a>"
    )
    with pytest.raises(ValueError, match="the box of a dog in it lacks a number"):
        read_annotation(folder / "Annotations" / "000005.xml")
