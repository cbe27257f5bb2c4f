"""Which images train, select and test: a split of a data set without leaks, stored as lists of files."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..._files import write_atomically
from ..._reading import read_json
from ...functional.plain_checks import check_choice
from ..contents import content_keys
from ..labelled import UNLABELLED, LabelledImages
from ..names import enumerate_words
from ..pools import INDUCTIVE, POOL, POOLS, SUPERVISED, TRANSDUCTIVE


class LeakError(ValueError):
    """Images are on two sides of a split: `leaks` holds (side, file, side, file, how) for each."""

    def __init__(self, leaks: list[tuple[str, str, str, str, str]]) -> None:
        named = enumerate_words((f"{one} ({a}) and {two} ({b}) {how}" for a, one, b, two, how in leaks), limit=10)
        super().__init__(f"{len(leaks)} leak{'s' if len(leaks) > 1 else ''} between sides: {named}")
        self.leaks = leaks


def check_leaks(sides: Mapping[str, LabelledImages], pool: str = SUPERVISED) -> None:
    """Compare all sides with one another.

    Args:
        sides: The images of each side. Only files of equal size are read.
        pool: What the unlabelled target images are: one of `POOLS`. Only a transductive split tests on them.

    Raises:
        LeakError: An image is on two sides; the message names the files.
        UnreadableImage: A file is missing.
    """
    leaks = list(find_leaks(sides, shared=(POOL, "target_test") if pool == TRANSDUCTIVE else None))
    if leaks:
        raise LeakError(leaks)


def find_leaks(
    sides: Mapping[str, LabelledImages], shared: tuple[str, str] | None = None
) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield (side, file, side, file, how they are the same) for each image with a match on an earlier side.

    Args:
        sides: The images of each side.
        shared: An earlier and a later side that may hold the same images.
    """
    contents = content_keys(list(sides.values()))
    seen: dict[tuple[str, str], tuple[str, int]] = {}
    for (side, images), keys in zip(sides.items(), contents, strict=True):
        mine: dict[tuple[str, str], tuple[str, int]] = {}
        for row, content in enumerate(keys):
            group = images.groups[row] if images.groups else ""
            signs = [("are byte-identical", content), *([(f"show the same, {group}", group)] if group else [])]
            for sign in signs:
                if sign in seen and (seen[sign][0], side) != shared:
                    earlier, earlier_row = seen[sign]
                    yield earlier, sides[earlier].name(earlier_row), side, images.name(row), sign[0]
                    break
            mine.update((sign, (side, row)) for sign in signs)
        seen = {**mine, **seen}


SIDES = ("source_train", "target_train", "validation", POOL, "target_test")
FORMAT = 1
RULE = (
    "A shot is a picture: of byte-identical files one at most is drawn. Target files that are byte-identical to a "
    "training one, or show the same object or photograph, are dropped from validation and test. Source files that are "
    "byte-identical to any target file are dropped."
)
"""How duplicates are handled."""
POOL_RULES = {
    TRANSDUCTIVE: "The images that test are in the pool: training sees them without labels.",
    INDUCTIVE: "Half of the images that would test are the pool instead, which training sees without labels. The "
    "halves are drawn without reading a label; files that are byte-identical or show the same are in one half.",
}
"""What is in the pool."""


@dataclass(frozen=True)
class Dropped:
    """A file that is on no side, the side it would be on, and the file that it repeats."""

    file: str
    side: str
    repeats: str


@dataclass(frozen=True)
class Split:
    """One split of a data set. Creating it checks for leaks.

    Attributes:
        protocol: The protocol that made it.
        dataset: The name of the data set.
        shift: Source and target domain.
        number: The split number (the seed, in protocols that use seeds).
        settings: The numbers of the protocol.
        classes: Names of the classes.
        sides: The images of "source_train", "target_train", "target_test" and, where there are such, "validation" and
            "target_pool", all of whose images have the one class "unlabelled".
        dropped: Files that `RULE` keeps off every side.
        notes: Further remarks, one sentence each.
        root: The folder of the data set; not stored.
        pool: What the unlabelled target images are: one of `POOLS`.
    """

    protocol: str
    dataset: str
    shift: str
    number: int
    settings: Mapping[str, Any]
    classes: tuple[str, ...]
    sides: Mapping[str, LabelledImages]
    dropped: tuple[Dropped, ...] = ()
    notes: tuple[str, ...] = ()
    root: Path = field(default=Path(), compare=False)
    pool: str = SUPERVISED

    def __post_init__(self) -> None:
        unknown = [name for name in self.sides if name not in SIDES]
        if unknown:
            raise ValueError(f"sides must be among {', '.join(SIDES)}, got {unknown[0]!r}")
        # In one order and by names below one folder, so that a stored split equals the original.
        ordered = {name: replace(self.sides[name], root=self.root) for name in SIDES if name in self.sides}
        object.__setattr__(self, "sides", ordered)
        self._check_pool(ordered)
        check_leaks(ordered, self.pool)

    def _check_pool(self, sides: Mapping[str, LabelledImages]) -> None:
        check_choice(self.pool, tuple(POOLS), "pool")
        if (POOL in sides) != (self.pool != SUPERVISED):
            raise ValueError(f"{self.pool} splits have {'no' if POOL in sides else 'a'} side {POOL}")
        for side, images in sides.items():
            if (images.classes == (UNLABELLED,)) != (side == POOL):
                raise ValueError(f"the images of {side} must be {UNLABELLED if side == POOL else 'labelled'}")
        if self.pool == TRANSDUCTIVE and not {*_images(sides["target_test"])} <= {*_images(sides[POOL])}:
            raise ValueError(f"a transductive split tests on images of its {POOL}, but this one also tests on others")

    @property
    def fingerprint(self) -> str:
        """A hash that changes with any file, label or number of the split."""
        return fingerprint_of(self._content())

    def counts(self) -> dict[str, int]:
        """Count the images of each side."""
        return {name: len(images) for name, images in self.sides.items()}

    def as_dict(self) -> dict[str, Any]:
        """Return the split as JSON values: files by their names below the data set's folder. See `from_dict`."""
        return sealed(self._content())

    def _content(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "protocol": self.protocol,
            "dataset": self.dataset,
            "shift": self.shift,
            "split": self.number,
            "settings": dict(self.settings),
            "rule": " ".join([RULE, *([POOL_RULES[self.pool]] if self.pool in POOL_RULES else [])]),
            "counts": self.counts(),
            "classes": list(self.classes),
            "sides": {name: side_as_dict(images) for name, images in self.sides.items()},
            "dropped": [{"file": drop.file, "side": drop.side, "repeats": drop.repeats} for drop in self.dropped],
            "notes": list(self.notes),
            **({} if self.pool == SUPERVISED else {"pool": self.pool}),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], root: str | os.PathLike[str]) -> "Split":
        """Rebuild a split from the result of `as_dict`, for the data set in `root`, and check it for leaks.

        Raises:
            ValueError: It is not a split, was changed after it was stored, or has a leak.
        """
        try:
            check_seal(content)
            classes, folder = tuple(content["classes"]), Path(root)
            sides = {
                name: pool_from_dict(side, folder) if name == POOL else side_from_dict(side, classes, folder)
                for name, side in content["sides"].items()
            }
            return cls(
                content["protocol"],
                content["dataset"],
                content["shift"],
                content["split"],
                content["settings"],
                classes,
                sides,
                tuple(Dropped(**drop) for drop in content["dropped"]),
                tuple(content["notes"]),
                folder,
                content.get("pool", SUPERVISED),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"this is not a split: {type(error).__name__} {error}") from None


