"""The plot of who is taken for whom."""

from collections.abc import Sequence

from . import plots
from .blocks import Plot

MOST = 60
"""Of more classes than this those with the most mistakes are shown."""


def confusion_plot(confusion: Sequence[Sequence[int]], names: Sequence[str], title: str) -> Plot:
    """Draw a confusion matrix.

    Args:
        confusion: Images by true class (first) and answer.
        names: Names of the classes.
        title: Heading of the plot.
    """
    right = sum(row[place] for place, row in enumerate(confusion))
    told = f"{right:,} of {sum(map(sum, confusion)):,} images lie on the diagonal"
    shown = most_mistaken(confusion, MOST)
    which = (
        f"{len(names)} classes" if len(shown) == len(names) else f"the {MOST} of {len(names)} classes in most mistakes"
    )
    size = len(shown)
    return Plot(
        plots.heat_map(confusion, names, shown),
        title,
        f"Confusion matrix of {which}: rows are the truth, columns the answers; {told}.",
        height=max(300, min(1200, 150 + 20 * size)),
        least_width=0 if size <= 12 else 190 + 16 * size,
    )


def most_mistaken(confusion: Sequence[Sequence[int]], most: int) -> list[int]:
    """Choose the classes that take part in the most mistakes, in their own order.

    >>> most_mistaken([[5, 0, 2], [0, 9, 0], [1, 0, 7]], 2)
    [0, 2]
    """
    places = range(len(confusion))
    mistakes = [sum(confusion[i]) + sum(row[i] for row in confusion) - 2 * confusion[i][i] for i in places]
    return sorted(sorted(places, key=lambda place: -mistakes[place])[:most])
