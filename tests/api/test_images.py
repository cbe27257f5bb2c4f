"""Images as Python programs hold them: every kind gets the same answers, and what shows no image one sentence."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from command_line import Domains, Pictures
from PIL import Image
from torch.utils.data import Subset, TensorDataset

import sohot

NAMES = ["blue", "green", "red"]
BACK = list(reversed(range(12)))
COLOUR = np.random.default_rng(0).integers(0, 256, (18, 17, 3), np.uint8)
GREY = COLOUR[:, :, 0]


@pytest.fixture(scope="module")
def run(domains: Domains, quick: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> sohot.Run:
    """A run that gets all right, so that the accuracy shows which label goes with which image."""
    out = tmp_path_factory.mktemp("right") / "run"
    return sohot.fit(domains.source, domains.target, shots=3, out=out, **{**quick, "steps": 40})


class ClassLabel(NamedTuple):
    names: list[str]


class HubRows(list):  # type: ignore[type-arg]
    """What `datasets.Dataset` offers, where that is not installed: rows, names of columns, features."""

    column_names = ("image", "label", "path")
    features = {"image": None, "label": ClassLabel(NAMES), "path": None}  # noqa: RUF012


class Shown(NamedTuple):
    """The images that test, with their labels as names and as numbers."""

    paths: list[Path]
    arrays: "np.ndarray[Any, Any]"
    labels: list[str]

    @property
    def numbers(self) -> list[int]:
        return [NAMES.index(label) for label in self.labels]


@pytest.fixture
def tested(test_paths: tuple[list[Path], list[str]], test_arrays: Any) -> Shown:
    return Shown(test_paths[0], test_arrays[0], test_paths[1])


def frame(**columns: Any) -> Any:
    return pytest.importorskip("pandas", reason="pandas is not installed").DataFrame(columns)


def table(tested: Shown) -> Any:
    return frame(label=tested.labels, path=list(map(str, tested.paths)), more=1)


def hub(tested: Shown) -> Any:
    datasets = pytest.importorskip("datasets", reason="Hugging Face datasets are not installed")
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=NAMES)})
    rows = {"image": [Image.fromarray(one) for one in tested.arrays], "label": tested.numbers}
    return datasets.Dataset.from_dict(rows, features=features)


LABELLED: dict[str, Callable[[Shown], Any]] = {
    "paths": lambda tested: (tested.paths, tested.labels),
    "columns": lambda tested: (np.array(list(map(str, tested.paths))), np.array(tested.labels)),
    "pairs": lambda tested: [*zip(map(str, tested.paths), tested.labels, strict=True)],
    "stack": lambda tested: (tested.arrays, tested.labels),
    "arrays": lambda tested: (list(tested.arrays), tested.labels),
    "pictures": lambda tested: ([Image.fromarray(one) for one in tested.arrays], tested.labels),
    "pairs of arrays": lambda tested: [*zip(tested.arrays, tested.labels, strict=True)],
    "dataset": lambda tested: Pictures(tested.arrays, tested.labels),
    "subset": lambda tested: Subset(Subset(Pictures(tested.arrays, tested.labels), BACK), BACK),
    "encoded": lambda tested: HubRows(
        {"image": {"bytes": path.read_bytes(), "path": None}, "label": number, "path": "x"}
        for path, number in zip(tested.paths, tested.numbers, strict=True)
    ),
    "frame": table,
    "columns of a frame": lambda tested: (table(tested)["path"], table(tested)["label"].astype("category")),
    "frame of images": lambda tested: frame(image=list(tested.arrays), label=tested.labels),
    "frame of files": lambda tested: frame(file=list(map(str, tested.paths)), label=tested.labels),
    "hub": hub,
}


@pytest.mark.parametrize("kind", LABELLED)
def test_every_kind_is_tested_alike(kind: str, run: sohot.Run, domains: Domains, tested: Shown) -> None:
    found = run.evaluate(LABELLED[kind](tested))
    assert found == run.evaluate(domains.test)
    assert found.accuracy == 1


def test_images_without_labels(run: sohot.Run, tested: Shown) -> None:
    rows, expected = table(tested), run.predict(tested.paths)
    for given in (tuple(tested.paths), tested.arrays, list(tested.arrays), rows[["path"]], rows["path"]):
        assert run.predict(given).probabilities == expected.probabilities
        with pytest.raises(ValueError, match=r"^images: 12 of 12 images have no label: give a pair \(images, labels\)"):
            run.evaluate(given)


def test_lists_and_tensors_with_or_without_labels_get_the_same_answers(
    run: sohot.Run, tested: Shown, tmp_path: Path
) -> None:
    listed, expected = tmp_path / "list.csv", run.predict(tested.paths)
    listed.write_text("path\n" + "\n".join(map(str, tested.paths)))
    tensors = torch.tensor(tested.arrays).permute(0, 3, 1, 2)
    for given in (listed, tensors, TensorDataset(tensors, torch.arange(12)), (tested.arrays, tested.labels)):
        assert run.predict(given).probabilities == expected.probabilities
    assert [row.image for row in run.predict(tensors)] == list(range(12))
    for one in (tested.paths[0], str(tested.paths[0]), tested.arrays[0], Image.fromarray(tested.arrays[0])):
        assert run.predict(one).probabilities == expected.probabilities[:1]


@pytest.mark.parametrize("missing", [None, float("nan"), ""])
def test_a_label_may_be_missing(run: sohot.Run, tested: Shown, missing: Any) -> None:
    for given in ((tested.arrays, [missing, *tested.labels[1:]]), HubRows([{"image": tested.arrays[0], "label": -1}])):
        with pytest.raises(ValueError, match=r"1 of 12? images have no label"):
            run.evaluate(given)


@pytest.mark.parametrize("kind", [torch.tensor, lambda numbers: np.array(numbers, float), list])
def test_numbers_are_names(run: sohot.Run, tested: Shown, kind: Callable[[list[int]], Any]) -> None:
    tensors = TensorDataset(torch.tensor(tested.arrays).permute(0, 3, 1, 2), torch.tensor(tested.numbers))
    for given in ((tested.arrays, kind(tested.numbers)), tensors):
        with pytest.raises(ValueError, match="has classes that the run does not know: '0', '1', '2'"):
            run.evaluate(given)


@pytest.mark.parametrize(
    ("given", "kind", "sentence"),
    [
        (3, TypeError, r"^images must be a folder, a list \(\.csv, .*an image is a path.*; got int$"),
        ({"a.png": "mug"}, TypeError, "; got dict$"),
        ({"train": HubRows()}, TypeError, "^images must be one data set: choose a split, such as 'train'$"),
        ([3, 4], TypeError, "; got one that holds int$"),
        ((["a.png", "b.png"], ["mug"]), ValueError, "^images has 2 images, but 1 labels$"),
        ((["a.png"], [True]), TypeError, "^each label of images must be text or a whole number, got True$"),
        ((["a.png"], [0.5]), TypeError, "got 0.5$"),
        (HubRows([{"image": COLOUR, "label": 3}]), ValueError, "^images has the label 3, but names of 3 classes$"),
        (([Path(__file__).parent], ["mug"]), FileNotFoundError, "^images: .*api: is not a file$"),
        (([COLOUR], ["\udce9"]), ValueError, "the name of a file or a label is not UTF-8"),
    ],
)
def test_other_kinds_are_refused_in_one_sentence(
    run: sohot.Run, given: Any, kind: type[Exception], sentence: str
) -> None:
    with pytest.raises(kind, match=sentence):
        run.evaluate(given)


def test_a_table_needs_a_column_of_images(run: sohot.Run, tested: Shown) -> None:
    with pytest.raises(ValueError, match=r"^images needs a column 'path' or 'image': the columns are 'label', 'more'$"):
        run.predict(table(tested)[["label", "more"]])


@pytest.mark.parametrize(
    ("picture", "pixels"),
    [
        (COLOUR.astype(np.int64), COLOUR),
        (COLOUR.transpose(2, 0, 1), COLOUR),
        (COLOUR / 255, COLOUR),
        (torch.tensor(COLOUR).permute(2, 0, 1), COLOUR),
        (torch.tensor(COLOUR).permute(2, 0, 1).float() / 255, COLOUR),
        (GREY[:, :, None], GREY),
        (GREY > 100, np.where(GREY > 100, 255, 0).astype(np.uint8)),
        (Image.fromarray(np.dstack([COLOUR, 0 * GREY])), 0 * COLOUR + 255),  # transparent: white
        (Image.fromarray(COLOUR).convert("CMYK"), COLOUR),
    ],
)
def test_pixels_stay_what_they_are(run: sohot.Run, tmp_path: Path, picture: Any, pixels: "np.ndarray") -> None:
    Image.fromarray(pixels).save(tmp_path / "a.png")
    expected = run.predict(tmp_path / "a.png").probabilities
    assert run.predict([picture]).probabilities == expected


def test_a_camera_s_rotation_is_applied(run: sohot.Run) -> None:
    turned = Image.fromarray(COLOUR)
    turned.getexif()[0x0112] = 6
    assert run.predict(turned).probabilities == run.predict(np.rot90(COLOUR, -1).copy()).probabilities


@pytest.mark.parametrize(
    ("picture", "sentence"),
    [
        (np.zeros((2, 3, 4, 5)), r"an array of shape \(2, 3, 4, 5\) is not an image: give H × W, or H × W × C"),
        (np.zeros((0, 3, 3)), r"shape \(0, 3, 3\) holds no pixels"),
        (np.full((2, 2), -0.5), "with values from -0.5 to -0.5 is not an image: .* before any normalisation"),
        (np.full((2, 2), np.nan), "with values from nan to nan is not an image"),
        (np.full((2, 2), 300), "an array of int64 with values from 300 to 300 is not an image"),
        (np.full((2, 2), "a"), "is not an image: give numbers"),
    ],
)
def test_arrays_that_show_no_image_are_refused(run: sohot.Run, picture: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        run.predict([picture])
