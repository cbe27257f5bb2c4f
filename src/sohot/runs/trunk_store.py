"""The store of trunk outputs: the outputs of the frozen layers are computed once per image and shared by trainings.

They are kept on the device, in memory, in a file of the run, or in a folder shared by the cells of a grid. If every
step uses different images (--augment), or nothing is to be kept, the store returns the images themselves.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from .._device import choose_device
from ..data.augment import AugmentedImages
from ..data.image_batches import ImageInputs
from ..data.input_spec import InputSpec
from ..data.labelled import LabelledImages, Progress
from ..data.random_views import STRONG
from ..data.view_set import KINDS, Kind, ViewSet
from ..functional.plain_checks import check_choice
from ..networks.two_streams import TwoStreams
from ..training.inputs import Inputs, TensorInputs
from ..training.ranks import Ranks
from .config import RunConfig
from .run_model import OPTIONS, START
from .shared_parts import SharedParts
from .trunk_folder import RowInputs, TrunkFolder, fill_folders
from .trunk_outputs import (
    OFF,
    SHARED,
    augmented_images,
    choose_cache,
    fitting_views,
    image_inputs,
    trunk_outputs,
    view_set,
)
from .view_inputs import ViewInputs

_ABOVE_THE_TRUNK = ("streams", "heads", "norm_bound", "projection")
_TRUNK = (*(name for name in OPTIONS if name not in _ABOVE_THE_TRUNK), *START, "seed", "augment")

Key = tuple[object, ...]


class TrunkStore:
    """Provides the inputs of trainings, and keeps shared trunk outputs by network, domain and list of images.

    Args:
        root: The folder in which the cells of a grid share outputs (see `TrunkFolder`); None if there is none.
        progress: Receives the number of images that passed through the trunk.
        tell: Receives each note when it arises.
        parts: What its trainings share with those of other stores, and their folder; None for parts of its own.

    Attributes:
        notes: What the user should know, one sentence each.
    """

    def __init__(
        self,
        root: Path | None = None,
        progress: Progress | None = None,
        tell: Callable[[str], None] | None = None,
        parts: SharedParts | None = None,
    ) -> None:
        self.parts = SharedParts(root) if parts is None else parts
        self.root, self.progress, self.tell = self.parts.root, progress, tell
        self.notes: list[str] = []
        self._places: dict[Key, str] = {}
        self._inputs: dict[Key, Inputs] = {}
        self._views: dict[Key, tuple[RowInputs, ViewSet]] = {}
        self._pictures: dict[Key, AugmentedImages] = {}
        self._lists: dict[str, list[LabelledImages]] = {}

    def place(self, config: RunConfig, model: TwoStreams, rows: int) -> str:
        """Return where the outputs of a network are kept: "device", "memory", "disk", "shared" or "off".

        As requested, else where that many rows fit; decided once per network. `view_rows` counts those of views.
        """
        key = _network(config)
        if key not in self._places:
            shared = self.root is not None and not config.augment
            self._places[key] = SHARED if shared else choose_cache(config, model, rows)
        return self._places[key]

    def inputs(
        self,
        config: RunConfig,
        model: TwoStreams,
        domain: str,
        images: LabelledImages,
        place: str,
        rows: Sequence[int] | None = None,
    ) -> Inputs:
        """Return the inputs of a list of images, or of some of its rows.

        Args:
            config: Augmentation, device, threads, and the run's folder for outputs on disk.
            model: The two streams.
            domain: "source" or "target".
            images: The images.
            place: The result of `place`.
            rows: Rows of the list; None for all.
        """
        if place == OFF:
            return image_inputs(config, model.inputs[domain], images if rows is None else images.subset(rows))
        if place == SHARED:
            return self.shared(config, model, domain, images if rows is None else images.subset(rows))
        key = (*_network(config), domain, images)
        if key not in self._inputs:
            name = self._file_name(domain, images)
            self._inputs[key] = trunk_outputs(config, model, domain, images, place, self.progress, name)
        whole = self._inputs[key]
        return whole if rows is None else TensorInputs(whole.batch(torch.tensor(rows, dtype=torch.int64)))

    def view_inputs(
        self,
        config: RunConfig,
        model: TwoStreams,
        domain: str,
        images: LabelledImages,
        place: str,
        strength: Kind,
        rows: Sequence[int] | None = None,
    ) -> Inputs:
        """Return inputs that show a random view of each image, of a list or of some of its rows.

        Behind a trunk, a fixed set of views of each image is kept (`view_set`); all of them pass through the trunk at
        the first call, whatever its strength. With --augment, or where nothing is frozen, views are made anew for each
        batch; all strengths share the decoded images. Without --augment, the weak view of an image is then plain.

        Args:
            config: Seed, number of views, augmentation, device, threads, and the run's folder for outputs on disk.
            model: The two streams.
            domain: "source" or "target".
            images: The images.
            place: The result of `place`.
            strength: "weak", "strong", or "plain" for the view that tests use.
            rows: Rows of the list; None for all.
        """
        check_choice(strength, KINDS, "strength")
        if place == OFF or len(model.trunk(domain)) == 0:
            return self._image_views(config, model.inputs[domain], images, strength, rows)
        key = (*_network(config), config.pool_views, domain, images)
        if key not in self._views:
            self._views[key] = self._pass_views(config, model, domain, images, place)
        kept, views = self._views[key]
        places = kept.places if rows is None else kept.places[torch.tensor(rows, dtype=torch.int64)]
        if strength == "plain":
            return RowInputs(kept.tensors, torch.nn.functional.pad(places, (0, 1)))  # view 0
        return ViewInputs(kept.tensors, places, views.of(strength))

    def _image_views(
        self, config: RunConfig, spec: InputSpec, images: LabelledImages, strength: Kind, rows: Sequence[int] | None
    ) -> Inputs:
        if strength == "plain" or (strength == "weak" and not config.augment):
            return ImageInputs(images if rows is None else images.subset(rows), spec, config.read_threads)
        key = (spec, images)
        if key not in self._pictures:
            self._pictures[key] = augmented_images(config, spec, images)
        return self._pictures[key].views(STRONG if strength == "strong" else None, rows)

    def _pass_views(
        self, config: RunConfig, model: TwoStreams, domain: str, images: LabelledImages, place: str
    ) -> tuple[RowInputs, ViewSet]:
        """Pass all views of images through the trunk, one row per image."""
        if place == SHARED:  # the same number in every cell, so that cells can be compared
            views = view_set(config, domain)
            return self._shared_views(config, self.folder(model, domain, views), images), views
        name = self._file_name(f"{domain}-views", images)
        each = Ranks.here().from_first(lambda: fitting_views(config, model, domain, len(images), place, name))
        if each < config.pool_views:
            self._note(
                f"{place} has room for {each} of the {config.pool_views} views of each kind that --pool-views asks "
                f"for, for each {domain} image"
            )
        views = view_set(config, domain, each)
        whole = trunk_outputs(config, model, domain, images, place, self.progress, name, views).tensor
        return _all_rows(whole), views

    def _shared_views(self, config: RunConfig, folder: TrunkFolder, images: LabelledImages) -> RowInputs:
        device = choose_device(config.device)
        fill_folders([(folder, [images])], folder.folder.parent, device, config.read_threads, self.progress)
        found = folder.near_inputs(images, device)
        if found is None:
            raise OSError(f"images changed while they were read from {images.origin}: start again")
        return found

    def _file_name(self, stem: str, images: LabelledImages) -> str:
        """Name the file of a list of images: each list of a domain has its own, in the order of first use."""
        lists = self._lists.setdefault(stem, [])
        if images not in lists:
            lists.append(images)
        number = lists.index(images) + 1
        return stem if number == 1 else f"{stem}-{number}"

    def _note(self, sentence: str) -> None:
        if sentence not in self.notes:
            self.notes.append(sentence)
            if self.tell is not None:
                self.tell(sentence)

    def shared(self, config: RunConfig, model: TwoStreams, domain: str, images: LabelledImages) -> Inputs:
        """Return the inputs of images from the grid's folder; missing ones are computed in memory, with a note.

        They are on the GPU that trains, if there is room.
        """
        folder, device = self.folder(model, domain), choose_device(config.device)
        found = folder.inputs(images)
        if found is None:
            folder.refresh()  # another runner may have added them
            found = folder.inputs(images)
        if found is None:
            name = folder.folder.parent.name
            self._note(f"outputs of the frozen layers were not in {name}/ and were computed for this cell only")
            return trunk_outputs(config, model, domain, images, "memory")
        near = folder.near(images, device) if device.type == "cuda" else None
        return found if near is None else TensorInputs(near)

    def folder(self, model: TwoStreams, domain: str, views: ViewSet | None = None) -> TrunkFolder:
        """Return the folder in which the cells of a grid share the outputs of a domain's trunk, for images or views."""
        return self.parts.folder(model, domain, views)


def _all_rows(whole: Tensor) -> RowInputs:
    rows = torch.arange(len(whole))
    return RowInputs([whole], torch.stack([torch.zeros_like(rows), rows], 1))


def _network(config: RunConfig) -> Key:
    """Return a key of everything that determines the outputs of a network's trunks."""
    return tuple(getattr(config, name) for name in _TRUNK)
