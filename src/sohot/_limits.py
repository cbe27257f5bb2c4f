"""How many threads and processes this machine has room for; torch is not needed to know that."""

import psutil

from .functional.plain_checks import check_count

_THREADS_PER_CORE, _PROCESSES_PER_CORE = 8, 4  # more only wait for each other
_PROCESS_BYTES = 1 << 30  # of a process that has imported torch and holds a network


def usable_cores() -> int:
    """Count the cores that this process may use: those it is bound to, and no more than its container's share.

    >>> usable_cores() >= 1
    True
    """
    from joblib import cpu_count  # type: ignore[import-untyped]

    return int(cpu_count())


def check_threads(value: int, name: str = "--threads", lowest: int = 1) -> int:
    """Require a number of threads that this machine can run.

    >>> check_threads(1)
    1
    """
    cores = usable_cores()
    return _check_room(value, name, lowest, cores * _THREADS_PER_CORE, f"{cores} usable cores")


def check_processes(value: int, name: str) -> int:
    """Require a number of processes, each with torch in it, that this machine has cores and memory for.

    >>> check_processes(1, "--workers")
    1
    """
    cores, memory = usable_cores(), psutil.virtual_memory().total
    most = max(1, min(cores * _PROCESSES_PER_CORE, memory // _PROCESS_BYTES))
    return _check_room(value, name, 1, most, f"{cores} usable cores and {memory / 1e9:.0f} GB of memory")


def _check_room(value: int, name: str, lowest: int, most: int, there: str) -> int:
    if check_count(value, name, lowest) > most:
        raise ValueError(f"{name} must be at most {most} on this machine ({there}), got {value}")
    return value
