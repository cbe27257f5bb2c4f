import json
from pathlib import Path

import pytest
from official_sets import write_picture

from sohot.data import ClassMismatchError, LabelledImages
from sohot.data.datasets import dataset_names, open_dataset, read_class_table
from sohot.data.datasets.class_table import apply_table
from sohot.data.datasets.sources import dataset_sources


def make(root: Path, domains: dict[str, list[str]]) -> Path:
    for place, (domain, classes) in enumerate(domains.items()):
        for number, name in enumerate(classes):
            for picture in range(2):
                write_picture(root / domain / name / f"{picture}.png", place * 100 + number * 10 + picture)
    return root


def test_every_folder_is_a_domain(tmp_path: Path) -> None:
    make(tmp_path, {"photo-shop": ["mug", "pen"], "sketch": ["mug", "pen"], ".hidden": ["mug"]})
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "train.txt").write_text("")
    dataset = open_dataset("domains", tmp_path)
    assert list(dataset.domains) == ["photo-shop", "sketch"]
    assert dataset.shifts == ("photo-shop-sketch", "sketch-photo-shop")
    assert dataset.parse_shift("Photo-Shop-sketch") == ("photo-shop-sketch", "photo-shop", "sketch")


def test_other_classes_are_refused_left_out_or_brought_together(tmp_path: Path) -> None:
    make(tmp_path, {"a": ["mug", "pen"], "b": ["cup", "pen"]})
    with pytest.raises(ClassMismatchError, match="in the source 'mug'; in the target 'cup'"):
        open_dataset("domains", tmp_path).pair("a-b")
    assert open_dataset("domains", tmp_path).pair("a-b", leave_out=True)[0].classes == ("pen",)
    table = {"mug": {"b": ["cup"]}, "pen": {}}
    assert open_dataset("domains", tmp_path, classes=table).pair("a-b")[1].counts() == [2, 2]


def test_known_data_sets_under_any_spelling(tmp_path: Path) -> None:
    inside = tmp_path / "OfficeHomeDataset_10072016"
    make(inside, {"Art": ["Mug"], "Clipart": ["Mug"], "Product": ["Mug"], "RealWorld": ["Mug"], "extra": ["Mug"]})
    dataset = open_dataset("office-home", tmp_path)
    assert set(dataset.domains) == {"Art", "Clipart", "Product", "Real World"}
    assert dataset.parse_shift("r-a") == ("R-A", "Real World", "Art")
    assert sum(dataset.official.values()) == 15588
    assert sum(open_dataset("pacs", make(tmp_path / "p", {"photo": ["dog"]})).official.values()) == 9991


def test_a_table_is_read_from_json(tmp_path: Path) -> None:
    file = tmp_path / "table.json"
    file.write_text(json.dumps({"mug": {"a": "cup", "b": ["beaker", "mug"]}}))
    assert read_class_table(file) == {"mug": {"a": ["cup"], "b": ["beaker", "mug"]}}
    for content, sentence in [
        ("[]", "must have the form"),
        ("{}", "must have the form"),
        ('{"a": 1}', "must have the form"),
        ('{"a": {"b": 1}}', "must give a name or names for 'a' in 'b'"),
        ("{", "is not JSON"),
    ]:
        file.write_text(content)
        with pytest.raises(ValueError, match=sentence):
            read_class_table(file)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        read_class_table(tmp_path / "missing.json")


def test_one_folder_cannot_be_two_classes() -> None:
    images = LabelledImages([Path("1.jpg")], [0], ["cup"])
    with pytest.raises(ValueError, match="the class table maps 'Cup' of a to both 'x' and 'y'"):
        apply_table({"a": images}, {"x": {"a": ["cup"]}, "y": {"a": ["Cup"]}})


def test_names_and_options_are_checked(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"the name of a data set must be one of 'office31', .*, got 'imagenet'"):
        open_dataset("imagenet", tmp_path)
    with pytest.raises(ValueError, match="office31 has no option 'whole'; it has none"):
        open_dataset("office31", tmp_path, whole=True)
    with pytest.raises(ValueError, match="voc-sketches has no option 'x'; it has whole, difficult, truncated"):
        open_dataset("voc-sketches", tmp_path, x=1)
    with pytest.raises(FileNotFoundError, match="does not contain domains"):
        open_dataset("domains", tmp_path)


@pytest.mark.parametrize("name", dataset_names())
def test_every_data_set_can_be_got(name: str) -> None:
    for source in dataset_sources(name):
        assert source.downloads or source.steps
        for download in source.downloads:
            assert download.url.startswith("https://")
            assert len(download.checksum) == len("md5:") + 32
