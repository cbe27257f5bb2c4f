"""Networks compared on frozen features: labels alone, with a pool, and scikit-learn's logistic regression.

    python studies/networks/frozen.py features FOLDER --pacs DIR --office31 DIR [--weights dinov2-small.safetensors]
    python studies/networks/frozen.py table FOLDER [--networks dinov2-small] [--shifts "photo>cartoon"] [--draws 5]

Half of the images of each class of the target (chosen by their names) is drawn from and is the pool, the other half is
the test. A draw takes 20 source images per class (8 from webcam and dslr) and 3 target images with a label.
"""

import argparse
import hashlib
import time
import warnings
from copy import deepcopy
from pathlib import Path

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

from sohot.classifiers import AverageOptions, Rows, fit_average
from sohot.data import InputSpec, LabelledImages, iter_batches, scan_folder
from sohot.networks import create_backbone
from sohot.networks.inference import run_batches
from sohot.networks.two_passes import TwoPasses, estimate_statistics

NETWORKS = ("lite0", "dinov2-small")
SHIFTS = ("photo>cartoon", "cartoon>photo", "amazon>webcam", "amazon>dslr", "webcam>amazon", "dslr>amazon")
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SMALL = ("webcam", "dslr")
BATCH, STATISTICS_IMAGES = 64, 512


def divide(domain: str, images: LabelledImages) -> dict[str, np.ndarray]:
    """Say which images of a domain may be drawn, as target (the others are the test) and as source."""
    labels = np.array(images.labels)
    names = [f"{file.name}{label}" for file, label in zip(images.files, images.labels, strict=True)]
    keys = np.array([int(hashlib.sha256(name.encode()).hexdigest()[:8], 16) for name in names])
    drawn, source = np.zeros(len(labels), bool), np.zeros(len(labels), bool)
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        rows = rows[np.argsort(keys[rows])]
        drawn[rows[: (len(rows) + 1) // 2]] = True
        source[rows[: 12 if domain in SMALL else 40]] = True
    return {"labels": labels, "drawn": drawn, "source": source}


def outputs(network: nn.Module, images: LabelledImages, spec: InputSpec) -> np.ndarray:
    """Pass all images of a domain through a network."""
    batches = iter_batches(images, spec, BATCH)
    return torch.cat(list(run_batches(network.to(DEVICE), batches, DEVICE))).numpy().astype("float16")


def make_features(folder: Path, domains: dict[str, Path], weights: Path | None) -> None:
    """Write the features of all domains, for lite0 also with the batch-norm statistics of each target."""
    folder.mkdir(parents=True, exist_ok=True)
    scans = {name: scan_folder(path, check=False).images for name, path in domains.items()}
    parts = {name: divide(name, images) for name, images in scans.items()}
    for name, arrays in parts.items():
        np.savez(folder / f"{name}.npz", **arrays)
    for network in NETWORKS:
        backbone = create_backbone(network, weights=None if network == "lite0" else weights).eval()
        for name, images in scans.items():
            np.save(folder / f"{network}-{name}.npy", outputs(backbone, images, backbone.input))
        if network != "lite0":
            continue
        plain = nn.Sequential(*backbone.stages).cpu().eval()
        for shift in SHIFTS:
            source, target = shift.split(">")
            rows = np.random.default_rng(0).permutation(np.flatnonzero(parts[target]["drawn"]))[:STATISTICS_IMAGES]
            batches = list(iter_batches(scans[target].subset(rows.tolist()), backbone.input, BATCH))
            passes = TwoPasses(deepcopy(plain), first=True, last=True)
            statistics = estimate_statistics([passes], batches, torch.device("cpu"))[0]
            adapted = deepcopy(plain)
            adapted.load_state_dict({**adapted.state_dict(), **statistics})
            for name in (source, target):
                np.save(folder / f"{network}-{name}@{target}.npy", outputs(adapted.eval(), scans[name], backbone.input))


def load(folder: Path, network: str, domain: str, target: str) -> np.ndarray:
    """Read the features of a domain: (images, passes, features)."""
    passes = [np.load(folder / f"{network}-{domain}.npy")]
    if (second := folder / f"{network}-{domain}@{target}.npy").exists():
        passes.append(np.load(second))
    return np.stack(passes, 1).astype("float32")


def one_draw(folder: Path, network: str, source: str, target: str, number: int) -> list[float]:
    """Measure one draw: right answers to fresh and to pool images in per cent, and seconds of CPU of the average."""
    sides = {name: np.load(folder / f"{name}.npz") for name in (source, target)}
    labels, theirs = sides[source]["labels"], sides[target]["labels"]
    features, their_features = load(folder, network, source, target), load(folder, network, target, target)
    random, classes = np.random.default_rng(1000 + number), int(theirs.max()) + 1
    most = 8 if source in SMALL else 20
    of_class = [np.flatnonzero((labels == c) & sides[source]["source"]) for c in range(classes)]
    train = np.concatenate([random.permutation(rows)[:most] for rows in of_class])
    drawn = np.flatnonzero(sides[target]["drawn"])
    shots = np.concatenate([random.permutation(drawn[theirs[drawn] == c])[:3] for c in range(classes)])
    pool, fresh = np.setdiff1d(drawn, shots), np.flatnonzero(~sides[target]["drawn"])
    x = np.concatenate([features[train], their_features[shots], their_features[pool]])
    y = np.concatenate([labels[train], theirs[shots], np.full(len(pool), -1)])
    is_target = np.arange(len(x)) >= len(train)
    rows = Rows(torch.from_numpy(x), torch.from_numpy(y), torch.from_numpy(is_target))

    labelled = y >= 0
    weights = np.where(is_target, 0.5 / len(shots), 0.5 / len(train))[labelled] * labelled.sum()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        usual = LogisticRegression(max_iter=300).fit(x[labelled, 0], y[labelled], weights)
    values = [100 * float((usual.predict(their_features[fresh, 0]) == theirs[fresh]).mean())]
    for with_pool in (False, True):
        before = time.process_time()
        average = fit_average(rows, classes, AverageOptions(learn_from_pool=with_pool)).average
        spent = time.process_time() - before
        for part in (fresh, pool):
            answers = average(torch.from_numpy(their_features[part])).argmax(1).numpy()
            values.append(100 * float((answers == theirs[part]).mean()))
    return [*values, spent]


def print_table(folder: Path, networks: list[str], shifts: list[str], draws: int) -> None:
    """Print a Markdown table: fresh images unless it says pool; the worst draw in brackets."""
    print("| shift | network | scikit-learn | labels | with pool | pool images: labels | with pool | CPU s |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for shift in shifts:
        for network in networks:
            values = np.array([one_draw(folder, network, *shift.split(">"), number) for number in range(draws)])
            mean, worst = values.mean(0), values.min(0)
            cells = [f"{mean[column]:.1f} ({worst[column]:.1f})" for column in (0, 1, 3, 2, 4)]
            arrow = shift.replace(">", " → ")
            print(f"| {arrow} | `{network}` | {' | '.join(cells)} | {mean[5]:.1f} |", flush=True)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("features", "table"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pacs", type=Path)
    parser.add_argument("--office31", type=Path)
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS))
    parser.add_argument("--shifts", nargs="+", default=list(SHIFTS))
    parser.add_argument("--draws", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.what == "features":
        domains = {name: options.pacs / name for name in ("photo", "cartoon")}
        domains |= {name: options.office31 / name / "images" for name in ("amazon", "webcam", "dslr")}
        make_features(options.folder, domains, options.weights)
    else:
        print_table(options.folder, options.networks, options.shifts, options.draws)


if __name__ == "__main__":
    main()
