"""Lightning Fabric, which places a run on its devices; apart from the rest, because it takes seconds to import."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from lightning_fabric import Fabric
from lightning_fabric.strategies.ddp import DDPStrategy

from ..methods.settings import FitSettings
from .ranks import Ranks


def make_fabric(settings: FitSettings) -> Fabric:
    """Build and launch the Fabric of a run: its device and precision, and the ranks it trains with."""
    ranks = Ranks.here()
    if settings.devices > 1 and not ranks.several:
        raise ValueError(
            f"devices={settings.devices} needs {settings.devices} processes: run the script with torchrun "
            f"--nproc-per-node {settings.devices} (`sohot fit` starts them itself)"
        )
    # A step may show only one domain, or a method learn from one: then a separate stream gets no gradient.
    several = DDPStrategy(find_unused_parameters=True, broadcast_buffers=False)
    try:
        with _without_notes():
            fabric = Fabric(
                accelerator=settings.device,
                devices=ranks.local_count,
                num_nodes=ranks.count // ranks.local_count,
                strategy=several if ranks.several else "auto",
                precision=settings.precision,  # type: ignore[arg-type]
            )
            fabric.launch()
    except Exception as error:  # Fabric raises many kinds, all about these settings
        on = f" on {ranks.local_count} devices" if ranks.several else ""
        wanted_here = f"device={settings.device!r}{on} with precision={settings.precision!r}"
        raise ValueError(f"{wanted_here} cannot be used here: {' '.join(str(error).split())}") from error
    return fabric


@contextmanager
def _without_notes() -> Iterator[None]:
    """Keep Fabric's own messages about precision and processes out of a run's output."""
    notes = logging.getLogger("lightning_fabric")
    level = notes.level
    notes.setLevel(logging.WARNING)
    try:
        yield
    finally:
        notes.setLevel(level)
