"""How many threads decode images."""

import os


def default_workers() -> int:
    """Give one thread per processor that this process may use, at most 8 (more only wait for the disk).

    >>> 1 <= default_workers() <= 8
    True
    """
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(usable or 1, 8)
