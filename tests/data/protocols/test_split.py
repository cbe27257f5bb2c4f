import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from official_sets import make_digits, make_office31, make_rgbd_caltech, make_voc_sketches

from sohot.data import InputSpec, UnreadableImage, load_batch
from sohot.data.datasets import DataSet, open_dataset
from sohot.data.protocols import Split, k_shot_split, make_split, paper_split, read_split, split_bytes, write_split

COUNTS = {"amazon": 9, "dslr": 8, "webcam": 6}
SPEC = InputSpec(size=4, mean=(0.5,), std=(0.5,), resize=4)


@pytest.fixture
def office(tmp_path: Path) -> DataSet:
    return open_dataset("office31", make_office31(tmp_path / "office31", COUNTS))


def test_what_is_stored_comes_back(office: DataSet, tmp_path: Path) -> None:
    split = paper_split(office, "A-W", 1)
    write_split(split, tmp_path / "split.json")
    assert read_split(tmp_path / "split.json", office.root) == split
    content = json.loads((tmp_path / "split.json").read_bytes())
    assert content["sides"]["target_train"]["files"][0].startswith("webcam/images/back_pack/frame_")
    assert content["fingerprint"] == split.fingerprint
    assert content["counts"] == {"source_train": 27, "target_train": 9, "target_test": 9}


def test_the_choice_is_the_same_for_ever(office: DataSet) -> None:
    """The order written down here is what every stored result rests on."""

    def sha256(*parts: object) -> bytes:
        return hashlib.sha256("\0".join(map(str, parts)).encode()).digest()

    seed = int.from_bytes(sha256("paper", "office31", "A-W", 1, "target_train"), "big")
    expected = []
    for name in ("back_pack", "mug", "ruler"):
        files = [f"{name}/frame_{number:04}.jpg" for number in range(1, 7)]
        expected += sorted(sorted(files, key=lambda file: sha256(seed, name, file))[:3])
    drawn = paper_split(office, "A-W", 1).sides["target_train"].files
    assert [f"{file.parent.name}/{file.name}" for file in drawn] == expected


def test_layouts_draw_the_same_images(office: DataSet, tmp_path: Path) -> None:
    flat = open_dataset("office31", make_office31(tmp_path / "flat", COUNTS, level=""))
    one, two = paper_split(office, "D-A", 3), paper_split(flat, "D-A", 3)
    for side in one.sides:
        names = [[(file.parent.name, file.name) for file in split.sides[side].files] for split in (one, two)]
        assert names[0] == names[1]


@pytest.mark.parametrize(
    ("name", "make", "shift"),
    [
        ("rgbd-caltech", make_rgbd_caltech, None),
        ("voc-sketches", make_voc_sketches, None),
        ("digits", make_digits, "U-M"),
    ],
)
def test_images_that_are_more_than_a_file(tmp_path: Path, name: str, make, shift: str | None) -> None:  # type: ignore[no-untyped-def]
    dataset = open_dataset(name, make(tmp_path))
    split = k_shot_split(dataset, shift, 0, target_shots=1, source_shots=2)
    again = Split.from_dict(json.loads(split_bytes(split)), tmp_path)
    assert again == split
    for side in again.sides.values():
        assert load_batch(side, range(3), SPEC).shape == (3, 1, 4, 4)


def test_views_of_one_object_stay_on_one_side(tmp_path: Path) -> None:
    dataset = open_dataset("rgbd-caltech", make_rgbd_caltech(tmp_path, views=3))
    turned = replace(dataset, shifts=("caltech-depth",))
    split = k_shot_split(turned, "caltech-depth", 0, target_shots=1)
    assert split.sides["target_train"].counts() == [1] * 10
    assert split.sides["target_test"].counts() == [3] * 10  # all views of the other object
    assert len(split.dropped) == 20  # the other views of the object that trains
    assert all(Path(one.file).parent == Path(one.repeats).parent for one in split.dropped)


def test_a_changed_or_strange_file_is_refused(office: DataSet, tmp_path: Path) -> None:
    file = tmp_path / "split.json"
    content = paper_split(office, "A-W", 1).as_dict()
    changed = json.loads(json.dumps(content))
    changed["sides"]["target_train"]["files"].pop()
    for text, sentence in [
        (json.dumps(changed), "does not match its fingerprint: it was changed"),
        (json.dumps({**content, "format": 9}), "a split of format 9 cannot be read"),
        ("{}", "this is not a split: KeyError"),
        ("[]", "is not a JSON object"),
        ("{", "is not JSON"),
    ]:
        file.write_text(text)
        with pytest.raises(ValueError, match=sentence):
            read_split(file, office.root)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        read_split(tmp_path / "missing.json", office.root)


def test_a_stored_split_is_checked_against_the_files(office: DataSet, tmp_path: Path) -> None:
    split = paper_split(office, "A-W", 1)
    write_split(split, tmp_path / "split.json")
    test, train = split.sides["target_test"].files[0], split.sides["target_train"].files[0]
    test.write_bytes(train.read_bytes())
    with pytest.raises(ValueError, match=r"1 leak between sides: .* are byte-identical"):
        read_split(tmp_path / "split.json", office.root)
    test.unlink()
    with pytest.raises(UnreadableImage, match="there is no such file"):
        read_split(tmp_path / "split.json", office.root)


def test_sides_have_names(office: DataSet) -> None:
    split = paper_split(office, "A-W", 1)
    with pytest.raises(ValueError, match=r"sides must be among source_train, .*, got 'test'"):
        replace(split, sides={"test": split.sides["target_test"]})


def test_protocols_take_their_own_numbers(office: DataSet) -> None:
    with pytest.raises(
        ValueError, match="protocol must be one of 'paper', 'paper-folds', 'rectified', 'k-shot', got 'x'"
    ):
        make_split("x", office, "A-W")
    with pytest.raises(ValueError, match="the protocol paper takes no source_shots; it takes target_shots, leave_out"):
        make_split("paper", office, "A-W", source_shots=3)
    assert make_split("k-shot", office, "A-W", 0, source_shots=3).counts()["source_train"] == 9
