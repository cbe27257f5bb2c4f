"""Finds the images that a configuration names, in folders, lists or a split, and checks that they can be read."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ..data.folders import LeftOut, unreadable
from ..data.image_places import scan_images
from ..data.labelled import LabelledImages, Progress, pool
from ..data.manifest import MissingLabels
from ..data.names import printable
from .config import WANTED, RunConfig


class ImageSearch:
    """One search for the images of a run.

    Args:
        config: The folders or lists, and the threads that read images.
        progress: Receives the progress of checking the images.
        decode: Decode every image, and leave out those that cannot be read; False only lists them, which is quick.

    Attributes:
        left_out: Files and folders that are not used, with the reason.
    """

    def __init__(self, config: RunConfig, progress: Progress | None = None, *, decode: bool = True) -> None:
        self.config, self.decode = config, decode
        self.left_out: list[LeftOut] = []
        self._progress = progress if decode else None
        self._threads = config.read_threads or None

    def sources(self) -> LabelledImages:
        """Find the images of all sources, pooled."""
        folders = self.config.sources()
        if len(folders) < 2:
            return self.folder(folders[0] if folders else None, "--source")
        _refuse_twice(folders, "--source")
        return _pooled([self.folder(folder.absolute(), "--source") for folder in folders], "--source")

    def folder(self, folder: Path | None, option: str) -> LabelledImages:
        """Find the images in the class folders of a folder, or in a list."""
        if folder is None:
            raise ValueError(f"{option} is missing: {WANTED}")
        if option != "--target":
            return self._scan(folder, option)
        # One list may hold both kinds of target images, if it is given as both.
        shared = folder.resolve() in [place.resolve() for place in self.config.pools()]
        try:
            return self._scan(folder, option, partly=shared)
        except MissingLabels as error:
            rows = "" if shared else f", or learn from them without labels: add --unlabelled {printable(folder)}"
            raise ValueError(f"{error}{rows}") from None

    def unlabelled(self) -> LabelledImages:
        """Find the images without labels in all folders and lists of the pool, whatever these folders are called."""
        folders, option = self.config.pools(), "--unlabelled"
        if len(folders) == 1:
            return self._scan(folders[0], option, labelled=False, partly=True)
        _refuse_twice(folders, option)
        places = [folder.resolve() for folder in folders if folder.is_dir()]
        if inner := [place for place in places if set(places) & set(place.parents)]:
            raise ValueError(f"{option} {inner[0]} lies in another folder that was given: leave it out")
        found = [self._scan(folder.absolute(), option, labelled=False, partly=True) for folder in folders]
        return _pooled(found, option)

    def _scan(self, place: Path, option: str, *, labelled: bool = True, partly: bool = False) -> LabelledImages:
        told = None if self._progress is None else partial(self._progress, f"checking {option[2:]} images")
        found = scan_images(
            place, labelled=labelled, partly=partly, check=self.decode, on_progress=told, workers=self._threads
        )
        self.left_out.extend(found.left_out)
        return found.images

    def side(self, images: LabelledImages, side: str) -> LabelledImages:
        """Keep those images of a split's side that can be read, and the classes they have."""
        if self.decode:
            told = None if self._progress is None else partial(self._progress, f"checking {side} images")
            broken = unreadable(images, on_progress=told, workers=self._threads)
            lost = [LeftOut(images.files[row], broken[row]) for row in sorted(broken)]
            if len(lost) == len(images):
                raise ValueError(f"none of the {len(images)} {side} images can be read; the first: {lost[0]}")
            self.left_out.extend(lost)
            images = images.subset([row for row in range(len(images)) if row not in broken])
        return images.with_classes([name for name, count in zip(images.classes, images.counts(), strict=True) if count])


def _refuse_twice(folders: Sequence[Path], option: str) -> None:
    places = [folder.resolve() for folder in folders]
    if twice := [place for number, place in enumerate(places) if place in places[:number]]:
        raise ValueError(f"{option} {twice[0]} was given twice")


def _pooled(lists: Sequence[LabelledImages], option: str) -> LabelledImages:
    """Pool the images of several folders and lists, each of which must be in one of them only."""
    seen: dict[Path, LabelledImages] = {}
    for images in lists:
        for file in images.files:
            if (first := seen.setdefault(file, images)) is not images:
                raise ValueError(f"{option}: {printable(file)} is both in {first.origin} and in {images.origin}")
    return pool(lists)
