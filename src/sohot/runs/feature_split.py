"""Which rows of features train, with labels or without, and which test, chosen as `sohot fit` chooses images."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from ..data.names import enumerate_words, natural_key
from ..data.shots import shot_rows, take_shots
from .feature_network import differing
from .feature_set import NO_LABEL, FeatureSet

REST: Literal["rest"] = "rest"
"""Instead of files of unlabelled rows: what the shots leave of the target."""


@dataclass(frozen=True)
class FeatureSplit:
    """Rows that train and test, over the same classes: chosen as `sohot fit` chooses images.

    Attributes:
        source: Source rows that train.
        target: Target rows that train.
        pool: Target rows that train without labels; None for none.
        test: Target rows to test on; None if none are left.
        protocol: What the pool is to the test: "supervised" (there is none), "transductive" (test rows are in it) or
            "inductive" (none is).
        classes: Names of the classes.
        notes: What the user should know, one sentence each.
    """

    source: FeatureSet
    target: FeatureSet
    test: FeatureSet | None
    classes: tuple[str, ...]
    notes: list[str] = field(default_factory=list)
    pool: FeatureSet | None = None
    protocol: str = "supervised"

    def as_json(self) -> dict[str, Any]:
        """Describe the rows: classes, counts, notes."""
        parts = {"source": self.source, "target": self.target, "pool": self.pool, "test": self.test}
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
    unlabelled: Sequence[FeatureSet] | Literal["rest"] = (),
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
        unlabelled: Features of target images that train without labels, besides those of the target that have none;
            `REST` for what `shots` leaves of the target. Labels in them are not read.
        shots: Train on this many rows of each target class, chosen as `sohot fit` chooses images; None for all.
        seed: Seed of that choice.
        leave_out: Skip classes that only one domain has, instead of refusing.
        any_network: Accept source features from another network.

    Raises:
        ValueError: Classes differ, a class has too few rows, or different networks made the features.
    """
    notes: list[str] = []
    for option, rows in {"--source": source, "--test": test}.items():
        _require_labels(rows, option)
    target, *pools = _labelled_and_rest(target)
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
    if unlabelled != REST:
        pools += unlabelled
    elif rest is None:
        raise ValueError(f"--unlabelled {REST}: --shots leaves no target row over; give --shots, or fewer of them")
    else:
        pools.append(rest)
    test = rest if test is None else _known_test(test, classes, leave_out, notes)
    test = _unseen(test, (source, target), notes)
    pool = _unlike_known(pools, target, (source, target), notes)
    return FeatureSplit(source, target, test, classes, notes, pool, _protocol(pool, test, notes))


def with_classes(rows: FeatureSet, classes: tuple[str, ...]) -> FeatureSet:
    """Keep only the rows of these classes and number the classes in this order."""
    names = rows.names()
    kept = np.isin(names, classes)
    place = {name: number for number, name in enumerate(classes)}
    labels = np.asarray([place[name] for name in names[kept]], dtype=np.int64)
    known = replace(rows, labels=np.zeros_like(rows.labels), classes=classes).subset(kept)
    return replace(known, labels=labels)


def _labelled_and_rest(target: FeatureSet) -> list[FeatureSet]:
    """Divide the target into rows with a label and, if there are any, rows without one."""
    known = target.labels != NO_LABEL
    if not known.any():
        raise ValueError(
            "--target: its rows have no labels; label a few of each class, and give the others with --unlabelled"
        )
    return [target] if known.all() else [target.subset(known), target.subset(~known)]


def _unlike_known(
    pools: Sequence[FeatureSet], target: FeatureSet, trained: Sequence[FeatureSet], notes: list[str]
) -> FeatureSet | None:
    """Join the unlabelled rows; leave out images that are byte-identical to a labelled one."""
    if not pools:
        return None
    for one in pools:
        if one.network:  # else its rows come from elsewhere
            _same_network(target, one, "--target and --unlabelled", "")
        if (size := one.features.shape[1]) != target.features.shape[1]:
            raise ValueError(
                f"--unlabelled: rows must have {target.features.shape[1]} features, as --target, got {size}"
            )
        if not np.isfinite(one.features).all():
            raise ValueError("--unlabelled: features must be finite numbers, but some are not")
    joined = replace(
        target,
        features=np.concatenate([one.features for one in pools]),
        labels=np.full(sum(map(len, pools)), NO_LABEL, dtype=np.int64),
        files=tuple(file for one in pools for file in one.files),
        contents=tuple(text for one in pools for text in one.contents),
        domains=np.zeros(sum(map(len, pools)), dtype=np.int64),
    )
    known = {text for rows in trained for text in rows.contents}
    new = np.asarray([text not in known for text in joined.contents])
    if not new.any():
        raise ValueError(
            f"all {len(joined)} unlabelled rows are of images byte-identical to labelled ones: give others"
        )
    if not new.all():
        notes.append(f"left out of the unlabelled rows: {int((~new).sum())} byte-identical to labelled training images")
    return joined.subset(new)


def _protocol(pool: FeatureSet | None, test: FeatureSet | None, notes: list[str]) -> str:
    """Tell what the pool is to the test."""
    if pool is None:
        return "supervised"
    seen = set(pool.contents)
    shared = 0 if test is None else sum(text in seen for text in test.contents)
    if test is None or not shared:
        return "inductive"
    notes.append(f"{shared} of {len(test)} test rows are among the unlabelled rows: the accuracy is transductive")
    return "transductive"


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
