"""Processes of their own that start at once: copies of one that has imported what takes seconds, and nothing else.

They are what `subprocess.Popen([sys.executable, ...])` would start, for tests that train, are killed and start again.
Tests of how a process starts, or of what it imports, start a new one.
"""

import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

import torch

IMPORTED = ["sohot.cli.commands", "sohot.runs.pipeline", "sohot.training", "sohot.experiments.grid_run", "optuna"]
_copies = multiprocessing.get_context("forkserver" if hasattr(os, "fork") else "spawn")
_copies.set_forkserver_preload(IMPORTED)


class WarmProcess:
    """Like `subprocess.Popen` of Python with these words: `-m MODULE …` or `SCRIPT …`; its output is kept as text."""

    def __init__(self, words: Sequence[object], env: Mapping[str, str]) -> None:
        with tempfile.NamedTemporaryFile(delete=False) as out, tempfile.NamedTemporaryFile(delete=False) as err:
            self._files = Path(out.name), Path(err.name)
        self._process = _copies.Process(target=_run, args=([*map(str, words)], dict(env), *self._files))
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit code, or minus the signal it died of; None while it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """Say how it ended, if it did."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end."""
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(str(self._process), timeout or 0)
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for its end and give what it wrote on standard output and standard error."""
        self.wait(timeout)
        out, err = (file.read_text() for file in self._files)
        self._forget()
        return out, err

    def send_signal(self, sent: int) -> None:
        """Send a signal, unless it has ended."""
        if self.returncode is None:
            os.kill(self.pid, sent)

    def kill(self) -> None:
        """Kill it, unless it has ended."""
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> "WarmProcess":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        if kind is not None:
            self.kill()
        self.wait()
        self._forget()

    def _forget(self) -> None:
        for file in self._files:
            file.unlink(missing_ok=True)


def run_warm(words: Sequence[object], env: Mapping[str, str], timeout: float) -> "subprocess.CompletedProcess[str]":
    """Like `subprocess.run` of Python with its output captured; it is killed after the given time."""
    with WarmProcess(words, env) as process:
        out, err = process.communicate(timeout)
        return subprocess.CompletedProcess(list(words), process.wait(), out, err)


def _run(words: list[str], env: dict[str, str], out: Path, err: Path) -> None:
    """Be the process: take over its variables, paths, output and arguments, and run the script or module."""
    os.environ.clear()
    os.environ.update(env)
    sys.path[:0] = filter(None, env.get("PYTHONPATH", "").split(os.pathsep))
    for stream, file in ((sys.stdout, out), (sys.stderr, err)):
        with open(file, "wb") as opened:
            os.dup2(opened.fileno(), stream.fileno())
    torch.set_num_threads(int(env.get("OMP_NUM_THREADS", os.cpu_count() or 1)))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if words[0] == "-m":
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        sys.path.insert(0, str(Path(words[0]).parent))
        runpy.run_path(words[0], run_name="__main__")
