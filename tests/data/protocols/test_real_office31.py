"""The protocols on the real images; skipped where the data set is not there."""

import hashlib

import pytest
from real_data import OFFICE31, needs_office31

from sohot.data import check_dataset
from sohot.data.datasets import DataSet, open_dataset
from sohot.data.protocols import make_split, paper_split, rectified_split

pytestmark = needs_office31


@pytest.fixture(scope="module")
def office() -> DataSet:
    return open_dataset("office31", OFFICE31)


def test_official_counts_and_duplicates(office: DataSet) -> None:
    report = check_dataset(office, decode=False)
    assert report.problems() == []
    assert report.repeats() == {"amazon": 71, "dslr": 0, "webcam": 0}
    duplicates = report.as_dict()["duplicates"]
    assert (duplicates["groups"], duplicates["across_classes"], duplicates["across_domains"]) == (49, 0, 0)
    sizes = sorted(len(copies.images) for copies in report.copies)
    assert sizes == [2] * 37 + [3] * 6 + [4] * 4 + [6] * 2


@pytest.mark.parametrize(
    ("shift", "source", "test"), [("A-W", 620, 702), ("A-D", 620, 405), ("W-D", 248, 405), ("D-W", 247, 702)]
)
def test_the_papers_numbers(office: DataSet, shift: str, source: int, test: int) -> None:
    split = paper_split(office, shift, 1)
    assert split.counts() == {"source_train": source, "target_train": 93, "target_test": test}
    assert split.dropped == ()
    assert bool(split.notes) == shift.startswith("D")


@pytest.mark.parametrize("number", [1, 2, 3])
def test_amazon_loses_the_copies_of_what_trains(office: DataSet, number: int) -> None:
    split = paper_split(office, "W-A", number)
    assert split.counts()["target_train"] == 93
    assert split.counts()["target_test"] + len(split.dropped) == 2817 - 93


@pytest.mark.parametrize(("shift", "test"), [("W-A", 845), ("W-D", 149), ("A-W", 238)])
def test_the_rectified_test_sets(office: DataSet, shift: str, test: int) -> None:
    split = rectified_split(office, shift, 1)
    assert split.counts()["target_test"] == test
    assert min(split.sides["target_test"].counts()) >= 2
    assert min(split.sides["validation"].counts()) >= 1
    assert split.sides["target_test"] == rectified_split(office, shift, 4).sides["target_test"]


def test_the_choice_is_the_same_for_ever(office: DataSet) -> None:
    # The names of the files decide, and which of them are copies: so this holds for every copy of the data set.
    split = make_split("paper", office, "A-W", 1)
    names = [f"{side} {file.parent.name}/{file.name}" for side, images in split.sides.items() for file in images.files]
    assert hashlib.sha256("\n".join(names).encode()).hexdigest() == GOLDEN


GOLDEN = "2c22b9ec7d8c251174a11db323f84c54641325f5a3f224f5bd5eb94f043fd272"
