"""Several processes for one run: `sohot fit --devices N` starts itself N times, watches, and reports the outcome."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from .._device import choose_device
from .._files import write_toml
from .._limits import check_processes, check_threads, usable_cores
from .._process import search_path
from ..methods.options import flag
from ..training.errors import ENDING, RanksFailed
from ..training.run_files import checkpoint_folders
from .config import RunConfig
from .description import CONFIG

PARENT = "SOHOT_PARENT"
"""Environment variable that tells a process started here who started it."""

GRACE = 10.0
"""Seconds that the other ranks have to end on their own once one has failed."""


def check_room(config: RunConfig) -> None:
    """Require no more threads than this machine can run; a stored configuration may come from a larger one."""
    if config.threads is not None:
        check_threads(config.threads)
    if config.read_threads is not None:
        check_threads(config.read_threads, "--read-threads", 0)


def needs_launch(config: RunConfig) -> bool:
    """Tell whether a run needs processes that are not started yet."""
    return config.devices > 1 and "TORCHELASTIC_RUN_ID" not in os.environ


def launch(config: RunConfig) -> None:
    """Run `sohot fit` once for each device of this machine and wait until all end.

    Raises:
        RanksFailed: One of the processes failed.
    """
    if config.out is None:
        raise ValueError("--out is missing: give a folder for the run")
    kind = choose_device(config.device).type
    there = {"cuda": torch.cuda.device_count(), "mps": 1}.get(kind)
    if there is None:
        check_processes(config.devices, "--devices")
    elif config.devices > there:
        raise ValueError(f"--devices {config.devices}: this machine has {there} of kind {kind}")
    shared = _environment(config)
    with tempfile.TemporaryDirectory(prefix="sohot-ranks-") as folder:
        write_toml(Path(folder) / CONFIG, config.stored(), "What all ranks do.")
        ranks = [_Rank(config, shared, number, Path(folder)) for number in range(config.devices)]
        try:
            with _Forwarded(ranks):
                _watch(ranks)
        finally:
            for rank in ranks:
                rank.process.kill()
                rank.process.wait()
        if failure := _failure(ranks, config):
            raise failure


def end_with_parent() -> None:
    """End this process, if it was started here, when its parent is gone."""
    parent = os.environ.get(PARENT)
    if parent is None:
        return

    def watch() -> None:
        while os.getppid() == int(parent):
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class _Rank:
    """One of the processes."""

    def __init__(self, config: RunConfig, shared: Mapping[str, str], number: int, folder: Path) -> None:
        self.number = number
        self.ending_file, self.said_file = folder / f"{number}.json", folder / f"{number}.txt"
        self.stopped = False
        environment = {**shared, "LOCAL_RANK": str(number), "RANK": str(number), ENDING: str(self.ending_file)}
        words = [sys.executable, "-m", "sohot", "fit", "--config", str(folder / CONFIG), "--out", str(config.out)]
        words += [flag(name) for name in ("resume", "quiet", "json") if getattr(config, name)]
        with self.said_file.open("wb") as said:
            # In its own session: Ctrl-C reaches only this process, which forwards it exactly once.
            quiet: dict[str, Any] = {} if self.number == 0 else {"stdout": subprocess.DEVNULL, "stderr": said}
            self.process = subprocess.Popen(words, env=environment, start_new_session=True, **quiet)

    @property
    def failed(self) -> bool:
        return self.process.poll() not in (None, 0)

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def stop(self, how: signal.Signals) -> None:
        """End it because another one failed."""
        if self.running:
            self.stopped = True
            self.process.send_signal(how)

    def ending(self) -> dict[str, Any]:
        """Return what it recorded about its end."""
        try:
            told: dict[str, Any] = json.loads(self.ending_file.read_bytes())
        except (OSError, ValueError):
            return {}
        return told

    def last_words(self) -> str:
        """Return the last line it printed."""
        lines = self.said_file.read_text(encoding="utf-8", errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")


class _Forwarded:
    """Forwards Ctrl-C and SIGTERM to all processes: they save and stop."""

    def __init__(self, ranks: list[_Rank]) -> None:
        self.ranks = ranks
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._send) for number in (signal.SIGINT, signal.SIGTERM)}

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _send(self, number: int, _frame: FrameType | None) -> None:
        for rank in self.ranks:
            if rank.running:
                rank.process.send_signal(number)


def _watch(ranks: list[_Rank]) -> None:
    """Wait until all are done; if one fails, the others have a moment to end before they are stopped."""
    failed_at = None
    while any(rank.running for rank in ranks):
        if failed_at is None and any(rank.failed for rank in ranks):
            failed_at = time.monotonic()
        if failed_at is not None and time.monotonic() - failed_at > GRACE:
            for rank in ranks:
                rank.stop(signal.SIGKILL if time.monotonic() - failed_at > 2 * GRACE else signal.SIGTERM)
        time.sleep(0.05)


def _failure(ranks: list[_Rank], config: RunConfig) -> RanksFailed | None:
    """Return the cause, not its consequences; None if all succeeded."""
    failed = [rank for rank in ranks if rank.failed]
    if not failed:
        return None
    by_signal = [rank for rank in failed if rank.process.returncode < 0 and not rank.stopped]
    told = {rank.number: rank.ending() for rank in failed}
    cause = [rank for rank in failed if told[rank.number] and not told[rank.number]["lost"]]
    if by_signal:
        name = signal.Signals(-by_signal[0].process.returncode).name
        return RanksFailed(1, f"rank {by_signal[0].number} was killed by {name}{_resume(config)}")
    if cause:
        found = told[cause[0].number]
        whose = "" if cause[0].number == 0 or not found["sentence"] else f"rank {cause[0].number}: "
        return RanksFailed(found["code"], f"{whose}{found['sentence']}")
    silent = [rank for rank in failed if not told[rank.number] and not rank.stopped]
    if silent:
        code, last = silent[0].process.returncode, silent[0].last_words()
        return RanksFailed(1, f"rank {silent[0].number} ended with exit code {code} ({last}){_resume(config)}")
    return RanksFailed(1, f"rank {failed[0].number} has lost the connection to another rank{_resume(config)}")


def _resume(config: RunConfig) -> str:
    """Say where the last checkpoint is, and how to continue."""
    out = config.out or Path()
    newest = next(iter(checkpoint_folders(out / "checkpoints")), None)
    kept = f"the last good checkpoint is {newest}" if newest else "no checkpoint was written yet"
    return f"; {kept}; continue with: sohot fit --out {out} --resume"


def _environment(config: RunConfig) -> dict[str, str]:
    """Return the variables that `torchrun` would set, except those of a single process."""
    threads = config.threads or max(1, usable_cores() // config.devices)
    return {
        "OMP_NUM_THREADS": str(threads),
        "TORCH_CPP_LOG_LEVEL": "ERROR",  # hide performance hints: ranks look for streams without a gradient
        **os.environ,
        **search_path(),
        "TORCHELASTIC_RUN_ID": "sohot",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(_free_port()),
        "WORLD_SIZE": str(config.devices),
        "LOCAL_WORLD_SIZE": str(config.devices),
        PARENT: str(os.getpid()),
    }


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port
