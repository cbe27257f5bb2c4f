from pathlib import Path

import pytest
from official_sets import make_office31, write_picture

from sohot.data.datasets import open_dataset

COUNTS = {"amazon": 4, "dslr": 3, "webcam": 2}


@pytest.mark.parametrize("level", ["images", ""])
@pytest.mark.parametrize("outer", ["", "domain_adaptation_images", "office31"])
def test_every_layout_gives_the_same_names(tmp_path: Path, level: str, outer: str) -> None:
    make_office31(tmp_path / outer, COUNTS, level)
    dataset = open_dataset("office31", tmp_path)
    assert {name: len(images) for name, images in dataset.domains.items()} == {"amazon": 12, "dslr": 9, "webcam": 6}
    assert dataset.domains["dslr"].name(3) == "mug/frame_0001.jpg"
    assert dataset.problems == ()


@pytest.mark.parametrize(
    ("shift", "spelled", "source", "target"),
    [("A-W", "A-W", "amazon", "webcam"), ("d-amazon", "D-A", "dslr", "amazon"), ("WEBCAM-d", "W-D", "webcam", "dslr")],
)
def test_shifts_have_one_spelling(tmp_path: Path, shift: str, spelled: str, source: str, target: str) -> None:
    dataset = open_dataset("office31", make_office31(tmp_path, COUNTS))
    assert dataset.parse_shift(shift) == (spelled, source, target)
    assert [len(images) for images in dataset.pair(shift)] == [3 * COUNTS[source], 3 * COUNTS[target]]


@pytest.mark.parametrize("shift", ["A", "A-X", "", "amazon", "AW"])
def test_other_shifts_are_refused(tmp_path: Path, shift: str) -> None:
    dataset = open_dataset("office31", make_office31(tmp_path, COUNTS))
    with pytest.raises(ValueError, match="shift must be one of A-W, A-D, W-A, W-D, D-A, D-W, got"):
        dataset.parse_shift(shift)


def test_one_domain_is_no_shift_and_several_shifts_need_a_choice(tmp_path: Path) -> None:
    dataset = open_dataset("office31", make_office31(tmp_path, COUNTS))
    with pytest.raises(ValueError, match="a shift needs two different domains, got 'amazon' twice"):
        dataset.parse_shift("A-A")
    with pytest.raises(ValueError, match=r"shift must be one of A-W"):
        dataset.parse_shift(None)


def test_a_missing_domain_is_said_and_its_shifts_refused(tmp_path: Path) -> None:
    dataset = open_dataset("office31", make_office31(tmp_path, {"amazon": 2, "webcam": 2}))
    assert dataset.problems == ("the domain dslr is missing",)
    assert len(dataset.pair("A-W")[0]) == 6
    with pytest.raises(FileNotFoundError, match="the domain 'dslr' of office31 is not in"):
        dataset.parse_shift("A-D")


def test_another_folder_is_refused(tmp_path: Path) -> None:
    write_picture(tmp_path / "mug" / "1.jpg")
    with pytest.raises(FileNotFoundError, match=r"does not contain office31: .* `sohot data fetch office31`"):
        open_dataset("office31", tmp_path)
    with pytest.raises(FileNotFoundError, match="missing does not exist"):
        open_dataset("office31", tmp_path / "missing")
