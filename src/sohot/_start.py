"""How a process of ours treats memory and waiting threads; decided before torch is loaded."""

import ctypes
import os
from contextlib import suppress

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # the numbers of glibc's malloc.h
_MOST = 2**31 - 1  # of what fits a C int
_BLOCK = 1 << 30


def prepare_process() -> None:
    """Keep freed memory for the next use, and let threads that wait sleep.

    By default glibc returns every large block to the system when it is freed, and the system clears each page of it
    again at the next use: half of the processor time of a convolutional network. Here blocks of up to 1 GiB are reused,
    and at most 2 GiB (an eighth of the memory, if that is less) stay with the process when nothing uses them.

    Threads that spin while they wait take the core from the very thread they wait for, if other programs run too. On an
    idle machine sleeping costs little, so it is right for both.

    Settings that the user made in the environment have precedence.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    if any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ):
        return
    with suppress(OSError, ValueError, AttributeError):  # not glibc: its own allocator has its own rules
        if not (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc"):
            return
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_TRIM_THRESHOLD, min(_MOST, memory // 8))
        mallopt(_MMAP_THRESHOLD, min(_BLOCK, memory // 8))
        mallopt(_ARENA_MAX, 1)  # arenas of other threads hold no large blocks
