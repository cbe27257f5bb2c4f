"""A run that the page uses: its model in memory, what is known about it, and its answers about images."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from ..data.names import printable
from ..reporting.pages.run_images import stored_images
from ..runs.description import accuracy_name, is_head
from ..runs.loaded_run import LoadedModel
from ..runs.model_card import calibration_in_words, describe_model
from ..runs.predictions import likeliest
from ..runs.suggest import look_at
from .dropped_images import DroppedImage, as_list
from .surroundings import Surroundings

TOP = 3
"""Classes to show for an image."""


class OpenedRun:
    """A run, or a head, and its answers; each image passes the network once.

    Args:
        folder: Its folder.
        model: Its model.
    """

    def __init__(self, folder: Path, model: LoadedModel) -> None:
        self.folder, self.model = folder, model
        stored = None if is_head(folder) else stored_images(folder)
        self.surroundings = None if stored is None or not stored.outputs.features else Surroundings(stored)
        self._answers: dict[str, dict[str, Any]] = {}

    def facts(self) -> dict[str, Any]:
        """Describe it for the head of the page."""
        facts = describe_model(self.folder)
        accuracy = facts["accuracy"]
        return {
            "name": printable(self.folder.name),
            "folder": printable(self.folder),
            "method": facts["method"],
            "backbone": str(facts["network"].get("backbone", "unknown")),
            "classes": list(self.model.classes),
            "accuracy_name": accuracy_name(facts["protocol"] if accuracy else None),
            "accuracy": accuracy and {name: accuracy[name] for name in ("micro", "interval95", "rows")},
            "calibration": calibration_in_words(facts["calibration"]),
            "caution": self.model.caution(),
        }

    def answer(self, image: DroppedImage) -> dict[str, Any]:
        """Return what the run says about an image: the likeliest classes, its neighbours, its place on the map."""
        if image.key not in self._answers:
            features, logits = look_at(self.model, as_list([image.file]), workers=1)
            top = min(TOP, len(self.model.classes))
            (found,) = likeliest([image.file], logits, self.model.classes, top, self.model.temperature)
            pairs = zip(found.labels, found.probabilities, strict=True)
            self._answers[image.key] = {
                "top": [{"label": label, "probability": share} for label, share in pairs],
                **self._around(features),
            }
        return self._answers[image.key]

    def _around(self, features: torch.Tensor) -> dict[str, Any]:
        around = self.surroundings
        if around is None:
            return {"neighbours": {}, "place_on_map": None}
        near = {part: [asdict(one) for one in around.nearest(features[0], part)] for part in ("source", "target")}
        return {"neighbours": near, "place_on_map": around.place(features)[0]}
