import json
from pathlib import Path

import pytest

from sohot.data import LabelledImages

IMAGES = LabelledImages(
    tuple(Path(f"/data/{name}") for name in ("b/1.jpg", "a/1.jpg", "b/2.jpg")),
    (1, 0, 1),
    ("a", "b", "c"),
    Path("/data"),
)


def test_counts_include_empty_classes() -> None:
    assert IMAGES.counts() == [1, 2, 0]
    assert len(IMAGES) == 3


def test_lists_with_parts_and_groups_stay_together() -> None:
    images = LabelledImages(
        [Path(f"/d/{n}.jpg") for n in range(3)],
        [0, 1, 0],
        ["a", "b"],
        Path("/d"),
        parts=["p", "q", "r"],
        groups=["g", "", "h"],
        reader="idx",
    )
    assert LabelledImages.from_dict(json.loads(json.dumps(images.as_dict()))) == images
    part = images.subset([2, 1])
    assert (part.parts, part.groups, part.reader, part.name(0)) == (("r", "q"), ("h", ""), "idx", "2.jpg#r")
    renamed = images.with_classes(["b"])
    assert (renamed.labels, renamed.parts, renamed.groups) == ((0,), ("q",), ("",))
    assert len(images.subset([])) == 0
    with pytest.raises(ValueError, match="parts must be empty or have one entry for each of 1 files"):
        LabelledImages([Path("1.jpg")], [0], ["a"], parts=["x", "y"])


def test_names_that_are_not_text_survive_json() -> None:
    odd = LabelledImages((Path("caf\udce9.jpg"),), (0,), ("x",))
    assert LabelledImages.from_dict(json.loads(json.dumps(odd.as_dict()))) == odd


def test_a_file_outside_the_root_is_named_in_full() -> None:
    assert LabelledImages((Path("/else/1.jpg"),), (0,), ("a",), Path("/data")).name(0) == "/else/1.jpg"


@pytest.mark.parametrize(
    ("labels", "classes", "sentence"),
    [
        ((0, 1), ("a", "b"), "files and labels must match in number, got 1 and 2"),
        ((2,), ("a", "b"), r"labels must lie in 0 … 1, got 2"),
        ((-1,), ("a", "b"), r"labels must lie in 0 … 1, got -1"),
        ((0,), ("a", "a"), "classes must not repeat a name"),
    ],
)
def test_bad_input_is_named(labels: tuple[int, ...], classes: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        LabelledImages((Path("1.jpg"),), labels, classes)
