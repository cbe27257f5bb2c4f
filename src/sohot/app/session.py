"""What the page works on: a run, the images that were dropped and labelled, and a training; one request at a time."""

from collections.abc import Callable
from pathlib import Path
from threading import RLock
from typing import Any

from .._files import refuse_link
from .._reading import read_regular
from ..data.labelled import LabelledImages
from ..data.names import printable
from ..reporting.pages.thumbnails import small_jpeg
from ..runs.loaded_run import LoadedModel
from ..runs.split_file import read_pool
from ..runs.suggest import suggest_images
from ..runs.suggest_candidates import find_candidates
from .comparison import compare, runs_beside
from .dropped_images import MOST_BYTES, MOST_IMAGES, DroppedImages, Unknown, as_list
from .labelled_folder import LabelledFolder
from .opened_run import OpenedRun
from .training_again import why_not, write_request
from .training_job import TrainingJob

SMALL = 320
"""Longest side of the pictures on the page, in pixels."""
MOST_SUGGESTED = 50


class Session:
    """The state behind the page.

    Args:
        run: The folder of the run, or of a head.
        folder: The app's folder, where all that it stores lies; it exists.
        open_model: Loads the model of a run.
        other: A second run to compare with; None for none.
        trust: Whether a training may import the Python file that the run names.
    """

    def __init__(
        self,
        run: Path,
        folder: Path,
        open_model: Callable[[Path], LoadedModel],
        other: Path | None = None,
        trust: bool = False,
    ) -> None:
        self.home, self.folder, self.other = run, folder, other
        self._open_model, self._trust = open_model, trust
        self.run = OpenedRun(run, open_model(run))
        self.dropped = DroppedImages(folder)
        self.labelled = LabelledFolder(folder / "labelled", self.run.model.classes)
        self.job: TrainingJob | None = None
        self.progress: tuple[str, int, int] | None = None
        self._lock = RLock()

    def state(self) -> dict[str, Any]:
        """Describe everything but the answers, which take time."""
        with self._lock:
            pool = None if why_not(self.run.folder) else read_pool(self.run.folder)
            return {
                "run": {**self.run.facts(), "key": _key(self.run.folder)},
                "images": [self._described(image.key) for image in self.dropped.all()],
                **self._labels(),
                "labelled_folder": printable(self.labelled.folder),
                "pool": 0 if pool is None else len(pool),
                "why_not": why_not(self.run.folder),
                "runs": [{"key": key, "name": _name(path)} for key, path in self.others().items()],
                "compare_with": None if self.other is None else _key(self.other),
                "limits": {"images": MOST_IMAGES, "bytes": MOST_BYTES},
            }

    def _labels(self) -> dict[str, Any]:
        return {"labelled": self.labelled.counts()}

    def _described(self, key: str) -> dict[str, Any]:
        return {"key": key, "name": self.dropped.find(key).name, "label": self.labelled.label(key)}

    def drop(self, name: str, content: bytes) -> dict[str, Any]:
        """Store an image."""
        with self._lock:
            return self._described(self.dropped.add(name, content).key)

    def answer(self, key: str) -> dict[str, Any]:
        """Return what the run says about an image."""
        with self._lock:
            return {**self._described(key), **self.run.answer(self.dropped.find(key))}

    def label(self, key: str, name: str | None) -> dict[str, Any]:
        """Give an image a label, or take it back; the image goes into the labelled folder, or leaves it."""
        with self._lock:
            image = self.dropped.find(key)
            if name is None:
                self.labelled.take_back(key)
            else:
                self.labelled.give(image, name)
            return {**self._described(key), **self._labels()}

    def remove(self, key: str | None) -> dict[str, Any]:
        """Remove an image and its label; or, without a key, all images that have no label."""
        with self._lock:
            every = [image.key for image in self.dropped.all() if self.labelled.label(image.key) is None]
            gone = every if key is None else [key]
            self.dropped.remove(gone)
            for one in gone:
                self.labelled.take_back(one)
            return {"removed": gone, **self._labels()}

    def small(self, key: str) -> bytes:
        """Return a dropped image as a small JPEG."""
        return small_jpeg(as_list([self.dropped.find(key).file]), 0, SMALL)

    def small_of_run(self, part: str, row: int) -> bytes:
        """Return an image of the run as a small JPEG: of "source", "target" or "test"."""
        around = self.run.surroundings
        images = None if around is None else around.images.get(part)
        if images is None or not 0 <= row < len(images):
            raise Unknown("the run has no such image")
        return small_jpeg(images, row, SMALL)

    def map(self) -> list[dict[str, Any]]:
        """Return the images of the run on the map."""
        around = self.run.surroundings
        return [] if around is None else around.map()

    def suggest(self, where: str, count: int) -> dict[str, Any]:
        """Choose the images to label next, as `sohot suggest` does.

        Args:
            where: "dropped" for the dropped images without a label, "pool" for the run's own unlabelled images, of
                which the chosen ones are then among the dropped ones.
            count: How many.
        """
        if where not in ("dropped", "pool"):
            raise ValueError("images are suggested of those dropped or of the run's own")
        if not 1 <= count <= MOST_SUGGESTED:
            raise ValueError(f"the number of images to suggest must lie in 1 … {MOST_SUGGESTED}, got {count}")
        with self._lock:
            run = self.run
            try:
                images = self._candidates(where)
                chosen = suggest_images(run.model, run.folder, images, count, progress=self._tell)
            finally:
                self.progress = None
            found = []
            for one in chosen:
                file = one.prediction.file
                if where == "pool":
                    name = images.name(images.files.index(file))
                    found.append({**self.drop(name, read_regular(file)), "why": one.why})
                else:
                    found.append({**self._described(file.stem), "why": one.why})
            return {"suggested": found}

    def _candidates(self, where: str) -> LabelledImages:
        """Find the images that have no label yet."""
        if where == "dropped" and not len(self.dropped):
            raise ValueError("there are no images yet: drop some, and ask again")
        found = find_candidates(self.run.folder, self.dropped.folder if where == "dropped" else None, None, self._tell)
        images = found.images
        if images.parts or images.reader != "image":
            raise ValueError("the unlabelled images of this run are parts of files: `sohot suggest` lists them")
        if where == "dropped":
            images = images.subset([r for r, file in enumerate(images.files) if self.labelled.label(file.stem) is None])
        if not len(images):
            raise ValueError("all images have labels: drop others, and ask again")
        return images

    def _tell(self, stage: str, done: int, of: int) -> None:
        self.progress = (stage, done, of)

    def train(self) -> dict[str, Any]:
        """Start training again, with the labelled images among the target images, into a new folder beside the run."""
        with self._lock:
            if self.job is not None and self.job.running:
                raise ValueError("a training is running: wait for it, or stop it")
            if not len(self.labelled):
                raise ValueError("no image has a label yet: label some, and train again")
            out = free_folder(self.home)
            notes = refuse_link(self.folder / "training")
            notes.mkdir(exist_ok=True)
            config = write_request(self.run.folder, self.labelled.images(), notes, out.name, trust=self._trust)
            self.job = TrainingJob(config, out, notes / f"{out.name}.log", trust=self._trust)
            return self.training()

    def training(self) -> dict[str, Any]:
        """Describe the training, and when it is done, what it changed."""
        job = self.job
        if job is None:
            return {"state": "none"}
        found: dict[str, Any] = {**job.as_json(), "key": _key(job.out), "used": _key(job.out) == _key(self.run.folder)}
        if not found["said"] and found["state"] == "failed":
            found["said"] = "the training ended without a word"
        return found

    def stop(self) -> dict[str, Any]:
        """Stop the training; it saves what it has."""
        if self.job is not None:
            self.job.stop()
        return self.training()

    def others(self) -> dict[str, Path]:
        """Return the runs that can be compared with, or used instead: the second one, and those beside the first."""
        runs = [
            self.home,
            *([] if self.other is None else [self.other]),
            *runs_beside(self.home, self.labelled.classes),
        ]
        return {_key(path): path for path in runs if _key(path) != _key(self.run.folder)}

    def _find(self, key: str) -> Path:
        if (path := self.others().get(key)) is None:
            raise Unknown("there is no such run")
        return path

    def use(self, key: str) -> None:
        """Use another run from now on: images are labelled by it, and its images are their neighbours.

        Raises:
            ValueError: Its classes are others, so labels that were given do not fit it.
        """
        path = self._find(key)
        model = self._open_model(path)
        if tuple(model.classes) != self.labelled.classes:
            raise ValueError(f"{path.name} has other classes: start the app with it")
        with self._lock:
            self.run = OpenedRun(path, model)

    def compare(self, key: str) -> dict[str, Any]:
        """Compare the run with another one."""
        return compare(self.run.folder, self._find(key))

    def close(self) -> Path | None:
        """Stop what is running; return the folder of a training that was stopped by this, None without one."""
        if self.job is None or not self.job.running:
            return None
        self.job.stop()
        return self.job.out


def free_folder(run: Path) -> Path:
    """Return a new name beside a run: `first-2` for `first`, `first-3` if that is taken.

    >>> free_folder(Path("/nowhere/first")).as_posix()
    '/nowhere/first-2'
    """
    run = run.absolute()
    number = 2
    while (out := run.with_name(f"{run.name}-{number}")).exists() or out.is_symlink():
        number += 1
    return out


def _key(path: Path) -> str:
    """Name a run in requests; only the names of runs that we list are looked up."""
    return printable(path.absolute())


def _name(path: Path) -> str:
    return printable(path.absolute().name)
