"""
Two folders of images
=====================

One folder of images per class, in two domains: that is all `sohot.fit` needs. Here the
source is printed digits, of which there are many, and the target is handwriting, of
which three images per class have a label. Put your own folders in their place.
"""

import tempfile

import matplotlib.pyplot as plt
from matplotlib.image import imread

import sohot
from sohot.data import write_digit_folders

folders = write_digit_folders(tempfile.mkdtemp())
print(
    *sorted(
        file.relative_to(folders.printed.parent) for file in folders.printed.glob("3/*")
    )[:3],
    sep="\n",
)

# %%
# What the two domains look like:

figure, axes = plt.subplots(2, 10, figsize=(10, 2.4), layout="constrained")
for row, folder in zip(axes, (folders.printed, folders.handwritten), strict=True):
    for digit, place in enumerate(row):
        place.imshow(imread(folder / str(digit) / "000.png"), cmap="gray")
        place.axis("off")
    row[0].set_title(folder.name, loc="left", fontsize=9)

# %%
# Fit
# ---
# ``shots=3`` draws three handwritten images per class to learn from; the others test.
# ``trains="head"`` fits a classifier on the frozen features of the pre-trained network,
# which takes seconds; leave it out to train the last layers as well. These images are
# small, so a small ``image_size`` does.

run = sohot.fit(
    folders.printed,
    folders.handwritten,
    shots=3,
    trains="head",
    image_size=64,
    out=tempfile.mkdtemp() + "/run",
    progress=False,
)
print(run)

# %%
# Label new images
# ----------------
# Probabilities are calibrated by the labelled images, held out in turn. The digits that
# it doubts most come first here.

# sphinx_gallery_thumbnail_number = 2
answers = sorted(run.predict(folders.new), key=lambda answer: answer.probability)

figure, axes = plt.subplots(2, 8, figsize=(10, 3.2), layout="constrained")
for place, (image, label, probability, _) in zip(
    axes.flat, answers[:8] + answers[-8:], strict=True
):
    place.imshow(imread(image), cmap="gray")
    place.set_title(f"{label}: {probability:.0%}", fontsize=9)
    place.axis("off")

# %%
# ``run.report()`` writes a page about the run, ``run.export("model.onnx")`` a file that
# runs anywhere, and ``sohot.load(folder)`` opens the run again another day. On the
# command line, the same is ``sohot fit --source printed --target handwritten --shots 3
# --trains head --image-size 64 --out run``.
