"""
A grid of trainings on Ray
==========================

Which method, which setting, how many labels? A *grid* trains every combination over
several random choices of the labelled images, and compares them pairwise. `Ray
<https://docs.ray.io>`_ spreads its cells over cores or machines.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from sohot.data import write_digit_folders
from sohot.experiments import plan_grid, read_grid, run_grid
from sohot.experiments.engines.ray import RayEngine
from sohot.experiments.result import done_cells
from sohot.reporting import write_outputs

work = Path(tempfile.mkdtemp())
folders = write_digit_folders(work / "digits", new=0)
folders.new.rmdir()

# %%
# The grid
# --------
# A few lines of TOML: two domains, two splits, three methods. A small network trains
# from scratch, so that this page is built in seconds; ``backbone = "lite0"`` is what
# you would write.

(work / "mine.toml").write_text(
    """
title = "Print to handwriting"
dataset = "domains"
protocol = "k-shot"
backbone = "small-cnn"
shifts = ["printed-handwritten"]
splits = 2
methods = ["s", "s+t", "means"]

[settings]
target_shots = 3
image_size = 16
from_scratch = true
trains = "all"
steps = 40
lr = 0.01
optimizer = "adamw"
""",
    encoding="utf-8",
)
plan = plan_grid(
    read_grid(work / "mine.toml"), work / "digits", work / "results", device="cpu"
)
print(len(plan.cells), "cells")

# %%
# Compute it
# ----------
# ``RayEngine()`` starts Ray on this machine; ``RayEngine("10.0.0.1:6379")`` uses a
# cluster. Finished cells are stored at once: if the program is killed, the same lines
# go on from there.

result = run_grid(plan, RayEngine())
print(result.computed, "cells computed,", len(result.failed), "failed")
write_outputs(result.records, plan.grid, work / "results")
print((work / "results" / "table.txt").read_text(encoding="utf-8"))

# %%
# The same on the command line is ``sohot experiment mine.toml --data digits --engine
# ray --out results``. The folder then also holds the table as Markdown, LaTeX, CSV and
# JSON, figures, and a page. Every cell is there to draw from:

figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
scores: dict[str, list[float]] = {}
for cell in done_cells(result.records):
    scores.setdefault(cell.cell.method, []).append(100 * cell.result.accuracy.micro)
axes.bar(list(scores), [np.mean(values) for values in scores.values()], color="#0072B2")
for place, values in enumerate(scores.values()):
    axes.plot([place] * len(values), values, "k.")
axes.set(ylabel="accuracy in %", ylim=(0, 100), title="means, and the two splits")
