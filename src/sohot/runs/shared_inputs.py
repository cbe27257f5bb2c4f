"""Inputs that several trainings share: each image passes the frozen trunk once, however often it is trained on."""

from collections.abc import Sequence

import torch

from ..data import LabelledImages
from ..streams import TwoStreams
from ..training import Inputs, TensorInputs
from .building import OPTIONS, START
from .config import RunConfig
from .gathering import Progress
from .training_inputs import choose_cache, training_inputs

_ABOVE_THE_TRUNK = ("streams", "heads", "norm_bound", "projection")
_TRUNK = (*(name for name in OPTIONS if name not in _ABOVE_THE_TRUNK), *START, "seed", "augment")

Key = tuple[object, ...]


class SharedInputs:
    """Keeps the trunk's outputs of image lists, by network and domain.

    Args:
        progress: Told how many images have passed the trunk.
    """

    def __init__(self, progress: Progress | None = None) -> None:
        self.progress = progress
        self._places: dict[Key, str] = {}
        self._inputs: dict[Key, Inputs] = {}

    def place(self, config: RunConfig, model: TwoStreams, rows: int) -> str:
        """Say where the outputs of a network are kept, see `choose_cache`; decided once for each network."""
        key = _network(config)
        if key not in self._places:
            self._places[key] = choose_cache(config, model, rows)
        return self._places[key]

    def whole(self, config: RunConfig, model: TwoStreams, domain: str, images: LabelledImages, cache: str) -> Inputs:
        """Give the inputs of a list of images."""
        if cache == "off":
            return training_inputs(config, model, domain, images, cache, self.progress)
        key = (*_network(config), domain, images)
        if key not in self._inputs:
            self._inputs[key] = training_inputs(config, model, domain, images, cache, self.progress)
        return self._inputs[key]

    def part(
        self,
        config: RunConfig,
        model: TwoStreams,
        domain: str,
        images: LabelledImages,
        rows: Sequence[int],
        cache: str,
    ) -> Inputs:
        """Give the inputs of some rows of a list, out of those of the whole where these are kept."""
        if cache == "off":
            return training_inputs(config, model, domain, images.subset(rows), cache)
        inputs = self.whole(config, model, domain, images, cache)
        return TensorInputs(inputs.batch(torch.tensor(rows, dtype=torch.int64)))


def _network(config: RunConfig) -> Key:
    """Tell networks apart by all that decides what their trunks give."""
    return tuple(getattr(config, name) for name in _TRUNK)
