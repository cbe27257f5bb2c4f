"""Features of images: the set, and its file (an `.npz`, read without pickle)."""

import json
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._outputs import writing
from .._reading import parse_json
from ..data.labelled import LabelledImages
from ..data.names import enumerate_words
from .npz import array_names, read_arrays

FORMAT = 1
NO_LABEL = -1
_ARRAYS = ("features", "labels", "classes", "files", "contents", "domains", "domain_names")


@dataclass(frozen=True)
class FeatureSet:
    """Features of images, one row each, and where they come from.

    Attributes:
        features: float32, (rows, features).
        labels: The class of each row, a place in `classes`; −1 for a row without a label.
        classes: Names of the classes.
        files: Path of each image relative to its folder.
        contents: A text for each image, equal for byte-identical images.
        domains: The domain of each row, a place in `domain_names`.
        domain_names: Names of the domains.
        network: What made the features, see `FeatureNetwork`; empty if unknown.
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
                raise ValueError(f"{name} must hold one entry for each of {rows} rows, got {len(getattr(self, name))}")
        for name, lowest, names in (("labels", NO_LABEL, self.classes), ("domains", 0, self.domain_names)):
            numbers = getattr(self, name)
            if numbers.min() < lowest or numbers.max() >= len(names):
                raise ValueError(f"{name} must lie in {lowest} … {len(names) - 1}")

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

    @property
    def unlabelled(self) -> int:
        """Number of rows without a label."""
        return int((self.labels == NO_LABEL).sum())

    def names(self) -> npt.NDArray[np.str_]:
        """Return the name of each row's class; "" for a row without a label."""
        return np.asarray([*self.classes, ""])[self.labels]  # −1 is the last

    def images(self) -> LabelledImages:
        """List the images that the rows stand for; their files need not exist."""
        return LabelledImages(tuple(map(Path, self.files)), tuple(self.labels.tolist()), self.classes)


def write_features(file: Path, found: FeatureSet) -> None:
    """Write features to where the user wants them, see `sohot._outputs.writing`."""
    content = {
        **{name: _array(getattr(found, name)) for name in _ARRAYS},
        "network": np.asarray(json.dumps(found.network)),
        "format": np.asarray(FORMAT),
    }
    with writing(file) as stream:
        np.savez(stream, **content)  # type: ignore[arg-type] # numpy's stubs mistake the names for its own option


def _array(values: Any) -> npt.NDArray[Any]:
    return np.asarray(values) if len(values) else np.empty(0, dtype=np.str_)  # no classes are no numbers either


def read_features(file: Path) -> FeatureSet:
    """Read features that `write_features` wrote.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It holds something else or is damaged.
    """
    with _reading(file, "a feature file written by `sohot features`"):
        found = read_arrays(file, ("format", "network", *_ARRAYS))
        if int(found["format"]) != FORMAT:
            raise ValueError(f"its format is {int(found['format'])}, but only {FORMAT} is supported")
        network = parse_json(str(found["network"]))
        for name in _ARRAYS:
            if found[name].ndim != (2 if name == "features" else 1):
                raise ValueError(f"the array {name!r} has {found[name].ndim} dimensions")
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


def read_rows(file: Path) -> FeatureSet:
    """Read features to label: what `write_features` wrote, or the array `features` of any other `.npz` file.

    Rows of another file have no label, no known network, and are named after their number.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It holds no features or is damaged.
    """
    with _reading(file, "a file of features"):
        if "format" in array_names(file):
            return read_features(file)
        features = read_arrays(file, ("features",))["features"]
        if features.ndim != 2 or features.dtype.kind not in "fiu":
            raise ValueError("its array 'features' must hold numbers in rows and columns")
        if not np.isfinite(features).all():
            raise ValueError("its array 'features' must hold finite numbers")
        rows = len(features)
        return FeatureSet(
            features=features.astype(np.float32, copy=False),
            labels=np.full(rows, NO_LABEL, dtype=np.int64),
            classes=(),
            files=tuple(f"{file}#{row}" for row in range(rows)),
            contents=tuple(f"{file}#{row}" for row in range(rows)),
            domains=np.zeros(rows, dtype=np.int64),
            domain_names=(file.stem,),
            network={},
        )


_DAMAGED = (
    *(ValueError, TypeError, AttributeError, KeyError, OverflowError, EOFError, RuntimeError, MemoryError),
    *(zipfile.BadZipFile, zlib.error),
)
"""What reading a damaged or other file raises."""


@contextmanager
def _reading(file: Path, kind: str) -> Iterator[None]:
    """Turn what a damaged or other file raises into one sentence."""
    if not file.is_file():
        raise FileNotFoundError(f"{file}: there is no such feature file; `sohot features` makes one")
    try:
        yield
    except NotFeatures:
        raise
    except _DAMAGED as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise NotFeatures(f"{file} is not {kind}: {reason}") from None


class NotFeatures(ValueError):  # noqa: N818 - it is the file that is at fault
    """A file holds something else than features, or is damaged."""
