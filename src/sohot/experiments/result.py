"""The result of a cell, and an attempt at a cell as stored."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..training.evaluation import Evaluation
from .cell import Cell
from .stored_json import check_fields

Curve = Mapping[str, list[float | None]]
"""Losses by name, one value for each entry of "step"; None for values that are not finite."""


@dataclass(frozen=True)
class ChosenSettings:
    """Settings chosen among others.

    Attributes:
        settings: The settings.
        score: Their accuracy on held-out images, as a share.
        trials: How many were tried.
    """

    settings: Mapping[str, Any]
    score: float
    trials: int


@dataclass(frozen=True)
class CellResult:
    """The result of a cell.

    Attributes:
        accuracy: Accuracy on the test images.
        zeta: Learned class weights: "means", "order2", …, a list by class each; None if the method learns none.
        curve: Losses of at most 100 steps.
        chosen: The chosen settings; None if they were given.
        seconds: Time spent on "features", "select", "train" and "test".
        steps: Training steps.
        sizes: Number of images: "source", "target", "test", and "pool" where there is one.
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

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "CellResult":
        """Read a stored result.

        Raises:
            ValueError: Something is missing or has the wrong type.
        """
        try:
            accuracy, chosen = Evaluation.from_json(content["accuracy"]), content["chosen"]
            return cls(
                accuracy,
                content["zeta"],
                content["curve"],
                None if chosen is None else ChosenSettings(**chosen),
                content["seconds"],
                int(content["steps"]),
                content["sizes"],
                list(content["notes"]),
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
        result: Its result; None if it failed.
        error: Why it failed; None if it did not.
        versions: Versions of sohot and its dependencies.
        started: When it began, in ISO 8601.
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


def attempts_to_json(attempts: Sequence[Attempt]) -> str:
    """Write the attempts at one cell as JSON.

    Raises:
        ValueError: JSON cannot hold one of them.
    """
    each = [{name: value for name, value in vars(one).items() if name not in ("key", "cell")} for one in attempts]
    return json.dumps({"cell": attempts[0].cell, "attempts": each}, default=vars, allow_nan=False)


def attempts_from_json(key: str, content: Mapping[str, Any]) -> list[Attempt]:
    """Read what `attempts_to_json` wrote.

    Raises:
        ValueError: It is damaged; another error if it is something else.
    """
    cell, attempts = Cell.from_dict(content["cell"]), []
    for stored in content["attempts"]:
        result = None if stored["result"] is None else CellResult.from_json(stored["result"])
        attempts.append(Attempt(**{**stored, "key": key, "cell": cell, "result": result}))
        check_fields(attempts[-1])
    if not attempts:
        raise ValueError("it has no attempts")
    return attempts


class DoneCell(NamedTuple):
    """A cell that is done, and its result."""

    cell: Cell
    result: CellResult


def done_cells(attempts: Iterable[Attempt]) -> list[DoneCell]:
    """Return the cells of successful attempts, with their results."""
    return [DoneCell(one.cell, one.result) for one in attempts if one.result is not None]
