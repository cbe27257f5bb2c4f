"""The images of a run: found in folders and lists, restricted to the same classes, and split into training and test."""

import hashlib
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..data.folders import ClassMismatchError, LeftOut, common_classes
from ..data.image_places import folder_of
from ..data.labelled import LabelledImages, Progress
from ..data.names import enumerate_words
from ..data.pools import SUPERVISED
from ..data.shots import short_classes, take_shots
from ..methods.options import REST
from ..methods.records import Method
from .config import ANY_PROTOCOL, RunConfig
from .image_search import ImageSearch
from .run_pool import find_pool, protocol_of, unlike_known, unseen
from .split_file import POOL, SOURCE, TARGET, TEST, read_sides


@dataclass
class RunData:
    """What a run trains and tests on.

    Attributes:
        source: Source images that train; None for a method that does not use them.
        target: Target images that train; None for a method that does not use them.
        test: Target images to test on; None if none are left.
        classes: Names of the classes.
        left_out: Files and folders that were not used, with the reason.
        notes: What else the user should know, one sentence each.
        pool: Target images without labels, all of the class "unlabelled"; None if there are none.
        protocol: What they are to the test: "supervised" (there are none), "transductive" (test images are among them)
            or "inductive" (none is).
    """

    classes: tuple[str, ...]
    source: LabelledImages | None
    target: LabelledImages | None
    test: LabelledImages | None
    left_out: list[LeftOut] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    pool: LabelledImages | None = None
    protocol: str = SUPERVISED

    def sides(self) -> dict[str, LabelledImages | None]:
        """Return the images by the sides of a split."""
        return {SOURCE: self.source, TARGET: self.target, POOL: self.pool, TEST: self.test}

    def trained(self) -> list[LabelledImages]:
        """Return the labelled images that train."""
        return [images for images in (self.source, self.target) if images is not None]

    def targets(self) -> list[LabelledImages]:
        """Return the target images that may be learned from, with labels or without."""
        return [images for images in (self.target, self.pool) if images is not None]

    def as_json(self) -> dict[str, Any]:
        """Describe the data: classes, counts, what was left out and why."""
        parts = {"source": self.source, "target": self.target, "test": self.test}
        return {
            "classes": list(self.classes),
            **{
                name: None
                if images is None
                else {"folder": images.origin, "images": len(images), "per_class": images.counts()}
                for name, images in parts.items()
            },
            "pool": None if self.pool is None else {"folder": self.pool.origin, "images": len(self.pool)},
            "left_out": [path.as_json() for path in self.left_out],
            "notes": self.notes,
        }


def gather(config: RunConfig, progress: Progress | None = None) -> RunData:
    """Find the images that a configuration asks for.

    Args:
        config: Folders, shots and the method.
        progress: Receives the progress of checking the images.

    Raises:
        FileNotFoundError: A folder is missing.
        ValueError: A folder is missing or empty, classes differ, or a class has too few images.
    """
    if config.target_test is not None:
        _find_test(ImageSearch(config, decode=False), _find(ImageSearch(config, decode=False)))
    return add_test(gather_training(config, progress), config, progress)


def gather_training(config: RunConfig, progress: Progress | None = None) -> RunData:
    """Find the images that train, and the target images left by --shots; no image of --target-test is decoded.

    What is wrong by the names alone is reported before any image is decoded.

    Args:
        config: Folders, shots and the method.
        progress: Receives the progress of checking the images.
    """
    if _find(ImageSearch(config, decode=False)).pool is None and config.settings().resolved_method().needs_pool:
        raise ValueError(
            f"--method {config.method} learns from unlabelled target images: give their folder as --unlabelled, or "
            "--unlabelled rest for those that --shots leaves over"
        )
    data = _find(ImageSearch(config, progress))
    if data.pool is not None:
        notes = [*data.notes]
        data = replace(data, pool=unlike_known(data.pool, data.trained(), notes), notes=notes)
    if config.protocol != ANY_PROTOCOL:  # what the test would refuse, before anything slow
        named = data if config.target_test is None else _find_test(ImageSearch(config, decode=False), data)
        protocol_of(config, named.pool, named.test, [])
    return data


def add_test(data: RunData, config: RunConfig, progress: Progress | None = None) -> RunData:
    """Find the images of --target-test, if given, leave training images out of the test, and name the protocol.

    Args:
        data: The result of `gather_training`; it is not changed.
        config: The same configuration.
        progress: Receives the progress of checking the images.
    """
    if config.target_test is not None:
        data = _find_test(ImageSearch(config, progress), data)
    notes = [*data.notes]
    test = unseen(data.test, data.trained(), notes)
    return replace(data, test=test, protocol=protocol_of(config, data.pool, test, notes), notes=notes)


def _find(search: ImageSearch) -> RunData:
    """Find the images that train, in folders or in a split."""
    config, notes = search.config, list[str]()
    method = config.settings().resolved_method()
    if config.split is not None:
        return _find_listed(search, config.split, method, notes)
    source = search.sources() if method.uses_source or config.sources() else None
    target = search.folder(config.target, "--target")
    if source is not None:
        source, target = _match(source, target, config.leave_out, notes, learns=method.uses_source)
    _require_two_classes(target)
    train, rest = _divide(target, config, method.uses_target, notes)
    if source is not None and config.source_shots is not None:
        source, _ = _at_most(source, config.source_shots, config.seed, "source", notes)
    pool, rest = find_pool(search, rest)
    if rest is not None and config.target_test is not None:
        if config.unlabelled != REST:
            notes.append(f"{len(rest)} target images beyond --shots {config.shots} are not used")
        rest = None
    return RunData(
        classes=target.classes,
        source=source if method.uses_source else None,
        target=train if method.uses_target else None,
        test=rest,
        left_out=list(dict.fromkeys(search.left_out)),
        notes=notes,
        pool=pool,
    )


