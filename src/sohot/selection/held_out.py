"""What a trained candidate says about labelled rows that it has not seen."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Logits = npt.NDArray[np.float64]
Classes = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Logits of held-out rows, with their true classes.

    Attributes:
        logits: Shape (rows, classes).
        labels: The true class of each row.

    Example:
        >>> held = HeldOut([[2.0, 0.0], [1.0, 0.0]], [0, 1])
        >>> len(held), held.right, held.log_likelihoods().round(2)
        (2, 1, array([-0.13, -1.31]))
    """

    logits: Logits
    labels: Classes

    def __post_init__(self) -> None:
        object.__setattr__(self, "logits", np.asarray(self.logits, dtype=np.float64))
        object.__setattr__(self, "labels", np.asarray(self.labels, dtype=np.int64))
        if self.logits.ndim != 2 or self.labels.shape != self.logits.shape[:1]:
            raise ValueError(f"logits {self.logits.shape} and labels {self.labels.shape} do not belong together")

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def right(self) -> int:
        """Number of rows classified correctly."""
        return int((self.logits.argmax(1) == self.labels).sum()) if len(self) else 0

    def log_likelihoods(self, temperature: float = 1.0) -> Logits:
        """Logarithm of the probability of each row's true class, of softmax(logits / temperature)."""
        scores = self.logits / temperature
        scores = scores - scores.max(axis=1, keepdims=True)
        found: Logits = scores[np.arange(len(self)), self.labels] - np.log(np.exp(scores).sum(axis=1))
        return found

    @classmethod
    def join(cls, parts: "Sequence[HeldOut]") -> "HeldOut":
        """Put the rows of several folds behind one another."""
        return cls(np.concatenate([one.logits for one in parts]), np.concatenate([one.labels for one in parts]))
