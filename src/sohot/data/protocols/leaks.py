"""No image is on two sides: neither a file, nor a byte-identical copy, nor another view of the same object."""

from collections.abc import Iterator, Mapping

from ..contents import content_keys
from ..labelled import LabelledImages
from ..names import enumerate_words


class LeakError(ValueError):
    """Images on two sides of a division: `leaks` holds (side, file, side, file, how) for each."""

    def __init__(self, leaks: list[tuple[str, str, str, str, str]]) -> None:
        named = enumerate_words((f"{one} ({a}) and {two} ({b}) {how}" for a, one, b, two, how in leaks), limit=10)
        super().__init__(f"{len(leaks)} leak{'s' if len(leaks) > 1 else ''} between sides: {named}")
        self.leaks = leaks


def check_leaks(sides: Mapping[str, LabelledImages]) -> None:
    """Compare all sides with one another.

    Args:
        sides: The images of each side. The files are read where their sizes are equal.

    Raises:
        LeakError: An image is on two sides; the sentence names the files.
        UnreadableImage: A file is not there.
    """
    leaks = list(find_leaks(sides))
    if leaks:
        raise LeakError(leaks)


def find_leaks(sides: Mapping[str, LabelledImages]) -> Iterator[tuple[str, str, str, str, str]]:
    """Give (side, file, side, file, how they are the same) for each image whose like is on an earlier side."""
    contents = content_keys(list(sides.values()))
    seen: dict[tuple[str, str], tuple[str, int]] = {}
    for (side, images), keys in zip(sides.items(), contents, strict=True):
        mine: dict[tuple[str, str], tuple[str, int]] = {}
        for row, content in enumerate(keys):
            group = images.groups[row] if images.groups else ""
            signs = [("are byte-identical", content), *([(f"show the same, {group}", group)] if group else [])]
            for sign in signs:
                if sign in seen:
                    earlier, place = seen[sign]
                    yield earlier, sides[earlier].name(place), side, images.name(row), sign[0]
                    break
            mine.update((sign, (side, row)) for sign in signs)
        seen = {**mine, **seen}
