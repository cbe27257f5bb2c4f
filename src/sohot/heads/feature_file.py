"""Features of images in one file: an `.npz` of plain arrays, read without pickle."""

import json
import os
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._files import sync_folder
from ..data.labelled import LabelledImages
from ..data.names import enumerate_words

FORMAT = 1
_ARRAYS = ("features", "labels", "classes", "files", "contents", "domains", "domain_names")


@dataclass(frozen=True)
class FeatureSet:
    """Features of labelled images, one row each, and where they come from.

    Attributes:
        features: float32, (rows, features).
        labels: The class of each row, a place in `classes`.
        classes: Names of the classes.
        files: Name of each image below its folder.
        contents: A text for each image that is the same for byte-identical images.
        domains: The domain of each row, a place in `domain_names`.
        domain_names: Names of the domains.
        network: What made the features: backbone, weights, tap and the preprocessing of images.
    """

    features: npt.NDArray[np.float32]
    labels: npt.NDArray[np.int64]
    classes: tuple[str, ...]
    files: tuple[str, ...]
    contents: tuple[str, ...]
    domains: npt.NDArray[np.int64]
    domain_names: tuple[str, ...]
    network: dict[str, Any]

    def __post_init__(self) -> None:
        rows = len(self.features)
        if self.features.ndim != 2 or not rows:
            raise ValueError(f"features must have the shape (rows, features), got {self.features.shape}")
        for name in ("labels", "files", "contents", "domains"):
            if len(getattr(self, name)) != rows:
                raise ValueError(f"{name} must hold one for each of {rows} rows, got {len(getattr(self, name))}")
        for name, names in (("labels", self.classes), ("domains", self.domain_names)):
            numbers = getattr(self, name)
            if numbers.min() < 0 or numbers.max() >= len(names):
                raise ValueError(f"{name} must lie in 0 … {len(names) - 1}")

    def __len__(self) -> int:
        return len(self.features)

    def subset(self, rows: npt.NDArray[Any]) -> "FeatureSet":
        """Keep some rows, by number or by a mask; classes and domains stay."""
        chosen = np.arange(len(self))[rows]
        return replace(
            self,
            features=self.features[chosen],
            labels=self.labels[chosen],
            files=tuple(self.files[row] for row in chosen),
            contents=tuple(self.contents[row] for row in chosen),
            domains=self.domains[chosen],
        )

    def domain(self, name: str) -> "FeatureSet":
        """Keep the rows of one domain."""
        if name not in self.domain_names:
            raise ValueError(f"there is no domain {name!r}; there are {enumerate_words(self.domain_names)}")
        return self.subset(self.domains == self.domain_names.index(name))

    def names(self) -> npt.NDArray[np.str_]:
        """Give the name of each row's class."""
        return np.asarray(self.classes)[self.labels]

    def images(self) -> LabelledImages:
        """Give the list of images that the rows stand for; their files need not be there."""
        return LabelledImages(tuple(map(Path, self.files)), tuple(self.labels.tolist()), self.classes)


def write_features(file: Path, found: FeatureSet) -> None:
    """Write features so that the file is there whole or not at all."""
    content = {
        **{name: np.asarray(getattr(found, name)) for name in _ARRAYS},
        "network": np.asarray(json.dumps(found.network)),
        "format": np.asarray(FORMAT),
    }
    partial = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        with open(partial, "wb") as stream:
            np.savez(stream, **content)  # type: ignore[arg-type] # numpy's stubs take the names for its own option
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, file)
    finally:
        partial.unlink(missing_ok=True)
    sync_folder(file.parent)


def read_features(file: Path) -> FeatureSet:
    """Read features that `write_features` wrote.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It holds something else or is damaged.
    """
    if not file.is_file():
        raise FileNotFoundError(f"{file}: there is no such file of features; `sohot features` makes one")
    try:
        with open(file, "rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            if int(arrays["format"]) != FORMAT:
                raise ValueError(f"its format is {int(arrays['format'])}, and {FORMAT} is known")
            network = json.loads(str(arrays["network"]))
            found = {name: arrays[name] for name in _ARRAYS}
        texts = {
            name: tuple(map(str, found[name].tolist())) for name in ("classes", "files", "contents", "domain_names")
        }
        return FeatureSet(
            features=found["features"].astype(np.float32, copy=False),
            labels=found["labels"].astype(np.int64, copy=False),
            domains=found["domains"].astype(np.int64, copy=False),
            network=dict(network),
            **texts,
        )
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, EOFError, zipfile.BadZipFile) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        reason = "it is not an .npz file" if "pickle" in reason else reason  # numpy's advice is to load it unsafely
        raise ValueError(f"{file} is no file of features as `sohot features` writes it: {reason}") from None
