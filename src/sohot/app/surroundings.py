"""The images around a new one, as the network of a run sees them: its nearest neighbours, and its place on a map."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from ..reporting.pages.run_images import PARTS, RunImages

NEIGHBOURS = 4
"""Nearest training images to show, of each domain."""


@dataclass(frozen=True)
class Neighbour:
    """A training image.

    Attributes:
        row: Its place in the list of its part.
        label: Its class.
        likeness: Cosine between its features and those of the new image, both seen from the middle of all features that
            the run keeps: 1 for the same direction.
    """

    row: int
    label: str
    likeness: float


class Surroundings:
    """The features that a run keeps of its images: at most 20 of each class, of source, target and test images.

    Args:
        run: The images and outputs of the run.
    """

    def __init__(self, run: RunImages) -> None:
        self.images = {part: run.images[part] for part in PARTS if part in run.outputs.features}
        self.rows = {part: run.outputs.features[part].rows for part in self.images}
        self.features = {part: run.outputs.features[part].after.float() for part in self.images}

    def label(self, part: str, row: int) -> str:
        """Return the class of an image."""
        images = self.images[part]
        return images.classes[images.labels[row]]

    def nearest(self, features: Tensor, part: str, count: int = NEIGHBOURS) -> list[Neighbour]:
        """Find the images of a part that are most like a new one.

        Args:
            features: The features of the new image, shape (d,).
            part: "source", "target" or "test"; a run without such images has no neighbours there.
            count: How many.
        """
        if part not in self.features:
            return []
        likeness = torch.cosine_similarity(self.features[part] - self._middle, features[None] - self._middle, dim=1)
        found = likeness.topk(min(count, len(likeness)))
        rows = self.rows[part][found.indices].tolist()
        shares = zip(rows, found.values.tolist(), strict=True)
        return [Neighbour(row, self.label(part, row), share) for row, share in shares]

    @cached_property
    def _middle(self) -> Tensor:
        """Return the mean of all features."""
        return torch.cat([*self.features.values()]).double().mean(0)

    @cached_property
    def _directions(self) -> Tensor:
        """Return the two directions in which the features differ most (PCA)."""
        rows = torch.cat([*self.features.values()]).double()
        found: Tensor = torch.linalg.svd(rows - self._middle, full_matrices=False).Vh[:2]
        return found

    def place(self, features: Tensor) -> list[list[float]]:
        """Return the places of rows of features on the map; the map does not change with them."""
        found: list[list[float]] = ((features.double() - self._middle) @ self._directions.T).tolist()
        return found

    def map(self) -> list[dict[str, Any]]:
        """Return the images of each part on the map: rows, classes by number, and places."""
        return [
            {
                "part": part,
                "rows": self.rows[part].tolist(),
                "classes": [self.images[part].labels[row] for row in self.rows[part].tolist()],
                "places": self.place(self.features[part]),
            }
            for part in self.images
        ]
