"""Processes of ours keep freed memory, within bounds, and respect the user's own settings."""

import os
import subprocess
import sys

import pytest

GLIBC = hasattr(os, "confstr") and "CS_GNU_LIBC_VERSION" in os.confstr_names

# Blocks as large as the outputs of a convolutional layer, used and freed one after another, also in a thread.
USE_AND_FREE = """
import ctypes, os, resource, threading
from sohot._start import prepare_process
prepare_process()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes, libc.memset.argtypes = (
    ctypes.c_void_p, [ctypes.c_void_p], [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t])
def use(megabytes):
    block = libc.malloc(megabytes << 20)
    libc.memset(block, 1, megabytes << 20)
    libc.free(block)
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def many():
    use(96)
    before = faults()
    for _ in range(20):
        use(96)
    counted.append(faults() - before)
counted = []
many()
thread = threading.Thread(target=many)
thread.start()
thread.join()
print(max(counted), os.environ["OMP_WAIT_POLICY"])
"""


def run(**variables: str) -> tuple[int, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "OMP_WAIT"))}
    done = subprocess.run(
        [sys.executable, "-c", USE_AND_FREE], env={**inherited, **variables}, capture_output=True, text=True, check=True
    )
    faults, policy = done.stdout.split()
    return int(faults), policy


@pytest.mark.skipif(not GLIBC, reason="only glibc's allocator is told to keep memory")
def test_freed_memory_is_used_again() -> None:
    faults, policy = run()
    assert faults < 1000  # 20 times 96 MB are 490 000 pages
    assert policy == "passive"


@pytest.mark.skipif(not GLIBC, reason="only glibc's allocator is told to keep memory")
def test_the_users_own_settings_have_precedence() -> None:
    faults, policy = run(MALLOC_MMAP_THRESHOLD_="131072", OMP_WAIT_POLICY="active")
    assert faults > 100_000
    assert policy == "active"
