"""One of several ranks, started by test_ddp.py as a process of its own: trains the cases below and stores the weights.

    python ddp_worker.py OUT CASE,CASE,…    (with the environment that `torchrun` gives)

`run_case` is what the test runs in one process to compare.
"""

import os
import signal
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from standin import FEATURES, RandomRows, SmallStreams, problem
from torch import nn

from sohot.data import InputSpec
from sohot.methods import FitSettings
from sohot.networks import Backbone, TwoStreams
from sohot.training import TensorInputs, fit
from sohot.training.pool_rows import PoolInputs
from sohot.training.ranks import parting

STEPS = 6


class Sometimes:
    """Batches that now and then lack a domain, or have a single row of it: fewer than there are ranks."""

    def batch(self, step):
        source, target = RandomRows(23, 8, seed=3).batch(step)
        return (source[:0] if step == 2 else source), (target[: (5, 1, 5, 0, 1, 5)[step % 6]])


def two_streams(**options):
    torch.manual_seed(7)
    stages = [nn.Sequential(nn.Flatten(), nn.Linear(4, 5), nn.Tanh()), nn.Sequential(nn.Linear(5, 6), nn.Tanh())]
    spec = InputSpec(size=2, mean=(0.0,), std=(1.0,), resize=2)
    return TwoStreams(Backbone("small", stages, spec), 3, trains="all", **options)


def small(**options):
    model = SmallStreams(**options)
    model.tail[1] = nn.LayerNorm(FEATURES)  # batch statistics are those of GPUs alone
    model.tail[3].p = 0.0  # dropout is each rank's own
    return model


# name: (model, settings, batches)
CASES = {
    "so+zeta": (small, {"method": "so+zeta", "zeta_lr": 0.5}, RandomRows(23, 8)),
    "moments in float64": (
        small,
        {"method": "so+to+fo+zeta", "precision": "64-true", "clip_norm": 0.5},
        RandomRows(23, 8),
    ),
    "m": (small, {"method": "m", "feature_scale": "unit"}, RandomRows(23, 8)),
    "means": (small, {"method": "means", "sigma2": 0.5, "precision": "64-true"}, RandomRows(23, 8)),
    "s+t": (lambda: small(heads="coupled"), {"method": "s+t", "coupling": 0.5, "head_decay": 0.1}, None),
    "separate": (
        lambda: two_streams(streams="separate", heads="coupled", norm_bound=0.7),
        {"method": "so+zeta", "coupling": 0.1},
        RandomRows(23, 8),
    ),
    "s": (lambda: two_streams(streams="separate", heads="coupled"), {"method": "s"}, RandomRows(23, 8)),
    "t": (lambda: two_streams(streams="separate"), {"method": "t"}, RandomRows(23, 8)),
    "few rows": (lambda: two_streams(streams="separate", heads="coupled"), {"method": "so+zeta"}, Sometimes()),
    "target weight": (two_streams, {"method": "so", "target_weight": 0.7, "optimizer": "adamw"}, RandomRows(11, 8)),
    "pool": (
        lambda: two_streams(streams="separate"),
        {"method": "so+zeta", "pool_rows": 7, "precision": "64-true", "neighbours": 2},
        Sometimes(),
    ),
    "pool of s": (two_streams, {"method": "s", "pool_rows": 5, "pool_loss": "im"}, RandomRows(23, 8)),
}


def pool():
    """Unlabelled rows in two views, the strong one noisy."""
    rows = problem((23, 40))[2].reshape(-1, 1, 2, 2)
    noise = 0.2 * torch.randn(rows.shape, generator=torch.Generator().manual_seed(5))
    return PoolInputs(TensorInputs(rows), TensorInputs(rows + noise))


def data():
    source, source_labels, target, target_labels = problem((23, 8))
    return (
        TensorInputs(source.reshape(-1, 1, 2, 2)),
        source_labels,
        TensorInputs(target.reshape(-1, 1, 2, 2)),
        target_labels,
    )


def run_case(name, **arguments):
    make, options, batches = CASES[name]
    usual = {"steps": STEPS, "lr": 0.05, "schedule": "constant", "checkpoint_every": 2}
    settings = FitSettings(**{**usual, "device": "cpu", "loggers": "none", **options})
    if settings.precision == "64-true":
        arguments["double"] = True
    if "pool" in name:
        arguments["pool"] = pool()
    return train(make(), settings, batches, **arguments)


def train(model, settings, batches, double=False, **arguments):
    source, source_labels, target, target_labels = data()
    if double:
        source, target = (TensorInputs(x.tensor.double()) for x in (source, target))
        if arguments.get("pool"):
            arguments["pool"] = PoolInputs(*(TensorInputs(x.tensor.double()) for x in arguments["pool"]))
    return fit(model, source, source_labels, target, target_labels, settings, batches=batches, **arguments)


def tensors_of(result):
    last = {key: torch.tensor(value) for key, value in result.history[-1].items() if key not in ("seconds", "step")}
    parts = {"model": result.model.state_dict(), "objective": result.objective.state_dict(), "last": last}
    return {f"{part}.{name}": x.detach().clone() for part, state in parts.items() for name, x in state.items()}


def main() -> None:
    torch.set_num_threads(1)
    out, names = Path(sys.argv[1]), sys.argv[2].split(",")
    with parting():
        for name in names:
            if name.startswith("resume"):
                resumable(out, name)
            else:
                save_file(tensors_of(run_case(name)), out / f"{name} {os.environ['RANK']}.safetensors")


def resumable(out, name):
    """`resume:N` trains to step N of a run in OUT/run; `resume-die:N` has rank 1 die there."""
    kind, stop = name.split(":")

    def on_step(record):  # on the first rank alone
        if record["step"] == int(stop) and kind == "resume-term":
            os.kill(os.getpid(), signal.SIGTERM)

    if kind == "resume-die" and os.environ["RANK"] == "1":
        die_at(int(stop))
    result = run_case("so+zeta", run_dir=out / "run", resume=True, on_step=on_step)
    save_file(tensors_of(result), out / f"resumed {os.environ['RANK']}.safetensors")


def die_at(step):
    real = TensorInputs.batch
    calls = [0]

    def batch(self, rows):
        calls[0] += 1
        if calls[0] > 2 * step:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(self, rows)

    TensorInputs.batch = batch


if __name__ == "__main__":
    main()
