"""Which rows of features train and which test, chosen as `sohot fit` chooses images."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..data.names import enumerate_words, natural_key
from ..data.shots import shot_rows, take_shots
from .feature_network import differing
from .feature_set import FeatureSet


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
    for option, rows in {"--source": source, "--target": target, "--test": test}.items():
        _require_labels(rows, option)
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


def _require_labels(rows: FeatureSet | None, option: str) -> None:
    if rows is not None and rows.unlabelled:
        which = "its rows have no labels" if rows.unlabelled == len(rows) else f"{rows.unlabelled} rows have no label"
        raise ValueError(f"{option}: {which}; make the features from images in class folders")


def _same_network(one: FeatureSet, other: FeatureSet, options: str, hint: str) -> None:
    if found := differing(one.network, other.network):
        raise ValueError(f"different networks made the features of {options}: {found}{hint}")


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
