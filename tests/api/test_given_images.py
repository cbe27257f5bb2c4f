"""Every kind of image set says the same."""

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset, Subset, TensorDataset

from sohot.api.given_images import labelled_pairs

PATHS, LABELS = ["a.png", "b.png", "c.png"], ["mug", "pen", "mug"]
NAMES = ["mug", "pen"]
NUMBERS = [0, 1, 0]
ARRAYS = np.arange(3 * 2 * 2 * 3, dtype=np.uint8).reshape(3, 2, 2, 3)


class Pictures(Dataset):  # type: ignore[type-arg]
    """As those of torchvision: an image and the number of its class."""

    classes = NAMES

    def __len__(self) -> int:
        return 3

    def __getitem__(self, row: int) -> tuple[Any, int]:
        return Image.fromarray(ARRAYS[row]), NUMBERS[row]


class ClassLabel(NamedTuple):
    names: list[str]


class HubRows(list):  # type: ignore[type-arg]
    """What `datasets.Dataset` offers, where that is not installed: rows, names of columns, features."""

    column_names = ("image", "label", "path")
    features = {"image": None, "label": ClassLabel(NAMES), "path": None}  # noqa: RUF012


def labels(given: Any) -> list[str]:
    return [label for _, label in labelled_pairs(given, "source")]


@pytest.mark.parametrize(
    "given",
    [
        (PATHS, LABELS),
        (np.array(PATHS), np.array(LABELS)),
        [*zip(PATHS, LABELS, strict=True)],
        (ARRAYS, LABELS),
        (list(ARRAYS), LABELS),
        ([Image.fromarray(one) for one in ARRAYS], LABELS),
        [*zip(ARRAYS, LABELS, strict=True)],
        Pictures(),
        Subset(Subset(Pictures(), [2, 1, 0]), [2, 1, 0]),
        HubRows({"image": {"bytes": b"encoded", "path": None}, "label": one, "path": "x"} for one in NUMBERS),
    ],
)
def test_images_and_labels_in_order(given: Any) -> None:
    assert labels(given) == LABELS


def test_data_frames() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame({"label": LABELS, "path": PATHS, "more": 1})
    assert list(labelled_pairs(frame, "source")) == list(zip(PATHS, LABELS, strict=True))
    assert list(labelled_pairs((frame["path"], frame["label"].astype("category")), "source")) == [
        *zip(PATHS, LABELS, strict=True)
    ]
    images = pandas.DataFrame({"image": list(ARRAYS), "label": [1, None, pandas.NA]})
    assert labels(images) == ["1", "", ""]
    assert labels(frame[["path"]]) == labels(frame["path"]) == ["", "", ""]
    with pytest.raises(ValueError, match=r"^source needs a column 'path' or 'image': the columns are 'label', 'more'$"):
        labels(frame[["label", "more"]])


def test_hugging_face_datasets() -> None:
    datasets = pytest.importorskip("datasets", reason="Hugging Face datasets are not installed")
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=NAMES)})
    rows = {"image": [Image.fromarray(one) for one in ARRAYS], "label": NUMBERS}
    assert labels(datasets.Dataset.from_dict(rows, features=features)) == LABELS


def test_images_without_labels() -> None:
    for given in (PATHS, tuple(PATHS), ARRAYS, ARRAYS[:, :, :, 0].repeat(3, 1), list(ARRAYS)):
        assert labels(given) == ["", "", ""]
    for one in (ARRAYS[0], ARRAYS[0, :, :, 0], Image.fromarray(ARRAYS[0]), torch.tensor(ARRAYS[0]).permute(2, 0, 1)):
        assert labels(one) == [""]
    assert labels((ARRAYS, [-1, None, float("nan")])) == ["-1", "", ""]
    assert labels(HubRows([{"image": ARRAYS[0], "label": -1}])) == [""]


def test_numbers_become_text() -> None:
    assert labels((ARRAYS, torch.tensor(NUMBERS))) == labels((ARRAYS, np.array([0.0, 1.0, 0.0]))) == ["0", "1", "0"]
    assert labels(TensorDataset(torch.tensor(ARRAYS).permute(0, 3, 1, 2), torch.tensor(NUMBERS))) == ["0", "1", "0"]


@pytest.mark.parametrize(
    ("given", "kind", "sentence"),
    [
        (3, TypeError, r"^source must be a folder, a list \(\.csv, .*an image is a path.*; got int$"),
        ({"a.png": "mug"}, TypeError, "; got dict$"),
        ({"train": HubRows()}, TypeError, "^source must be one data set: choose a split, such as 'train'$"),
        ([3, 4], TypeError, "; got one that holds int$"),
        ((PATHS, LABELS[:2]), ValueError, "^source has 3 images, but 2 labels$"),
        ((PATHS, [True, False, True]), TypeError, "^each label of source must be text or a whole number, got True$"),
        ((PATHS, [0.5, 1, 2]), TypeError, "got 0.5$"),
        (HubRows([{"image": ARRAYS[0], "label": 2}]), ValueError, "^source has the label 2, but names of 2 classes$"),
    ],
)
def test_other_kinds_are_refused_in_one_sentence(given: Any, kind: type[Exception], sentence: str) -> None:
    with pytest.raises(kind, match=sentence):
        labels(given)
