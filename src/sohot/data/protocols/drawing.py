"""The images of one domain, which of them show the same thing, and how the sides of a split are drawn from them."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...functional.plain_checks import check_choice
from ..contents import content_keys
from ..datasets.dataset import DataSet
from ..labelled import LabelledImages
from ..names import enumerate_words
from ..pools import INDUCTIVE, POOL, POOLS, SUPERVISED
from ..shots import short_classes, shot_rows
from .split import Dropped, Split


def check_count(value: int, name: str, lowest: int, highest: int | None = None) -> int:
    """Require an integer in a range."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < lowest or (highest is not None and value > highest):
        bounds = f"at least {lowest}" if highest is None else f"in {lowest} … {highest}"
        raise ValueError(f"{name} must be {bounds}, got {value}")
    return value


def seed_of(*parts: str | int) -> int:
    """Turn names and numbers into a seed, the same on every machine.

    >>> seed_of("paper", "office31", 1) % 1000
    36
    """
    return int.from_bytes(hashlib.sha256("\0".join(map(str, parts)).encode("utf-8")).digest(), "big")


class Pictures:
    """Images with their content.

    Args:
        images: The images.
        contents: Their `content_keys`.
    """

    def __init__(self, images: LabelledImages, contents: Sequence[str]) -> None:
        self.images = images
        self.contents = contents
        self._signs = [self._signs_of(row) for row in range(len(images))]

    def _signs_of(self, row: int) -> list[tuple[str, str]]:
        group = self.images.groups[row] if self.images.groups else ""
        return [("content", self.contents[row]), *([("group", group)] if group else [])]

    def take(self, shots: int, seed: int, among: Iterable[int]) -> list[int]:
        """Draw `shots` different pictures of each class from some rows, or all that a class has."""
        different: dict[tuple[int, str], int] = {}
        for row in sorted(among, key=self.images.name):  # of several copies, the first by name
            different.setdefault((self.images.labels[row], self.contents[row]), row)
        return sorted(shot_rows(self.images, shots, seed, different.values()))

    def relatives(self, rows: Sequence[int], among: Iterable[int]) -> dict[int, int]:
        """Find the rows that show the same thing as one of `rows`: row → the one it repeats."""
        taken = {sign: row for row in reversed(rows) for sign in reversed(self._signs[row])}
        own = set(rows)
        repeated = {}
        for row in among:
            sign = next((sign for sign in self._signs[row] if sign in taken), None)
            if sign is not None and row not in own:
                repeated[row] = taken[sign]
        return repeated

    def clusters(self) -> list[list[int]]:
        """Group all rows that show the same thing, directly or through others, in the order of their first rows."""
        leader = list(range(len(self.images)))

        def find(row: int) -> int:
            while leader[row] != row:
                leader[row] = leader[leader[row]]
                row = leader[row]
            return row

        first: dict[tuple[str, str], int] = {}
        for row, signs in enumerate(self._signs):
            for sign in signs:
                one, two = find(first.setdefault(sign, row)), find(row)
                leader[max(one, two)] = min(one, two)
        together: dict[int, list[int]] = {}
        for row in range(len(self.images)):
            together.setdefault(find(row), []).append(row)
        return list(together.values())

    def halves(self, rows: Iterable[int], seed: int) -> tuple[list[int], list[int]]:
        """Divide rows at random into two halves; what shows the same thing stays together. No label is read.

        A hash of the seed and the names gives the order, so nothing depends on the machine. Where nothing has to stay
        together, the first half has at most one row more.
        """
        wanted = set(rows)
        clusters = [kept for cluster in self.clusters() if (kept := [row for row in cluster if row in wanted])]
        clusters.sort(key=lambda cluster: seed_of(seed, min(map(self.images.name, cluster))))
        halves: tuple[list[int], list[int]] = ([], [])
        for cluster in clusters:
            min(halves, key=len).extend(cluster)
        return sorted(halves[0]), sorted(halves[1])


