"""How good pseudo-labels get while a run trains, and what it does to the features: two pictures.

    sohot fit --source photos --target cartoons --shots 3 --source-shots 20 --unlabelled rest --keep layers \
        --checkpoint-every 24 --keep-checkpoints 20 --out runs/watched
    python studies/unlabelled/watch.py runs/watched docs/images

The run tests on its pool, so that the true classes are known here; the run itself never read them.
"""

import argparse
from pathlib import Path

import torch

from sohot.data.image_batches import iter_batches
from sohot.networks.trunk_cache import cache_trunk
from sohot.networks.two_passes import copy_second
from sohot.reporting.figures.canvas import legend_below, look, new_figure, save_figure, tidy
from sohot.reporting.figures.features import DomainFeatures, point_figure
from sohot.reporting.pages.run_images import find_again
from sohot.runs.loaded_run import open_run
from sohot.runs.run_model import build_model
from sohot.training.checkpoint import load_checkpoint
from sohot.training.run_files import checkpoint_folders, read_description

SURE = 0.8
"""Probability from which a label is called sure."""


def main() -> None:
    """Draw both pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    run = open_run(given.run)
    config, data = find_again(given.run, read_description(given.run / "run.json"), None)
    assert data.source is not None
    assert data.target is not None
    assert data.test is not None
    model = build_model(config, len(run.classes)).eval()
    copy_second(run.model, model)
    parts = {"source": data.source, "pool": data.test, "target": data.target}
    trunk, spec = model.trunk("target"), model.inputs["target"]
    outputs = {name: cache_trunk(trunk, iter_batches(images, spec), len(images)) for name, images in parts.items()}
    labels = {name: torch.tensor(images.labels) for name, images in parts.items()}

    def stage() -> DomainFeatures:
        """Return the features as they are now."""
        found = {name: model(None, rows, from_trunk=True).target_features.detach() for name, rows in outputs.items()}
        target, shots = torch.cat([found["pool"], found["target"]]), len(labels["target"])
        trained = torch.arange(len(target)) >= len(target) - shots
        classes = torch.cat([labels["pool"], labels["target"]])
        return DomainFeatures(found["source"], labels["source"], target, classes, run.classes, trained)

    stages, curve = {"before training": stage()}, []
    for folder in reversed(checkpoint_folders(given.run / "checkpoints")):  # the newest comes first
        checkpoint = load_checkpoint(folder)
        model.load_state_dict(checkpoint.tensors["model"])
        sure, guessed = model.predict(outputs["pool"], from_trunk=True).softmax(1).max(1)
        right, counts = guessed == labels["pool"], sure >= SURE
        curve.append((checkpoint.step, right.float().mean(), right[counts].float().mean(), counts.float().mean()))
        print(f"step {checkpoint.step}: {100 * curve[-1][1]:.1f} % right; of the {100 * curve[-1][3]:.0f} % sure ones "
              f"{100 * curve[-1][2]:.1f} %", flush=True)  # fmt: skip
    stages["after training"] = stage()
    figure = new_figure(5.4, 3.6)
    axes = figure.subplots()
    steps, *series = zip(*sorted(curve), strict=True)
    for place, (values, name) in enumerate(
        zip(series, ("all right", "sure ones right", "share of sure ones"), strict=True)
    ):
        axes.plot(steps, [100 * float(value) for value in values], label=name, **look(place))
    axes.set_xlabel("step")
    axes.set_ylabel("% of the unlabelled images")
    tidy(axes)
    legend_below(axes)
    save_figure(figure, given.folder, "unlabelled-quality", ["png"])
    save_figure(point_figure(stages, "tsne"), given.folder, "unlabelled-features", ["png"])


if __name__ == "__main__":
    main()
