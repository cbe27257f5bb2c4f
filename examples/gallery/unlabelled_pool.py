"""
Images without labels
=====================

Three labelled images per class are few, but more images without a label are often at
hand. Given as ``unlabelled``, they join the training, get a label and a calibrated
probability each, and are left out if they do not help.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.image import imread

import sohot
from sohot.data import write_digit_folders
from sohot.runs import read_report

folders = write_digit_folders(tempfile.mkdtemp(), handwritten=20, new=25)
print(len(list(folders.new.iterdir())), "images in one folder, without labels")

# %%
# With and without them
# ---------------------
# Both runs learn from the same printed digits and the same three handwritten ones per
# class, and are tested on the same others, which neither has seen: the accuracy is
# *inductive*.

runs: dict[str, sohot.Run] = {}
pools = {"labels only": None, "and unlabelled images": folders.new}
for name, unlabelled in pools.items():
    runs[name] = sohot.fit(
        folders.printed,
        folders.handwritten,
        unlabelled=unlabelled,
        shots=3,
        trains="head",
        image_size=64,
        out=Path(tempfile.mkdtemp()) / "run",
        progress=False,
    )
    print(f"{name}: {runs[name].accuracy:.1%} of 170 unseen images right")

# %%
# Whether the unlabelled images count is decided by labelled ones that are held out in
# turn, and the run says so:

print(read_report(runs["and unlabelled images"].path)["pool"]["sentence"])

# %%
# Where they make a difference
# ----------------------------
# Of 250 images, these are the ones that both runs label differently, the surest first.

first, second = (run.predict(folders.new) for run in runs.values())
changed = [
    (one, other)
    for one, other in zip(first, second, strict=True)
    if one.label != other.label
]
changed.sort(key=lambda pair: -pair[1].probability)
print(len(changed), "labels change")

figure, axes = plt.subplots(2, 8, figsize=(10, 3.4), layout="constrained")
for place in axes.flat:
    place.axis("off")
for place, (before, after) in zip(axes.flat, changed, strict=False):
    place.imshow(imread(after.image), cmap="gray")
    place.set_title(
        f"{before.label} → {after.label}: {after.probability:.0%}", fontsize=9
    )

# %%
# One draw says little. Over many, such a pool gains two to three and a half points on
# images never seen: :doc:`measured </docs/results/unlabelled-features>`.
