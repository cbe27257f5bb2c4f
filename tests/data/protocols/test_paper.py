from pathlib import Path

import pytest
from official_sets import make_office31, make_rgbd_caltech, make_voc_sketches, write_picture

from sohot.data.datasets import open_dataset
from sohot.data.protocols import few_shot_folds, folds_split, k_shot_split, paper_split, rectified_split
from sohot.data.protocols.rectified import share_out


def test_office_numbers(tmp_path: Path) -> None:
    dataset = open_dataset("office31", make_office31(tmp_path, {"amazon": 24, "dslr": 7, "webcam": 10}))
    split = paper_split(dataset, "A-W", 10)
    assert split.counts() == {"source_train": 60, "target_train": 9, "target_test": 21}
    assert split.notes == ()
    short = paper_split(dataset, "D-W", 1)
    assert short.counts() == {"source_train": 21, "target_train": 9, "target_test": 21}
    assert short.notes == (
        "source_train: classes with fewer than 8 images give what they have: back_pack (7), mug (7), ruler (7)",
    )
    others = {paper_split(dataset, "A-W", number).fingerprint for number in range(1, 11)}
    assert len(others) == 10


def test_copies_of_a_training_image_are_dropped_from_the_test(tmp_path: Path) -> None:
    make_office31(tmp_path, {"amazon": 3, "webcam": 1})
    mugs = tmp_path / "webcam" / "images" / "mug"
    for number in range(2, 8):
        (mugs / f"frame_{number:04}.jpg").write_bytes((mugs / "frame_0001.jpg").read_bytes())
    write_picture(mugs / "frame_0008.jpg", 1000)
    split = paper_split(open_dataset("office31", tmp_path), "A-W", 1)
    mug = split.classes.index("mug")
    assert split.sides["target_train"].counts()[mug] == 2  # two pictures, however many files
    assert split.sides["target_test"].counts()[mug] == 0
    assert len(split.dropped) == 6
    assert {one.repeats for one in split.dropped} == {"webcam/images/mug/frame_0001.jpg"}
    assert "files dropped because they repeat others: 6 of target_test" in split.notes
    assert "target_test has no image of 3 classes: back_pack, mug, ruler" in split.notes


def test_a_source_image_that_is_in_the_target_does_not_train(tmp_path: Path) -> None:
    make_office31(tmp_path, {"amazon": 3, "webcam": 4})
    copy = tmp_path / "amazon" / "images" / "mug" / "frame_0002.jpg"
    copy.write_bytes((tmp_path / "webcam" / "images" / "mug" / "frame_0003.jpg").read_bytes())
    split = paper_split(open_dataset("office31", tmp_path), "A-W", 1)
    assert split.counts() == {"source_train": 8, "target_train": 9, "target_test": 3}
    (dropped,) = split.dropped
    assert (dropped.file, dropped.side) == ("amazon/images/mug/frame_0002.jpg", "source_train")
    assert dropped.repeats == "webcam/images/mug/frame_0003.jpg"


def test_the_other_data_sets(tmp_path: Path) -> None:
    depth = open_dataset("rgbd-caltech", make_rgbd_caltech(tmp_path / "r", views=26, photos=6))
    split = paper_split(depth, None, 5, target_shots=5)
    assert split.counts() == {"source_train": 500, "target_train": 50, "target_test": 10}
    with pytest.raises(ValueError, match="target_shots must be one of 3, 5, 10, 15, 20 in the paper's protocol"):
        paper_split(depth, None, 1, target_shots=4)
    sketches = open_dataset("voc-sketches", make_voc_sketches(tmp_path / "v"))
    split = paper_split(sketches, "voc-sketches", 5)
    assert split.counts() == {"source_train": 28, "target_train": 42, "target_test": 14}
    with pytest.raises(ValueError, match=r"split must be in 1 … 5, got 6"):
        paper_split(sketches, None, 6)
    with pytest.raises(ValueError, match="the paper has no shift from 'sketches' in voc-sketches"):
        paper_split(sketches, "sketches-voc", 1)


def test_what_the_paper_does_not_have(tmp_path: Path) -> None:
    for domain in ("a", "b"):
        for number in range(4):
            write_picture(tmp_path / domain / "mug" / f"{number}.png", number + 10 * (domain == "a"))
    dataset = open_dataset("domains", tmp_path)
    with pytest.raises(ValueError, match="the paper does not use domains; use the protocol k-shot"):
        paper_split(dataset, "a-b", 1)
    with pytest.raises(ValueError, match="give source_shots: the paper draws no source images from 'a' of domains"):
        rectified_split(dataset, "a-b", 1)
    assert rectified_split(dataset, "a-b", 1, source_shots=2).counts() == {
        "source_train": 2,
        "target_train": 3,
        "validation": 0,
        "target_test": 1,
    }


