"""Commands killed by SIGKILL at random moments, started again, give the bits of those that were never killed."""

import os
from pathlib import Path

import pytest
from command_line import python_path
from warm_process import run_warm


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_killed_commands_start_again_and_end_in_the_same_bits() -> None:
    script = Path(__file__).with_name("kill_commands.py")
    done = run_warm([script, "--kills", "24"], python_path(), timeout=480)
    assert "24 kills of 24 survived" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0
