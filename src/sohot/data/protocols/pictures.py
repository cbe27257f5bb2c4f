"""The images of one domain, and which of them show the same: copies, views of one object, crops of one photograph."""

import hashlib
from collections.abc import Iterable, Sequence

from ..labelled import LabelledImages
from ..shots import shot_rows


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
        contents: What `content_keys` gave for them.
    """

    def __init__(self, images: LabelledImages, contents: Sequence[str]) -> None:
        self.images = images
        self.contents = contents
        self._signs = [self._signs_of(row) for row in range(len(images))]

    def _signs_of(self, row: int) -> list[tuple[str, str]]:
        group = self.images.groups[row] if self.images.groups else ""
        return [("content", self.contents[row]), *([("group", group)] if group else [])]

    def take(self, shots: int, seed: int, among: Iterable[int]) -> list[int]:
        """Draw `shots` different pictures of each class out of some rows, or what a class has."""
        different: dict[tuple[int, str], int] = {}
        for row in sorted(among, key=self.images.name):  # of copies the one whose name comes first
            different.setdefault((self.images.labels[row], self.contents[row]), row)
        return sorted(shot_rows(self.images, shots, seed, different.values()))

    def relatives(self, rows: Sequence[int], among: Iterable[int]) -> dict[int, int]:
        """Find the rows that show the same as one of `rows`: row → the one it repeats."""
        taken = {sign: row for row in reversed(rows) for sign in reversed(self._signs[row])}
        own = set(rows)
        found = {}
        for row in among:
            sign = next((sign for sign in self._signs[row] if sign in taken), None)
            if sign is not None and row not in own:
                found[row] = taken[sign]
        return found

    def clusters(self) -> list[list[int]]:
        """Put together all rows that show the same, directly or through others; in the order of their first rows."""
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
