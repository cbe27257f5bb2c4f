"""What `sohot fit` would choose on each split of the study: one pass or two (`--batch-norm`).

    python studies/unlabelled/chosen.py pacs DATA/pacs --out docs/results/unlabelled-chosen.csv --features FOLDER

Held-out labelled target images decide, as in a run; no test image is looked at. The list grows: the same command goes
on where it stopped.
"""

import argparse
import csv
import warnings
from dataclasses import replace
from pathlib import Path

from rows import development, study

from sohot._device import choose_device
from sohot.data.pools import INDUCTIVE, POOL, SUPERVISED, TRANSDUCTIVE
from sohot.experiments.cell_training import config_of, draw_split
from sohot.experiments.grid_run import plan_grid
from sohot.methods.choices import TWO_PASSES
from sohot.runs.auto import head_of
from sohot.runs.run_data import RunData
from sohot.runs.shared_parts import SharedParts
from sohot.runs.statistics_choice import choose_statistics
from sohot.runs.trunk_folder import fill_folders
from sohot.runs.trunk_store import TrunkStore

FIELDS = ("data", "protocol", "shots", "shift", "split", "chosen", "gain", "error", "reason")


def main() -> None:
    """Choose on every split on which two passes were measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", choices=("office31", "pacs"))
    parser.add_argument("root", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--features", type=Path, required=True, help="folder for features that splits share")
    parser.add_argument("--pool", choices=(SUPERVISED, TRANSDUCTIVE, INDUCTIVE), help="only this protocol")
    parser.add_argument("--development", action="store_true", help="on development splits instead")
    parser.add_argument("--device", default="auto")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    known = set()
    if given.out.exists():
        with open(given.out, newline="", encoding="utf-8") as file:
            known = {tuple(row[:5]) for row in csv.reader(file)}
    parts = SharedParts(given.features)
    for row in development(given.data) if given.development else study(given.data):
        if row.settings.get("batch_norm") != TWO_PASSES or given.pool not in (None, row.pool):
            continue
        plan = plan_grid(row.grid(), given.root, given.out.parent, device=given.device)
        for cell in plan.cells:
            key = given.data, cell.pool, str(row.shots), cell.shift, str(cell.split)
            if key in known:
                continue
            known.add(key)
            sides = draw_split(cell, plan.where).sides
            labelled = sides["source_train"], sides["target_train"]
            data = RunData(labelled[0].classes, *labelled, None, pool=sides.get(POOL), protocol=cell.pool)
            config = config_of(cell, {**cell.settings, "batch_norm": "auto"}, plan.where)
            for kind in ("fixed", TWO_PASSES):
                head = head_of(replace(config, batch_norm=kind))
                trunk = parts.folder(parts.network(head, len(data.classes), data.targets()), "target")
                fill_folders([(trunk, labelled)], given.features, choose_device(given.device))
            chosen = choose_statistics(config, data, TrunkStore(parts=parts))
            fresh = not given.out.exists()
            with open(given.out, "a", newline="", encoding="utf-8") as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerows([FIELDS] if fresh else [])
                gain = ["", ""] if chosen.gain is None else [f"{value:.4f}" for value in chosen.gain]
                writer.writerow([*key, chosen.config.batch_norm, *gain, chosen.reason])
            print(*key, chosen.config.batch_norm, flush=True)


if __name__ == "__main__":
    main()
