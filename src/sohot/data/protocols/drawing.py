"""Draw the sides of a split: what the protocols share."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..contents import content_keys
from ..datasets import DataSet
from ..labelled import LabelledImages
from ..names import enumerate_words
from ..shots import short_classes
from .pictures import Pictures, seed_of
from .split import Dropped, Split


class Drawing:
    """A split in the making.

    Each side is drawn in an order given by a hash of the protocol, the data set, the shift, the number of the split and
    the names of the files: by nothing that changes with a machine or a library.

    Args:
        protocol: The protocol.
        dataset: The data set.
        shift: From which domain to which; None where the data set has one shift.
        number: The number of the split.
        leave_out: Leave out classes that only one domain has.
    """

    def __init__(self, protocol: str, dataset: DataSet, shift: str | None, number: int, leave_out: bool) -> None:
        self.protocol, self.dataset, self.number = protocol, dataset, number
        self.shift, self.source_domain, self.target_domain = dataset.parse_shift(shift)
        source, target = dataset.pair(shift, leave_out)
        contents = content_keys([source, target])
        self.source, self.target = Pictures(source, contents[0]), Pictures(target, contents[1])
        self.sides: dict[str, LabelledImages] = {}
        self.dropped: list[Dropped] = []
        self.notes: list[str] = []

    def seed(self, purpose: str) -> int:
        """Give the seed of a side."""
        return seed_of(self.protocol, self.dataset.name, self.shift, self.number, purpose)

    def draw_source(self, shots: int | None) -> None:
        """Fill the side that trains from the source; None takes all."""
        images = self.source.images
        in_target = {content: row for row, content in enumerate(self.target.contents)}
        repeated = {row: in_target[key] for row, key in enumerate(self.source.contents) if key in in_target}
        rows = [row for row in range(len(images)) if row not in repeated]
        self._drop("source_train", self.source, repeated, self.target)
        chosen = rows if shots is None else self.source.take(shots, self.seed("source_train"), rows)
        self._fill("source_train", self.source, chosen, shots)

    def draw_target(self, side: str, shots: int, among: Sequence[int], rest: str) -> list[int]:
        """Fill a side with shots of the target; give the rows that are left for the side `rest`, without relatives."""
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

    def finish(self, settings: Mapping[str, Any]) -> Split:
        """Make the split, which checks it for leaks."""
        if self.dropped:
            sides = {one.side: 0 for one in self.dropped}
            for one in self.dropped:
                sides[one.side] += 1
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
