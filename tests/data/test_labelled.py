import json
from pathlib import Path

import pytest

from sohot.data.labelled import LabelledImages

IMAGES = LabelledImages(
    tuple(Path(f"/data/{name}") for name in ("b/1.jpg", "a/1.jpg", "b/2.jpg")),
    (1, 0, 1),
    ("a", "b", "c"),
    Path("/data"),
)


def test_counts_include_empty_classes() -> None:
    assert IMAGES.counts() == [1, 2, 0]
    assert len(IMAGES) == 3


def test_subsets_keep_order_and_classes() -> None:
    part = IMAGES.subset([2, 1])
    assert [part.name(row) for row in range(2)] == ["b/2.jpg", "a/1.jpg"]
    assert (part.labels, part.classes) == ((1, 0), IMAGES.classes)


def test_renumbering_drops_the_other_classes() -> None:
    part = IMAGES.with_classes(["c", "b"])
    assert (part.labels, part.classes, part.counts()) == ((1, 1), ("c", "b"), [0, 2])


def test_json_gives_the_same_back() -> None:
    assert LabelledImages.from_dict(json.loads(json.dumps(IMAGES.as_dict()))) == IMAGES
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
