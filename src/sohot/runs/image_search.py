"""Finds the images that a configuration names, in folders or in a split, and checks that they can be read."""

from functools import partial
from pathlib import Path

from ..data.folders import LeftOut, scan_folder, unreadable
from ..data.labelled import LabelledImages, Progress, pool
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
        places = [folder.resolve() for folder in folders]
        if twice := [folder for number, folder in enumerate(places) if folder in places[:number]]:
            raise ValueError(f"--source {twice[0]} was given twice")
        return pool([self.folder(folder.absolute(), "--source") for folder in folders])

    def folder(self, folder: Path | None, option: str) -> LabelledImages:
        """Find the images in the class folders of a folder."""
        if folder is None:
            raise ValueError(f"{option} is missing: give a folder that holds one folder of images per class")
        told = None if self._progress is None else partial(self._progress, f"checking {option[2:]} images")
        scan = scan_folder(folder, check=self.decode, on_progress=told, workers=self._threads)
        self.left_out.extend(scan.left_out)
        return scan.images

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
