"""Time how `SoHoTClassifierCV` chooses among its usual candidates, against one fit of scikit-learn.

    python benchmarks/choosing.py                       # two CPU cores: about a minute

The rows have the shape of Office-31: 31 classes of 1280 features, 20 source rows and 3 target rows of each class. A
choice is 27 trainings on folds and up to nine on all rows; `SoHoTClassifier` is one training on all rows and three on
folds, for its temperature. All take turns within one run; the ratio is that of the medians.
"""

import argparse
import platform
import statistics
import time

import numpy as np
import sklearn
import torch
from sklearn.linear_model import LogisticRegression
from stacked import CLASSES, SHOTS, made_up

from sohot import SoHoTClassifier, SoHoTClassifierCV

SOURCE_ROWS = 20  # of each class
ONE_FIT = "scikit-learn's LogisticRegression"


def rows() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw the rows of both domains: features, labels, and 1 for the source or −1 for the target."""
    features, labels, domains = made_up()
    kept = [
        ((labels == c) & (domains == domain)).nonzero().flatten()[:count]
        for domain, count in ((0, SOURCE_ROWS), (1, SHOTS))
        for c in range(CLASSES)
    ]
    chosen = torch.cat(kept)
    return features[chosen].numpy(), labels[chosen].numpy(), np.where(domains[chosen] == 0, 1, -1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    features, y, domain = rows()
    scale = np.sqrt(np.square(features - features.mean(0)).mean())
    weights = np.where(domain > 0, 0.5 / (domain > 0).sum(), 0.5 / (domain < 0).sum())
    regression = LogisticRegression(C=1 / (2 * SoHoTClassifier().head_decay), max_iter=1000)
    ways = {
        ONE_FIT: lambda: regression.fit((features - features.mean(0)) / scale, y, sample_weight=weights),
        "SoHoTClassifier": lambda: SoHoTClassifier().fit(features, y, sample_domain=domain),
        "SoHoTClassifierCV": lambda: SoHoTClassifierCV().fit(features, y, sample_domain=domain),
    }
    versions = f"Python {platform.python_version()}, torch {torch.__version__}, scikit-learn {sklearn.__version__}"
    threads = f"{torch.get_num_threads()} CPU threads"
    print(f"{len(features)} rows of {features.shape[1]} features; {versions}, {threads}", flush=True)
    SoHoTClassifier().fit(features, y, sample_domain=domain)  # warm-up: load libraries
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(options.rounds):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            seconds[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    for name, value in medians.items():
        print(f"{name}: {value:.2f} s, {value / medians[ONE_FIT]:.1f} times one fit of scikit-learn")


if __name__ == "__main__":
    main()
