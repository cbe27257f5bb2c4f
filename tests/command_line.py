"""Helpers of the command line's tests: tiny folders of images, and what a run leaves."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from torch.utils.data import Dataset
from warm_process import WarmProcess

import sohot
from sohot.networks import inference
from sohot.networks.trunk_and_tail import FrozenTrunk

COLOURS = {"blue": (20, 20, 180), "green": (20, 180, 20), "red": (180, 20, 20)}
QUICK = ("--backbone", "small-cnn", "--image-size", "16", "--device", "cpu", "--loggers", "none")


def write_images(root: Path, count: int, shift: int, seed: int) -> Path:
    """Write `count` noisy squares of each colour, a little lighter by `shift`."""
    noise = np.random.default_rng(seed)
    for name, colour in COLOURS.items():
        (root / name).mkdir(parents=True)
        for number in range(count):
            pixels = noise.normal(0, 25, (16, 18, 3)) + np.array(colour) + shift
            Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(root / name / f"{number}.png")
    return root


@dataclass
class Domains:
    source: Path
    target: Path
    test: Path

    def options(self) -> list[str]:
        return ["--source", str(self.source), "--target", str(self.target), *QUICK]


def make_domains(root: Path) -> Domains:
    shapes = {"source": (6, 0), "target": (5, 40), "test": (4, 40)}
    return Domains(
        *(write_images(root / name, count, shift, seed) for seed, (name, (count, shift)) in enumerate(shapes.items()))
    )


@dataclass
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict:
        return json.loads(self.out)

    @property
    def last(self) -> str:
        return self.err.rstrip().splitlines()[-1]


class Pictures(Dataset):  # type: ignore[type-arg]
    """Images as torchvision gives them: each with the number of its class."""

    def __init__(self, arrays: np.ndarray, labels: Sequence[str]) -> None:
        self.arrays, self.labels, self.classes = arrays, labels, sorted(set(labels))

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, row: int) -> tuple[Image.Image, int]:
        return Image.fromarray(self.arrays[row]), self.classes.index(self.labels[row])


def newest(run: Path) -> Path:
    """Folder of a run's newest checkpoint."""
    return sorted((run / "checkpoints").iterdir())[-1]


def weights(run: Path) -> bytes:
    """The trained weights, to the bit."""
    return (newest(run) / "model.safetensors").read_bytes()


def python_path() -> dict[str, str]:
    """An environment in which a child process finds this very package."""
    source = str(Path(sohot.__file__).parents[1])
    return {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}


def overriding(arguments: Sequence[object]) -> list[str]:
    """Keep the last value of an option: a test may override what a helper gives, a user may not say two things."""
    words = [str(argument) for argument in arguments]
    places = {word: place for place, word in enumerate(words) if word.startswith("--")}
    kept, place = [], 0
    while place < len(words):
        takes_value = words[place].startswith("--") and not words[min(place + 1, len(words) - 1)].startswith("--")
        if words[place] in ("--source", "--unlabelled", "--option") or places.get(words[place], place) == place:
            kept += words[place : place + 1 + takes_value]
        place += 1 + takes_value
    return kept


def start(*arguments: object) -> WarmProcess:
    """Start the command in a process of its own."""
    return WarmProcess(["-m", "sohot", *overriding(arguments)], python_path())


def count_trunk_images(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Give a list that grows by the number of images whenever some pass a frozen trunk."""
    passed: list[int] = []
    forward = FrozenTrunk.forward

    def counted(self, images):
        passed.append(len(images) if images.abs().sum() else 0)  # the size of an output is asked with a black image
        return forward(self, images)

    monkeypatch.setattr(FrozenTrunk, "forward", counted)
    monkeypatch.setattr(inference, "fuse_layers", lambda network, _: network)  # which tries its copy with one image
    return passed
