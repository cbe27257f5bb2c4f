"""
Which images to label next
==========================

Labels cost time, so spend them where they help. `sohot suggest` names images that the
run doubts and that stand for others: of many that look alike, one is enough. This page
shows what it names, and what labelling them brings.
"""

import tempfile

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.image import imread

import sohot
from sohot import SoHoTClassifier
from sohot.data import write_digit_folders
from sohot.experiments.digit_splits import DigitSplit, draw_split
from sohot.runs.suggest import suggest_images
from sohot.runs.suggest_candidates import find_candidates
from sohot.selection.suggestions import suggest

folders = write_digit_folders(tempfile.mkdtemp(), new=15)
run = sohot.fit(
    folders.printed,
    folders.handwritten,
    shots=3,
    trains="head",
    image_size=64,
    out=tempfile.mkdtemp() + "/run",
    progress=False,
)

# %%
# What it names
# -------------
# Eight of the 150 images in the folder ``new``, with reasons. On the command line:
# ``sohot suggest run new --count 8 --copy-to to_label``, which also copies them, beside
# one empty folder per class to sort them into.

candidates = find_candidates(run.path, folders.new)
named = suggest_images(run.model, run.path, candidates.images, count=8)

figure, axes = plt.subplots(2, 4, figsize=(10, 5), layout="constrained")
for place, one in zip(axes.flat, named, strict=True):
    place.imshow(imread(one.prediction.file), cmap="gray")
    place.set_title(
        one.why.replace(", like", ",\nlike").replace("; ", ";\n"), fontsize=9
    )
    place.axis("off")

# %%
# What it brings
# --------------
# Now with known answers: after three labels per class, ten more, on rows named by the
# same rule or at random. The rows are pixels; half of the unlabelled ones may be
# labelled, the other half tests.


def fitted(digits: DigitSplit, more: np.ndarray) -> SoHoTClassifier:
    """Fit to the labelled rows of a draw, and to some rows of its test."""
    return SoHoTClassifier(calibrate=False).fit(
        digits.source.flatten(1).numpy(),
        digits.source_labels.numpy(),
        X_target=np.concatenate([digits.target, digits.test[more]]).reshape(-1, 256),
        y_target=np.concatenate([digits.target_labels, digits.test_labels[more]]),
    )


rng = np.random.default_rng(0)
scores: dict[str, list[float]] = {}
for split in range(3):
    digits = draw_split(split)
    rows, truth = digits.test.flatten(1).numpy(), digits.test_labels.numpy()
    pool, test = np.array_split(rng.permutation(len(rows)), 2)
    nothing = np.array([], dtype=int)
    likeliest = -np.sort(-fitted(digits, nothing).predict_proba(rows[pool]))
    chosen = [one.row for one in suggest(rows[pool], likeliest[:, :2], count=10)]
    choices = {
        "no more labels": nothing,
        "10 at random": rng.choice(pool, 10, replace=False),
        "10 suggested": pool[chosen],
    }
    for name, more in choices.items():
        right = fitted(digits, more).score(rows[test], truth[test])
        scores.setdefault(name, []).append(100 * right)

figure, axes = plt.subplots(figsize=(7, 2.4), layout="constrained")
for values in zip(*scores.values(), strict=True):
    axes.plot(values, list(scores), "o-", color="0.75", markersize=4)
means = [np.mean(values) for values in scores.values()]
axes.plot(means, list(scores), "o-", color="#0072B2", linewidth=2)
axes.set(xlabel="accuracy on unseen digits in %; grey: three draws, blue: their mean")
axes.invert_yaxis()

# %%
# Three draws are an illustration; :doc:`the measurement </docs/results/suggest>` has
# two hundred comparisons.
