"""`sohot features` and `sohot fit-features`: features once, classifiers on them often."""

from pathlib import Path

from ..data.names import printable
from ..estimators.extraction import extract, find_domains
from ..estimators.feature_file import write_features
from ..runs.labels_csv import require_writable
from ..runs.training_inputs import choose_device
from ..streams import create_backbone
from ..streams.registry import find_builder
from ..training.randomness import reproducible
from .output import print_json, print_text, results_only, say, say_left_out
from .watching import bar


def make_features(
    folder: Path,
    out: Path,
    *,
    backbone: str,
    weights: Path | None,
    dataset: str | None,
    tap: str | None,
    image_size: int | None,
    channels: int,
    device: str,
    workers: int | None,
    quiet: bool,
    json: bool,
) -> None:
    """Extract the features of all images below a folder into one file."""
    if out.suffix != ".npz":
        raise ValueError(f"--out {out} must end in .npz")
    require_writable(out)
    find_builder(backbone)
    where = choose_device(device)
    with results_only(), bar(quiet) as progress:
        domains, left_out = find_domains(folder, dataset, workers, progress)
        say_left_out(left_out)
        with reproducible(0, "cpu"):  # of a network without trained weights too, the same features every time
            network = create_backbone(
                backbone,
                weights=weights,
                channels=channels,
                tap=tap,
                dropout="none",
                size=image_size,
            )
        if not network.pretrained:
            say(f"note: {backbone} has no trained weights here; its features are random")
        found = extract(domains, network, device=where, workers=workers, progress=progress)
    write_features(out, found)
    result = {
        "out": str(out),
        "rows": len(found),
        "features": found.features.shape[1],
        "classes": list(found.classes),
        "domains": {name: len(images) for name, images in domains.items()},
        "network": found.network,
        "left_out": [{"path": printable(one.path), "reason": one.reason} for one in left_out],
    }
    if json:
        print_json(result)
        return
    several = f" in {len(domains)} domains" if len(domains) > 1 else ""
    print_text(f"{out}: {len(found)} rows of {found.features.shape[1]} features, {len(found.classes)} classes{several}")