def test_rectified_shares() -> None:
    assert share_out([10] * 5) == [3] * 5
    assert sum(share_out([7, 11, 13, 29])) == 60 * 3 // 10
    assert share_out([1, 1, 1, 1]) == [0] * 4  # one image cannot both train and test
    assert share_out([2, 3, 4]) == [1, 1, 1]
    assert share_out([]) == []


def test_rectified_numbers(tmp_path: Path) -> None:
    dataset = open_dataset("office31", make_office31(tmp_path, {"amazon": 24, "dslr": 8, "webcam": 11}))
    split = rectified_split(dataset, "A-W", 5)
    assert split.counts() == {"source_train": 60, "target_train": 9, "validation": 15, "target_test": 9}
    assert split.sides["target_test"] == rectified_split(dataset, "D-W", 2).sides["target_test"]
    with pytest.raises(ValueError, match=r"split must be in 1 … 5, got 0"):
        rectified_split(dataset, "A-W", 0)
    with pytest.raises(TypeError, match="split must be an integer, got True"):
        rectified_split(dataset, "A-W", True)


def test_k_shot_numbers(tmp_path: Path) -> None:
    dataset = open_dataset("office31", make_office31(tmp_path, {"amazon": 4, "webcam": 5}))
    split = k_shot_split(dataset, "A-W", 99, target_shots=2, validation_shots=1)
    assert split.counts() == {"source_train": 12, "target_train": 6, "validation": 3, "target_test": 6}
    none = k_shot_split(dataset, "A-W", 0, target_shots=0)
    assert none.counts() == {"source_train": 12, "target_train": 0, "target_test": 15}
    with pytest.raises(ValueError, match="source_shots must be at least 1, got 0"):
        k_shot_split(dataset, "A-W", source_shots=0)
    with pytest.raises(ValueError, match="target_shots must be at least 0, got -1"):
        k_shot_split(dataset, "A-W", target_shots=-1)


def test_each_of_three_shots_is_left_out_in_turn(tmp_path: Path) -> None:
    dataset = open_dataset("office31", make_office31(tmp_path, {"amazon": 4, "webcam": 5}))
    train = paper_split(dataset, "A-W", 1).sides["target_train"]
    folds = few_shot_folds(train)
    assert [(fit.counts(), held.counts()) for fit, held in folds] == [([2] * 3, [1] * 3)] * 3
    assert sorted(file for _, held in folds for file in held.files) == sorted(train.files)
    assert [held.files for _, held in few_shot_folds(train)] == [held.files for _, held in folds]
    assert len(few_shot_folds(train, folds=2)) == 2
    with pytest.raises(ValueError, match="folds must be an integer of at least 2, got 1"):
        few_shot_folds(train, folds=1)
    lonely = train.subset([0, 3, 4])
    assert [held.counts() for _, held in few_shot_folds(lonely)] == [[0, 1, 0]] * 2


def test_folds_use_the_labelled_target_images_alone(tmp_path: Path) -> None:
    dataset = open_dataset("office31", make_office31(tmp_path, {"amazon": 24, "webcam": 10}))
    for number in (1, 2):
        whole = paper_split(dataset, "A-W", number)
        folds = [folds_split(dataset, "A-W", 3 * (number - 1) + fold) for fold in (1, 2, 3)]
        held = [file for fold in folds for file in fold.sides["target_test"].files]
        assert sorted(held) == sorted(whole.sides["target_train"].files)  # each once, and no test image
        for fold in folds:
            assert fold.counts() == {"source_train": 60, "target_train": 6, "target_test": 3}
            assert fold.sides["source_train"] == whole.sides["source_train"]
            assert fold.sides["target_test"].counts() == [1, 1, 1]
            assert fold.settings["paper_split"] == number
    assert len({folds_split(dataset, "A-W", number).fingerprint for number in range(1, 31)}) == 30


def test_folds_beyond_what_there_is_are_refused(tmp_path: Path) -> None:
    dataset = open_dataset("office31", make_office31(tmp_path, {"amazon": 4, "webcam": 2}))
    with pytest.raises(ValueError, match=r"split must be in 1 … 30, got 31"):
        folds_split(dataset, "A-W", 31)
    with pytest.raises(ValueError, match="split 3 would be fold 3, but no class has more than 2 pictures"):
        folds_split(dataset, "A-W", 3)
