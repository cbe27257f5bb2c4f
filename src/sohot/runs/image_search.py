"""Finds the images that a configuration names, in folders or in a split, and checks that they can be read."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from ..data.folders import FolderScan, LeftOut, scan_folder, unreadable
from ..data.labelled import LabelledImages, Progress, pool
from ..data.unlabelled import scan_unlabelled
from .config import RunConfig


class ImageSearch:
    """One search for the images of a run.

    Args:
        config: The folders, and the threads that read images.
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
        return pool([self.folder(folder.absolute(), "--source") for folder in folders])

    def folder(self, folder: Path | None, option: str) -> LabelledImages:
        """Find the images in the class folders of a folder."""
        if folder is None:
            raise ValueError(f"{option} is missing: give a folder that holds one folder of images per class")
        return self._scan(scan_folder, folder, option)

    def unlabelled(self) -> LabelledImages:
        """Find the images without labels in all folders of the pool, whatever these folders are called."""
        folders, option = self.config.pools(), "--unlabelled"
        if len(folders) == 1:
            return self._scan(scan_unlabelled, folders[0], option)
        _refuse_twice(folders, option)
        places = [folder.resolve() for folder in folders]
        if inner := [place for place in places if set(places) & set(place.parents)]:
            raise ValueError(f"{option} {inner[0]} lies in another folder that was given: leave it out")
        return pool([self._scan(scan_unlabelled, folder.absolute(), option) for folder in folders])

    def _scan(self, scan: Callable[..., FolderScan], folder: Path, option: str) -> LabelledImages:
        told = None if self._progress is None else partial(self._progress, f"checking {option[2:]} images")
        found = scan(folder, check=self.decode, on_progress=told, workers=self._threads)
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
