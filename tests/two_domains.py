"""Made-up features of two domains: the classes of the target are moved and turned against those of the source."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class TwoDomains(NamedTuple):
    X: npt.NDArray[np.float64]
    y: npt.NDArray[np.int64]
    sample_domain: npt.NDArray[np.int64]
    test: npt.NDArray[np.float64]
    test_labels: npt.NDArray[np.int64]


def two_domains(shots: int = 3, classes: int = 3, size: int = 6, shift: float = 2.0, seed: int = 0) -> TwoDomains:
    random = np.random.default_rng(seed)
    centres = 3 * random.normal(size=(classes, size))
    moved = shift * random.normal(size=size)
    counts = {"source": 15, "target": shots, "test": 30}
    rows = {name: np.repeat(np.arange(classes), count) for name, count in counts.items()}
    features = {name: random.normal(size=(len(y), size)) + centres[y] for name, y in rows.items()}
    for name in ("target", "test"):
        features[name] += moved
    return TwoDomains(
        np.concatenate([features["source"], features["target"]]),
        np.concatenate([rows["source"], rows["target"]]),
        np.repeat([1, -2], [len(rows["source"]), len(rows["target"])]),
        features["test"],
        rows["test"],
    )
