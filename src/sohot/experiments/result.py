"""What came of a cell: its result, and an attempt at it as the store keeps it."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from ..training.evaluation import Evaluation
from .cell import Cell

Curve = Mapping[str, list[float | None]]
"""Losses by name, one value for each of its "step"; None stands for one that is not finite."""


@dataclass(frozen=True)
class ChosenSettings:
    """Settings that were chosen among others.

    Attributes:
        settings: The settings.
        score: Their accuracy on images that were held back, as a share.
        trials: How many were tried.
    """

    settings: Mapping[str, Any]
    score: float
    trials: int


@dataclass(frozen=True)
class CellResult:
    """The result of a cell.

    Attributes:
        accuracy: How well the test images are classified.
        zeta: Learned class weights: "means", "order2", …, a list by class each; None where the method learns none.
        curve: Losses of at most 100 steps.
        chosen: The settings that were chosen; None where they were given.
        seconds: Time spent on "features", "select", "train" and "test".
        steps: Steps of training.
        sizes: Number of images: "source", "target", "test".
        notes: Sentences about the images and their features.
    """

    accuracy: Evaluation
    zeta: Mapping[str, list[float]] | None = None
    curve: Curve = field(default_factory=dict)
    chosen: ChosenSettings | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    steps: int = 0
    sizes: Mapping[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain numbers, lists and dicts."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "CellResult":
        """Read what `as_json` gave; what a version before this one left out is empty.

        Raises:
            ValueError: Something is missing, or is of another kind.
        """
        chosen = content.get("chosen")
        try:
            return cls(
                Evaluation.from_json(content["accuracy"]),
                content.get("zeta"),
                content.get("curve") or {},
                None if chosen is None else ChosenSettings(**chosen),
                content.get("seconds") or {},
                int(content.get("steps", 0)),
                content.get("sizes") or {},
                list(content.get("notes") or ()),
            )
        except KeyError as error:
            raise ValueError(f"it has no {error}") from None
        except (TypeError, AttributeError) as error:
            raise ValueError(str(error)) from None


@dataclass(frozen=True)
class Attempt:
    """One attempt at a cell, done or failed.

    Attributes:
        key: The cell's name.
        cell: The cell.
        result: What came of it; None if it failed.
        error: Why it failed; None if it did not.
        versions: Versions of sohot and of what it stands on.
        started: When it began, as ISO 8601 writes it.
        finished: When it ended.
        host: The machine that computed it.
    """

    key: str
    cell: Cell
    result: CellResult | None
    error: str | None
    versions: Mapping[str, str]
    started: str
    finished: str
    host: str

    @property
    def status(self) -> str:
        """How it ended: "done" or "failed"."""
        return "failed" if self.result is None else "done"


class DoneCell(NamedTuple):
    """A cell that is done, and its result."""

    cell: Cell
    result: CellResult


def done_cells(attempts: Iterable[Attempt]) -> list[DoneCell]:
    """Choose the attempts that came to an end."""
    return [DoneCell(one.cell, one.result) for one in attempts if one.result is not None]
