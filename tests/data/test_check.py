import json
from pathlib import Path

import pytest
from official_sets import make_digits, make_office31, write_picture

from sohot.data import LabelledImages, check_dataset, open_dataset
from sohot.data.check import find_copies


@pytest.fixture
def office(tmp_path: Path) -> Path:
    return make_office31(tmp_path / "office31", {"amazon": 4, "dslr": 3, "webcam": 2})


def copy(root: Path, one: str, two: str) -> None:
    (root / two).parent.mkdir(parents=True, exist_ok=True)
    (root / two).write_bytes((root / one).read_bytes())


def test_counts_are_compared_with_the_official_ones(office: Path) -> None:
    report = check_dataset(open_dataset("office31", office))
    assert report.problems() == [
        "amazon has 12 images, the official release has 2817",
        "dslr has 9 images, the official release has 498",
        "webcam has 6 images, the official release has 795",
    ]
    content = report.as_dict()
    assert json.loads(json.dumps(content)) == content
    assert content["ok"] is False
    assert content["domains"]["dslr"] == {
        "images": 9,
        "official": 498,
        "classes": {"back_pack": 3, "mug": 3, "ruler": 3},
        "repeats": 0,
        "unreadable": 0,
    }
    assert content["duplicates"]["groups"] == 0


def test_copies_within_and_across_classes_and_domains(office: Path) -> None:
    copy(office, "amazon/images/mug/frame_0001.jpg", "amazon/images/mug/frame_0011.jpg")
    copy(office, "amazon/images/mug/frame_0001.jpg", "amazon/images/mug/frame_0012.jpg")
    copy(office, "amazon/images/mug/frame_0002.jpg", "webcam/images/mug/frame_0011.jpg")
    copy(office, "dslr/images/mug/frame_0001.jpg", "dslr/images/ruler/frame_0011.jpg")
    report = check_dataset(open_dataset("office31", office), decode=False)
    assert report.repeats() == {"amazon": 2, "dslr": 1, "webcam": 0}
    content = report.as_dict()["duplicates"]
    assert {name: content[name] for name in ("groups", "repeats", "across_classes", "across_domains")} == {
        "groups": 3,
        "repeats": 3,
        "across_classes": 1,
        "across_domains": 1,
    }
    assert "one picture has the labels mug, ruler: mug/frame_0001.jpg, ruler/frame_0011.jpg" in report.problems()
    assert report.remarks() == [
        "amazon holds 2 byte-identical repeats; protocols keep copies on one side",
        "dslr holds 1 byte-identical repeats; protocols keep copies on one side",
        "1 pictures occur in several domains; protocols drop them from the source",
    ]


def test_images_that_cannot_be_read_are_named(office: Path) -> None:
    (office / "dslr" / "images" / "mug" / "frame_0002.jpg").write_bytes(b"")
    seen: list[tuple[str, int, int]] = []
    report = check_dataset(open_dataset("office31", office), progress=lambda *stage: seen.append(stage))
    assert report.broken == (("dslr", "mug/frame_0002.jpg", "the file is empty"),)
    assert "dslr: mug/frame_0002.jpg cannot be read: the file is empty" in report.problems()
    assert seen[-1] == ("decoding webcam", 6, 6)
    assert check_dataset(open_dataset("office31", office), decode=False).broken == ()


def test_all_is_well(tmp_path: Path) -> None:
    for domain in ("a", "b"):
        for number in range(2):
            write_picture(tmp_path / domain / "mug" / f"{number}.png", number + 5 * (domain == "a"))
    report = check_dataset(open_dataset("domains", tmp_path))
    assert (report.problems(), report.remarks(), report.as_dict()["ok"]) == ([], [], True)


def test_digits_are_looked_at_one_by_one(tmp_path: Path) -> None:
    dataset = open_dataset("digits", make_digits(tmp_path))
    report = check_dataset(dataset)
    assert report.broken == ()
    assert report.problems()[0] == "mnist has 80 images, the official release has 70000"
    images = dataset.domains["mnist"]
    twice = images.subset([0, 1, 0])
    (copies,) = find_copies({"mnist": twice})
    assert len(copies.images) == 2


def test_boxes_in_one_file_are_different_images(tmp_path: Path) -> None:
    files = [write_picture(tmp_path / f"{name}.png", 1) for name in "ab"]
    images = LabelledImages([files[0], *files], [0] * 3, ["mug"], tmp_path, parts=["0,0,1,1", "0,0,2,2", "0,0,1,1"])
    (copies,) = find_copies({"photos": images})
    assert [name for _, _, name in copies.images] == ["a.png#0,0,1,1", "b.png#0,0,1,1"]
