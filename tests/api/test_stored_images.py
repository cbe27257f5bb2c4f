"""Images given in Python become lists that everything downstream reads."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset

from sohot.api.stored_images import StoredImages
from sohot.data.image_places import scan_images
from sohot.training.errors import ChangedRun

LABELS = ["pen", "mug", "pen", "mug"]
ARRAYS = np.random.default_rng(0).integers(0, 256, (4, 3, 5, 3), np.uint8)


class Pictures(Dataset):  # type: ignore[type-arg]
    classes = ("mug", "pen")

    def __len__(self) -> int:
        return 4

    def __getitem__(self, row: int) -> tuple[Any, torch.Tensor]:
        return torch.tensor(ARRAYS[row]).permute(2, 0, 1) / 255, torch.tensor(self.classes.index(LABELS[row]))


def data_frame(paths: list[Path]) -> Any:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    return pandas.DataFrame({"path": list(map(str, paths)), "label": LABELS})


KINDS: dict[str, Callable[[list[Path]], Any]] = {
    "paths": lambda paths: (paths, LABELS),
    "pairs": lambda paths: [*zip(map(str, paths), LABELS, strict=True)],
    "frame": data_frame,
    "stack": lambda _: (ARRAYS, LABELS),
    "pictures": lambda _: [(Image.fromarray(one), label) for one, label in zip(ARRAYS, LABELS, strict=True)],
    "dataset": lambda _: Pictures(),
}


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    found = [tmp_path / f"{number}, a.png" for number in range(4)]
    for path, pixels in zip(found, ARRAYS, strict=True):
        Image.fromarray(pixels).save(path)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_becomes_a_list_of_the_same_images(kind: str, paths: list[Path], tmp_path: Path) -> None:
    given, stored = KINDS[kind](paths), StoredImages(tmp_path / "inputs")
    listed = stored.places(given, "target_test")
    assert listed == tmp_path / "inputs" / "target-test" / "images.csv"
    images = scan_images(listed).images
    assert (images.classes, images.labels) == (("mug", "pen"), (0, 0, 1, 1))
    for file, row in zip(images.files, (1, 3, 0, 2), strict=True):
        assert np.array_equal(np.asarray(Image.open(file)), ARRAYS[row])
    assert len(list(listed.parent.iterdir())) == (5 if kind in ("stack", "pictures", "dataset") else 1)
    before = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")}
    again = StoredImages(tmp_path / "inputs")
    assert again.places(given, "target_test") == listed
    with pytest.raises(ChangedRun, match="target_test is not what"):
        again.places((ARRAYS[:3], LABELS[:3]), "target_test")
    again.discard()  # it has stored nothing
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")} == before
    stored.discard()
    assert not (tmp_path / "inputs").exists()


def test_folders_and_lists_stay_what_they_are(paths: list[Path], tmp_path: Path) -> None:
    stored, listed = StoredImages(tmp_path / "inputs"), tmp_path / "list.csv"
    for given in (None, "photos", tmp_path, listed, "rest"):
        assert stored.places(given, "source") == given
    assert stored.places(["photos", listed], "source") == ["photos", listed]
    assert not stored.folder.exists()
    pooled = stored.places([tmp_path, Pictures(), data_frame(paths)], "source")
    assert pooled == [tmp_path, *(stored.folder / f"source-{number}" / "images.csv" for number in (2, 3))]


def test_images_without_labels(paths: list[Path], tmp_path: Path) -> None:
    stored = StoredImages(tmp_path / "inputs")
    assert len(scan_images(stored.places(paths, "unlabelled", labelled=False), labelled=False).images) == 4
    with pytest.raises(ValueError, match=r"^source: 4 of 4 images have no label: give a pair \(images, labels\)"):
        stored.places(paths, "source")
    with pytest.raises(FileNotFoundError, match=r"^source: .*inputs: is not a file$"):
        stored.places(([stored.folder], ["mug"]), "source")
    with pytest.raises(ValueError, match="the name of a file or a label is not UTF-8"):
        stored.places((paths, ["\udce9"] * 4), "source")
    assert [folder.name for folder in stored.folder.iterdir()] == ["unlabelled"]