class Drawing:
    """A split in the making.

    Each side is drawn in an order given by a hash of the protocol, the data set, the shift, the number of the split and
    the names of the files: nothing depends on the machine or a library.

    Args:
        protocol: The protocol.
        dataset: The data set.
        shift: Source and target domain; None where the data set has only one shift.
        number: The split number.
        leave_out: Leave out classes that only one domain has.
        pool: What the unlabelled target images are: one of `POOLS`.
    """

    def __init__(
        self, protocol: str, dataset: DataSet, shift: str | None, number: int, leave_out: bool, pool: str
    ) -> None:
        check_choice(pool, tuple(POOLS), "pool")
        self.protocol, self.dataset, self.number, self.pool = protocol, dataset, number, pool
        self.shift, self.source_domain, self.target_domain = dataset.parse_shift(shift)
        source, target = dataset.pair(shift, leave_out)
        contents = content_keys([source, target])
        self.source, self.target = Pictures(source, contents[0]), Pictures(target, contents[1])
        self.sides: dict[str, LabelledImages] = {}
        self.dropped: list[Dropped] = []
        self.notes: list[str] = []

    def seed(self, purpose: str) -> int:
        """Return the seed of a side."""
        return seed_of(self.protocol, self.dataset.name, self.shift, self.number, purpose)

    def draw_source(self, shots: int | None) -> None:
        """Fill the source side that trains; None takes all images."""
        images = self.source.images
        in_target = {content: row for row, content in enumerate(self.target.contents)}
        repeated = {row: in_target[key] for row, key in enumerate(self.source.contents) if key in in_target}
        rows = [row for row in range(len(images)) if row not in repeated]
        self._drop("source_train", self.source, repeated, self.target)
        chosen = rows if shots is None else self.source.take(shots, self.seed("source_train"), rows)
        self._fill("source_train", self.source, chosen, shots)

    def draw_target(self, side: str, shots: int, among: Sequence[int], rest: str) -> list[int]:
        """Fill a side with shots of the target; return the rows left for the side `rest`, without relatives."""
        chosen = self.target.take(shots, self.seed(side), among)
        self._fill(side, self.target, chosen, shots)
        taken = set(chosen)
        relatives = self.target.relatives(chosen, among)
        self._drop(rest, self.target, relatives, self.target)
        return [row for row in among if row not in taken and row not in relatives]

    def fill_rest(self, side: str, rows: Sequence[int]) -> None:
        """Fill a side with all of these target rows."""
        self._fill(side, self.target, rows, None)
        empty = [
            name for name, count in zip(self.target.images.classes, self.sides[side].counts(), strict=True) if not count
        ]
        if empty:
            self.notes.append(f"{side} has no image of {len(empty)} classes: {enumerate_words(empty)}")

    def fill_test(self, rows: Sequence[int], seed: int | None = None) -> None:
        """Fill the side that tests, and the pool if there is one, with the target rows that are left.

        Args:
            rows: The rows.
            seed: The seed of the halves of an inductive split; None for that of this split.
        """
        seen = rows
        if self.pool == INDUCTIVE:
            seen, rows = self.target.halves(rows, self.seed(POOL) if seed is None else seed)
        if self.pool != SUPERVISED:
            self.sides[POOL] = self.target.images.subset(seen).without_labels()
        self.fill_rest("target_test", rows)

    def finish(self, settings: Mapping[str, Any]) -> Split:
        """Make the split, which checks it for leaks."""
        if self.dropped:
            sides = {drop.side: 0 for drop in self.dropped}
            for drop in self.dropped:
                sides[drop.side] += 1
            counted = ", ".join(f"{count} of {side}" for side, count in sides.items())
            self.notes.append(f"files dropped because they repeat others: {counted}")
        return Split(
            self.protocol,
            self.dataset.name,
            self.shift,
            self.number,
            settings,
            self.target.images.classes,
            self.sides,
            tuple(self.dropped),
            tuple(self.notes),
            self.dataset.root,
            self.pool,
        )

    def _fill(self, side: str, pictures: Pictures, rows: Sequence[int], shots: int | None) -> None:
        images = pictures.images.subset(rows)
        self.sides[side] = images
        if shots is not None and (lacking := short_classes(images, shots)):
            named = enumerate_words(f"{name} ({count})" for name, count in lacking.items())
            self.notes.append(f"{side}: classes with fewer than {shots} images give what they have: {named}")

    def _drop(self, side: str, pictures: Pictures, repeats: Mapping[int, int], others: Pictures) -> None:
        for row, other in repeats.items():
            self.dropped.append(Dropped(self._name(pictures.images, row), side, self._name(others.images, other)))

    def _name(self, images: LabelledImages, row: int) -> str:
        name = images.files[row].relative_to(self.dataset.root).as_posix()
        return f"{name}#{images.parts[row]}" if images.parts else name
