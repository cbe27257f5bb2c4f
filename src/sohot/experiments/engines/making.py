"""Engines by name."""

from ...functional.plain_checks import check_choice
from . import ENGINES, Engine
from .local import LocalEngine


def make_engine(
    name: str = "local",
    *,
    workers: int | None = None,
    device: str = "auto",
    address: str | None = None,
    threads: int | None = None,
) -> Engine:
    """Make an engine.

    Args:
        name: "local" or "ray".
        workers: Cells computed side by side; None for what the machine, or the cluster, has room for.
        device: "auto", "cpu", "cuda" or "mps".
        address: Where the Ray cluster is; None to start one on this machine.
        threads: Threads of each cell; None for its share of this machine's, or one on a cluster.
    """
    check_choice(name, ENGINES, "engine")
    if name == "local":
        if address is not None:
            raise ValueError("--address belongs to --engine ray")
        return LocalEngine(workers, device, threads)
    from .ray import RayEngine

    return RayEngine(address=address, workers=workers, device=device, cpus_per_cell=float(threads or 1))
