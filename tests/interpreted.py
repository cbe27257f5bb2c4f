"""Scripts that run GPU kernels under Triton's interpreter, on a CPU."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest


def run_interpreted(script: Path) -> Any:
    """Run a script in a process of its own and read the JSON that it prints; skip without Triton."""
    if find_spec("triton") is None:
        if os.environ.get("CI"):
            pytest.fail("triton is missing: its interpreter tests the kernels")
        pytest.skip("needs triton")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)
