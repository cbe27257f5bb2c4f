"""Labelled features of images: the set, its file (an `.npz`, read without pickle), and which rows train and test."""

import json
import zipfile
import zlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._outputs import writing
from .._reading import parse_json
from ..data.labelled import LabelledImages
from ..data.names import enumerate_words, natural_key
from ..data.shots import shot_rows, take_shots
from .npz import read_arrays

FORMAT = 1
_ARRAYS = ("features", "labels", "classes", "files", "contents", "domains", "domain_names")


@dataclass(frozen=True)
class FeatureSet:
    """Features of labelled images, one row each, and where they come from.

    Attributes:
        features: float32, (rows, features).
        labels: The class of each row, a place in `classes`.
        classes: Names of the classes.
        files: Path of each image relative to its folder.
        contents: A text for each image, equal for byte-identical images.
        domains: The domain of each row, a place in `domain_names`.
        domain_names: Names of the domains.
        network: What made the features: backbone, weights, tap and image preprocessing.
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
        """Return the name of each row's class."""
        return np.asarray(self.classes)[self.labels]

    def images(self) -> LabelledImages:
        """List the images that the rows stand for; their files need not exist."""
        return LabelledImages(tuple(map(Path, self.files)), tuple(self.labels.tolist()), self.classes)


def write_features(file: Path, found: FeatureSet) -> None:
    """Write features to where the user wants them, see `sohot._outputs.writing`."""
    content = {
        **{name: np.asarray(getattr(found, name)) for name in _ARRAYS},
        "network": np.asarray(json.dumps(found.network)),
        "format": np.asarray(FORMAT),
    }
    with writing(file) as stream:
        np.savez(stream, **content)  # type: ignore[arg-type] # numpy's stubs mistake the names for its own option


def read_features(file: Path) -> FeatureSet:
    """Read features that `write_features` wrote.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It holds something else or is damaged.
    """
    if not file.is_file():
        raise FileNotFoundError(f"{file}: there is no such feature file; `sohot features` makes one")
    try:
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
    except (ValueError, TypeError, OverflowError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{file} is not a feature file written by `sohot features`: {reason}") from None


@dataclass(frozen=True)
class FeatureSplit:
    """Rows that train and test, over the same classes: chosen as `sohot fit` chooses images.

    Attributes:
        source: Source rows that train.
        target: Target rows that train.
        test: Target rows to test on; None if none are left.
        classes: Names of the classes.
        notes: What the user should know, one sentence each.
    """

    source: FeatureSet
    target: FeatureSet
    test: FeatureSet | None
    classes: tuple[str, ...]
    notes: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Describe the rows: classes, counts, notes."""
        parts = {"source": self.source, "target": self.target, "test": self.test}
        return {
            "classes": list(self.classes),
            **{name: None if rows is None else {"rows": len(rows)} for name, rows in parts.items()},
            "notes": self.notes,
        }


def split_features(
    source: FeatureSet,
    target: FeatureSet,
    test: FeatureSet | None = None,
    *,
    shots: int | None = None,
    seed: int = 0,
    leave_out: bool = False,
    any_network: bool = False,
) -> FeatureSplit:
    """Restrict features to the same classes and choose the target rows that train.

    Args:
        source: Features of the source.
        target: Features of the target.
        test: Features of target images to test on; None to test on what `shots` leaves of the target.
        shots: Train on this many rows of each target class, chosen as `sohot fit` chooses images; None for all.
        seed: Seed of that choice.
        leave_out: Skip classes that only one domain has, instead of refusing.
        any_network: Accept source features from another network.

    Raises:
        ValueError: Classes differ, a class has too few rows, or different networks made the features.
    """
    notes: list[str] = []
    if not any_network:
        _same_network(source, target, "--source and --target", "; --streams separate allows it")
    if test is not None:
        _same_network(target, test, "--target and --test", "")
    classes = _shared_classes(source, target, leave_out, notes)
    source, target = with_classes(source, classes), with_classes(target, classes)
    rest: FeatureSet | None = None
    if shots is not None:
        images = target.images()
        take_shots(images, shots, seed)  # refuses classes with too few rows
        chosen = np.isin(np.arange(len(target)), list(shot_rows(images, shots, seed)))
        target, rest = target.subset(chosen), target.subset(~chosen) if not chosen.all() else None
    test = rest if test is None else _known_test(test, classes, leave_out, notes)
    return FeatureSplit(source, target, _unseen(test, (source, target), notes), classes, notes)


def with_classes(rows: FeatureSet, classes: tuple[str, ...]) -> FeatureSet:
    """Keep only the rows of these classes and number the classes in this order."""
    names = rows.names()
    kept = np.isin(names, classes)
    place = {name: number for number, name in enumerate(classes)}
    labels = np.asarray([place[name] for name in names[kept]], dtype=np.int64)
    known = replace(rows, labels=np.zeros_like(rows.labels), classes=classes).subset(kept)
    return replace(known, labels=labels)


def _same_network(one: FeatureSet, other: FeatureSet, options: str, hint: str) -> None:
    differ = [key for key in {**one.network, **other.network} if one.network.get(key) != other.network.get(key)]
    if differ:
        key = differ[0]
        raise ValueError(
            f"different networks made the features of {options}: "
            f"{key} {one.network.get(key)!r} and {other.network.get(key)!r}{hint}"
        )


def _shared_classes(source: FeatureSet, target: FeatureSet, leave_out: bool, notes: list[str]) -> tuple[str, ...]:
    held = {"source": set(source.names().tolist()), "target": set(target.names().tolist())}
    shared = sorted(held["source"] & held["target"], key=natural_key)
    alone = {side: sorted(names - set(shared), key=natural_key) for side, names in held.items()}
    said = "; ".join(f"in the {side} {enumerate_words(map(repr, names))}" for side, names in alone.items() if names)
    if len(shared) < 2:
        raise ValueError(f"the domains share {len(shared)} classes, but a classifier needs two: {said or shared}")
    if said and not leave_out:
        raise ValueError(f"classes in one domain only: {said}; leave them out with --leave-out")
    if said:
        notes.append(f"left out classes in one domain only: {said}")
    return tuple(shared)


def _known_test(test: FeatureSet, classes: tuple[str, ...], leave_out: bool, notes: list[str]) -> FeatureSet:
    unknown = sorted(set(test.names().tolist()) - set(classes), key=natural_key)
    if unknown:
        named = enumerate_words(map(repr, unknown))
        if not leave_out or len(unknown) == len(set(test.names().tolist())):
            raise ValueError(f"test classes that were not trained: {named}; leave them out with --leave-out")
        notes.append(f"left out {len(unknown)} test classes that are not trained: {named}")
    return with_classes(test, classes)


def _unseen(test: FeatureSet | None, trained: tuple[FeatureSet, ...], notes: list[str]) -> FeatureSet | None:
    """Leave out test rows of images that are byte-identical to a training image: recognizing them proves nothing."""
    if test is None:
        notes.append("all target rows are used for training; none are left to test on (see --shots and --test)")
        return None
    seen = {text for rows in trained for text in rows.contents}
    new = np.asarray([text not in seen for text in test.contents])
    if not new.all():
        rest = "" if new.any() else "; none are left to test on"
        notes.append(f"left out of the test: {int((~new).sum())} images byte-identical to training images{rest}")
    return test.subset(new) if new.any() else None
