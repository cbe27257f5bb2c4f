"""Scripts that run GPU kernels under Triton's interpreter, on a CPU."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest


def patch_language_once() -> None:
    """Let the interpreter patch Triton's language once a launch: it would again for each function a kernel calls.

    That took half of the time. Only what has been patched already, by the launch itself, is left out.
    """
    import triton.language as tl
    from triton.runtime import interpreter

    patch = interpreter._patch_lang

    def patch_once(function: Any) -> Any:
        seen = [value for value in function.__globals__.values() if value is tl or value is tl.core]
        if seen and not any(tl.core.is_builtin(language.load) for language in (*seen, tl)):
            return interpreter._LangPatchScope()
        return patch(function)

    interpreter._patch_lang = patch_once


def run_interpreted(script: Path) -> Any:
    """Run a script in a process of its own and read the JSON that it prints; skip without Triton."""
    if find_spec("triton") is None:
        if os.environ.get("CI"):
            pytest.fail("triton is missing: its interpreter tests the kernels")
        pytest.skip("needs triton")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)