def _images(side: LabelledImages) -> Iterator[tuple[Path, str]]:
    return zip(side.files, side.parts or [""] * len(side), strict=True)


def split_bytes(split: Split) -> bytes:
    """Return a split as it is stored: JSON in plain ASCII, the same bytes everywhere."""
    return as_ascii(split.as_dict())


def write_split(split: Split, file: str | os.PathLike[str]) -> None:
    """Store a split as JSON."""
    write_atomically(Path(file), split_bytes(split))


def read_split(file: str | os.PathLike[str], root: str | os.PathLike[str]) -> Split:
    """Read a stored split for the data set in `root`; check its fingerprint and leaks.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is not a split, was changed, or has a leak.
    """
    return Split.from_dict(read_content(file), root)


def read_content(file: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the JSON object of a stored split, unchecked."""
    try:
        content = read_json(file)
    except FileNotFoundError:
        raise FileNotFoundError(f"the split {file} does not exist") from None
    except ValueError as error:
        raise ValueError(f"the split {file} is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"the split {file} is not a JSON object")
    return content


def as_ascii(content: Mapping[str, Any]) -> bytes:
    """Encode JSON in plain ASCII, the same bytes everywhere."""
    return (json.dumps(content, indent=1, allow_nan=False) + "\n").encode("ascii")


UNSEALED = ("fingerprint", "folders")
"""What the fingerprint does not cover: itself, and where the images of a run lie, which may move."""


def fingerprint_of(content: Mapping[str, Any]) -> str:
    """Return a hash that changes with any file, label or number of a split."""
    covered = {name: value for name, value in content.items() if name not in UNSEALED}
    canonical = json.dumps(covered, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """Add the fingerprint; `check_seal` finds later changes by it."""
    return {**content, "fingerprint": fingerprint_of(content)}


def check_seal(content: Mapping[str, Any]) -> None:
    """Refuse a split of another format, and one that was changed."""
    if content["format"] != FORMAT:
        raise ValueError(f"a split of format {content['format']} cannot be read; only format {FORMAT} can")
    if content["fingerprint"] != fingerprint_of(content):
        raise ValueError("the split does not match its fingerprint: it was changed after it was made")


def side_as_dict(images: LabelledImages) -> dict[str, Any]:
    """Describe the images of a side as JSON values: files by their names below `images.root`, labels if known."""
    content = images.as_dict()
    del content["classes"], content["root"]
    if images.classes == (UNLABELLED,):
        del content["labels"]
    content["files"] = [file.relative_to(images.root or "").as_posix() for file in images.files]
    return content


def pool_from_dict(side: Mapping[str, Any], root: Path) -> LabelledImages:
    """Read the images of a side without labels, as `side_from_dict` reads others."""
    return side_from_dict({**side, "labels": [0] * len(side["files"])}, (UNLABELLED,), root)


def side_from_dict(side: Mapping[str, Any], classes: tuple[str, ...], root: Path) -> LabelledImages:
    """Read the result of `side_as_dict`, for images below `root`.

    Raises:
        ValueError: A file is not below `root`.
    """
    outside = [name for name in side["files"] if Path(name).is_absolute() or ".." in Path(name).parts]
    if outside:
        raise ValueError(f"it names files outside its folder: {enumerate_words(outside, limit=3)}")
    files = [str(root / file) for file in side["files"]]
    return LabelledImages.from_dict({**side, "files": files, "classes": classes, "root": str(root)})
