"""Labels of images as a small table: a list of named tuples that notebooks show and pandas takes."""

import html
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..data.folders import LeftOut
    from ..runs.predictions import Prediction

_SHOWN = 20  # rows that a notebook shows


class Predicted(NamedTuple):
    """What a run says about one image.

    Attributes:
        image: The file; for an image that was given in memory, its place in what was given, from 0.
        label: Its most likely class; "unknown" if that is refused; None if the image cannot be read.
        probability: How likely that class is; None if the image cannot be read.
        top: The most likely classes with their probabilities, as many as were asked for.
    """

    image: Path | int
    label: str | None
    probability: float | None
    top: tuple[tuple[str, float], ...] = ()


class Predictions(list[Predicted]):
    """One row per image, in the order they were given.

    Args:
        rows: The rows.
        unreadable: Why images could not be read, by their `image`.

    Example:
        >>> table = Predictions([Predicted(Path("a.png"), "mug", 0.75, (("mug", 0.75),))])
        >>> table.labels
        ['mug']
        >>> table
        1 image: mug 1
    """

    def __init__(self, rows: Iterable[Predicted] = (), unreadable: dict[Path | int, str] | None = None) -> None:
        super().__init__(rows)
        self.unreadable = unreadable or {}

    @classmethod
    def of(
        cls, named: Sequence[tuple[Path | int, Path]], found: Iterable["Prediction"], unreadable: Iterable["LeftOut"]
    ) -> "Predictions":
        """Make the table of what a run says about files.

        Args:
            named: What the table calls each image, and its file.
            found: What the run says about those that can be read.
            unreadable: The others, with the reason.
        """
        answers = {one.file: one for one in found}
        reasons = {one.path: one.reason for one in unreadable}
        rows = []
        for image, file in named:
            if (one := answers.get(file)) is None:
                rows.append(Predicted(image, None, None))
            else:
                likeliest = tuple(zip(one.labels, one.probabilities, strict=True))
                rows.append(Predicted(image, one.answer, one.probabilities[0], likeliest))
        return cls(rows, {image: reasons[file] for image, file in named if file in reasons})

    @property
    def labels(self) -> list[str | None]:
        """The label of each image; None for those that cannot be read."""
        return [row.label for row in self]

    @property
    def probabilities(self) -> list[float | None]:
        """The probability of each label; None for images that cannot be read."""
        return [row.probability for row in self]

    def to_pandas(self) -> Any:
        """Return a DataFrame with the columns image, label, probability, and label_2, probability_2, … if asked for.

        Raises:
            ModuleNotFoundError: pandas is not installed.
        """
        try:
            pandas = import_module("pandas")
        except ImportError:
            raise ModuleNotFoundError("to_pandas needs pandas: pip install pandas") from None
        most = max((len(row.top) for row in self), default=1)
        further = [f"{name}_{rank}" for rank in range(2, most + 1) for name in ("label", "probability")]
        rows = []
        for row in self:
            cells: list[Any] = [cell for pair in row.top[1:] for cell in pair]
            cells += [None] * (len(further) - len(cells))  # of an image that cannot be read
            rows.append([_shown(row.image), row.label, row.probability, *cells])
        return pandas.DataFrame(rows, columns=["image", "label", "probability", *further])

    def __repr__(self) -> str:
        each = ", ".join(f"{label} {count}" for label, count in Counter(self.labels).items())
        return f"{len(self)} image{'' if len(self) == 1 else 's'}: {each}" if self else "no images"

    def _repr_html_(self) -> str:
        """Show the first rows as a table in a notebook."""
        lines = []
        for row in self[:_SHOWN]:
            share = "" if row.probability is None else f"{row.probability:.3f}"
            label = self.unreadable.get(row.image, "cannot be read") if row.label is None else row.label
            lines.append("".join(f"<td>{html.escape(cell)}</td>" for cell in (str(_shown(row.image)), label, share)))
        more = f"<p>… and {len(self) - _SHOWN} more</p>" if len(self) > _SHOWN else ""
        head = "<th>image</th><th>label</th><th>probability</th>"
        return f"<table><tr>{head}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>{more}"


def _shown(image: Path | int) -> str | int:
    return str(image) if isinstance(image, Path) else image
