"""A run fitted from Python, and its images; not to be changed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Domains, make_domains
from PIL import Image

import sohot

QUICK: dict[str, Any] = {"backbone": "small-cnn", "image_size": 16, "device": "cpu", "loggers": "none", "steps": 3}
QUICK |= {"lr": 0.01, "clip_norm": 1, "progress": False}


@pytest.fixture(scope="session")
def quick() -> dict[str, Any]:
    """Options of a quick run; not to be changed."""
    return QUICK


@pytest.fixture(scope="session")
def domains(tmp_path_factory: pytest.TempPathFactory) -> Domains:
    return make_domains(tmp_path_factory.mktemp("domains"))


@pytest.fixture(scope="session")
def run(domains: Domains, tmp_path_factory: pytest.TempPathFactory) -> sohot.Run:
    return sohot.fit(domains.source, domains.target, shots=3, out=tmp_path_factory.mktemp("run") / "first", **QUICK)


def paths_and_labels(folder: Path) -> tuple[list[Path], list[str]]:
    """All images of class folders, in natural order, and their classes."""
    paths = sorted(folder.glob("*/*.png"))
    return paths, [path.parent.name for path in paths]


@pytest.fixture(scope="session")
def test_paths(domains: Domains) -> tuple[list[Path], list[str]]:
    return paths_and_labels(domains.test)


@pytest.fixture(scope="session")
def test_arrays(test_paths: tuple[list[Path], list[str]]) -> "tuple[np.ndarray, list[str]]":
    paths, labels = test_paths
    return np.stack([np.asarray(Image.open(path)) for path in paths]), labels
