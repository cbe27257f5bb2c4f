"""Which files are not collected for doctests, and how many processes run tests."""

import os
from importlib.util import find_spec

import pytest

# Triton is not available on every system; these modules cannot be imported without it.
collect_ignore_glob = [] if find_spec("triton") else ["src/sohot/functional/fused/*.py"]


@pytest.hookimpl(optionalhook=True)  # without pytest-xdist there is nobody to ask
def pytest_xdist_auto_num_workers() -> int:
    """Start one process more than there are cores: many tests wait for processes that they start."""
    return (os.cpu_count() or 1) + 1