def _find_listed(search: ImageSearch, file: Path, method: Method, notes: list[str]) -> RunData:
    """Take the images that a split lists, those of the domains that the method uses."""
    config = search.config
    if isinstance(config.source, tuple):
        raise ValueError("--split takes its source images from one folder: give --source once")
    source_folder, target_folder = (None if one is None else folder_of(one) for one in (config.source, config.target))
    sides = read_sides(file, source_folder, target_folder)
    wanted = {SOURCE: method.uses_source, TARGET: method.uses_target, TEST: True, POOL: config.unlabelled is None}
    found = {side: search.side(images, side) for side, images in sides.items() if wanted[side]}
    if missing := [side for side, needed in wanted.items() if needed and side not in (*found, TEST, POOL)]:
        raise ValueError(f"--split {file} lists no {missing[0]} images, which --method {config.method} trains on")
    source, target, test, pool = (found.get(side) for side in wanted)
    if source is not None and target is not None:
        source, target = _match(source, target, config.leave_out, notes, learns=method.uses_source)
    trained = source if target is None else target
    assert trained is not None  # every method uses one of the domains
    _require_two_classes(trained)
    if test is not None:
        test = _match_test(test, trained.classes, config.leave_out, notes)
    if pool is None:
        pool, test = find_pool(search, test)
    return RunData(trained.classes, source, target, test, list(dict.fromkeys(search.left_out)), notes, pool)


def _find_test(search: ImageSearch, data: RunData) -> RunData:
    """Add the images of --target-test."""
    notes = [*data.notes]
    images = search.folder(search.config.target_test, "--target-test")
    test = _match_test(images, data.classes, search.config.leave_out, notes)
    return replace(data, test=test, left_out=[*data.left_out, *search.left_out], notes=notes)


def _require_two_classes(images: LabelledImages) -> None:
    if len(images.classes) < 2:
        raise ValueError(f"there is only one class ({images.classes[0]!r}): a classifier needs at least two")


def _match(
    source: LabelledImages, target: LabelledImages, leave_out: bool, notes: list[str], *, learns: bool
) -> tuple[LabelledImages, LabelledImages]:
    """Give both domains the same classes; one that learns from the source knows classes that only the source has."""
    missing = [name for name in source.classes if name not in target.classes]
    if learns and missing and not leave_out and set(target.classes) < set(source.classes):
        notes.append(
            "the target has no labelled image of these classes, which are learned from the source alone: "
            f"{enumerate_words(missing)} (--leave-out leaves them out)"
        )
        return source, target.with_classes(source.classes)
    try:
        matched = common_classes(source, target, leave_out)
    except ClassMismatchError as error:
        raise ValueError(str(error).replace("ask to leave them out", "leave them out with --leave-out")) from None
    for domain, images in (("source", source), ("target", target)):
        if lost := [name for name in images.classes if name not in matched[0].classes]:
            notes.append(f"left out {len(lost)} classes that only the {domain} has: {enumerate_words(lost)}")
    return matched


def _match_test(test: LabelledImages, classes: tuple[str, ...], leave_out: bool, notes: list[str]) -> LabelledImages:
    if unknown := [name for name in test.classes if name not in classes]:
        named = enumerate_words(map(repr, unknown))
        if not leave_out:
            raise ValueError(f"test classes that were not trained: {named}; leave them out with --leave-out")
        notes.append(f"left out {len(unknown)} test classes that are not trained: {named}")
    test = test.with_classes(classes)
    if not len(test):
        raise ValueError("no test image belongs to a trained class")
    return test


def _divide(
    target: LabelledImages, config: RunConfig, trains: bool, notes: list[str]
) -> tuple[LabelledImages, LabelledImages | None]:
    """Choose which target images train and which are left for the test."""
    if config.shots is not None:
        present = [name for name, count in zip(target.classes, target.counts(), strict=True) if count]
        known = target.with_classes(present)
        if config.target_test is None:
            parts = take_shots(known, config.shots, config.seed)
        else:
            parts = _at_most(known, config.shots, config.seed, "target", notes)
        train, rest = (part.with_classes(target.classes) for part in parts)
        if not len(rest) and config.target_test is None:
            notes.append("all target images are used for training; none are left to test on")
        return train, rest if len(rest) else None
    if config.target_test is not None:
        return target, None
    if not trains:
        notes.append("the method does not learn from the target, so it is tested on all target images")
        return target, target
    notes.append("all target images are used for training; none are left to test on (see --shots and --target-test)")
    return target, None


def _at_most(
    images: LabelledImages, shots: int, seed: int, domain: str, notes: list[str]
) -> tuple[LabelledImages, LabelledImages]:
    """Divide images into `shots` of each class, or all of a class that has fewer, and the rest."""
    if lacking := short_classes(images, shots):
        named = enumerate_words(f"{name} ({count})" for name, count in lacking.items())
        notes.append(f"{len(lacking)} {domain} classes have fewer than {shots} images, all of which are used: {named}")
    return take_shots(images, shots, seed, short="take")


def digest_names(images: LabelledImages) -> str:
    """Return a short digest of the names of the images and their classes."""
    names = json.dumps([[images.name(row), images.labels[row]] for row in range(len(images))])
    return hashlib.sha256(names.encode()).hexdigest()[:16]
