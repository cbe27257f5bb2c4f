"""Kills `sohot fit`, `features` and `fit-features` by SIGKILL, starts them again, and compares the bits.

    python tests/cli/kill_commands.py --kills 300

Each command runs in a process of its own, forked from one that has everything imported. It dies before, in or after
one of its calls that change files (chosen at random among all that it makes), or at a random time; after at most three
deaths the same command is left alone to finish. Its result must equal, bit for bit, that of a command that was never
killed, and nothing may be left over. The table counts the kills by command and moment; the exit code is 1 if one of
them was not survived.
"""

import argparse
import builtins
import contextlib
import hashlib
import io
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from command_line import QUICK, make_domains, newest

CALLS = ("fsync", "replace", "mkdir", "unlink", "rmdir")
WRITE = "write"
DEATHS = 3
"""The most that one run dies before it may finish."""


@dataclass(frozen=True)
class Command:
    """A command that can be killed: its name, its words without --out, and the digest of its results."""

    name: str
    words: tuple[str, ...]
    out: str
    digest: Callable[[Path], str]


def commands(root: Path) -> list[Command]:
    domains = make_domains(root)
    for name in ("source", "target"):
        call_quietly(["features", str(root / name), "--out", str(root / f"{name}.npz"), *QUICK[:4], "--quiet"])
    fit = ("fit", *domains.options(), "--lr", "0.01", "--checkpoint-every", "3", "--resume", "--quiet")
    zeta = ("--method", "so+zeta")  # whose loss has weights of its own
    heads = ("fit-features", "--source", f"{root}/source.npz", "--target", f"{root}/target.npz", "--shots", "3")
    return [
        Command("fit", (*fit, *zeta, "--shots", "3", "--steps", "8", "--cache", "disk"), "run", of_run),
        Command("fit --method auto", (*fit, "--shots", "2", "--steps", "4", "--method", "auto"), "run", of_run),
        Command("features", ("features", str(domains.target), *QUICK[:4], "--quiet"), "out.npz", of_file),
        Command("fit-features", (*heads, "--steps", "20"), "heads", of_heads),
    ]


def of_file(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def of_run(folder: Path) -> str:
    assert (folder / "report.json").is_file(), "there is no report"
    return "".join(of_file(newest(folder) / f"{name}.safetensors") for name in ("model", "objective", "optimizer"))


def of_heads(folder: Path) -> str:
    from safetensors.numpy import load_file

    tensors = load_file(folder / "model.safetensors")  # safetensors writes its metadata in any order
    found = hashlib.sha256(b"".join(name.encode() + tensors[name].tobytes() for name in sorted(tensors)))
    return found.hexdigest() + of_file(folder / "predictions.csv")


def call(words: list[str]) -> int:
    from sohot.cli import main

    try:
        main(words)
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def call_quietly(words: list[str]) -> int:
    """Call a command in this process, so that the children find everything imported."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return call(words)


class Moment:
    """Watches the calls of a process that change files; in the one of the given number it dies.

    Args:
        number: The number of the call; None to only list the calls.
        when: "before" or "after" the call, or "in" a file that is half written.
    """

    def __init__(self, number: int | None = None, when: str = "before") -> None:
        self.number, self.when = number, when
        self.seen: list[str] = []
        self._real: dict[str, Any] = {name: getattr(os, name) for name in CALLS}
        self._open = builtins.open

    def __enter__(self) -> "Moment":
        for name in CALLS:
            setattr(os, name, self._watched(name))
        builtins.open = self._opened
        return self

    def __exit__(self, *_: object) -> None:
        for name, real in self._real.items():
            setattr(os, name, real)
        builtins.open = self._open

    def _watched(self, name: str) -> Callable[..., Any]:
        def watched(*arguments: Any, **options: Any) -> Any:
            here = self._count(name)
            if here and self.when != "after":
                die()
            result = self._real[name](*arguments, **options)
            if here:
                die()
            return result

        return watched

    def _opened(self, file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        here = any(letter in mode for letter in "xwa") and self._count(WRITE)
        if here and self.when == "before":
            die()
        stream = self._open(file, mode, *arguments, **options)
        if here:
            if self.when == "in":
                stream.write(b"half of a fi" if "b" in mode else "half of a fi")
                stream.flush()
            die()
        return stream

    def _count(self, name: str) -> bool:
        self.seen.append(name)
        return len(self.seen) == self.number


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def in_child(words: list[str], moment: Moment, said: Path, delay: float | None = None) -> int:
    """Run a command in a process of its own; return the signal it died of, 0 for success, or its code as negative."""
    child = os.fork()
    if child == 0:
        with open(said, "ab") as stream:
            os.dup2(stream.fileno(), 1)
            os.dup2(stream.fileno(), 2)
        with moment:
            code = call(words)
        os._exit(code)
    if delay is not None:
        time.sleep(delay)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else -os.WEXITSTATUS(status)


@dataclass
class Outcome:
    """How many kills there were of each command and moment, how many of them were survived, and what went wrong."""

    kills: Counter[tuple[str, str]]
    survived: Counter[tuple[str, str]]
    failures: list[str]


def kill(root: Path, kills: int, seed: int) -> Outcome:
    chance, found = random.Random(seed), Outcome(Counter(), Counter(), [])
    known = []
    for command in commands(root):
        folder = root / f"whole {command.name}"
        folder.mkdir()
        out = folder / command.out
        with Moment() as moment:
            assert call_quietly([*command.words, "--out", str(out)]) == 0, f"{command.name} fails by itself"
        began = time.perf_counter()
        in_child([*command.words, "--out", str(folder / "timed.npz")], Moment(), root / "said.txt")
        known.append((command, moment.seen, time.perf_counter() - began, command.digest(out)))
    number = 0
    while sum(found.kills.values()) < kills:
        number += 1
        command, calls, seconds, whole = known[number % len(known)]
        folder = root / str(number)
        folder.mkdir()
        words, said = [*command.words, "--out", str(folder / command.out)], folder / "said.txt"
        died: list[tuple[str, str]] = []
        wrong = None
        for _ in range(min(chance.randint(1, DEATHS), kills - sum(found.kills.values()))):
            place = chance.randrange(len(calls))
            when = chance.choice(("before", "in", "after"))
            if chance.random() < 0.3:
                kind, ended = "any time", in_child(words, Moment(), said, chance.uniform(0, seconds))
            else:
                kind = f"{when if calls[place] == WRITE or when == 'after' else 'before'} {calls[place]}"
                ended = in_child(words, Moment(place + 1, when), said)
            if ended == signal.SIGKILL:
                died.append((command.name, kind))
            elif ended:
                wrong = last_word(said)
                break
        found.kills.update(died)
        wrong = wrong or finish(command, words, folder, whole)
        if wrong is None:
            found.survived.update(died)
        else:
            found.failures.append(f"{command.name} after kills {', '.join(kind for _, kind in died)}: {wrong}")
    return found


def finish(command: Command, words: list[str], folder: Path, whole: str) -> str | None:
    """Let a command finish; say what is wrong with its result, None if nothing is."""
    said = folder / "said.txt"
    if in_child(words, Moment(), said):
        return last_word(said)
    if command.digest(folder / command.out) != whole:
        return "the bits differ"
    left = [path.name for path in folder.rglob(".*") if path.name != ".lock"]
    return f"left over: {', '.join(left)}" if left else None


def last_word(said: Path) -> str:
    return said.read_text().rstrip().rpartition("\n")[2] or "it ended without a word"


def main() -> None:
    import torch

    torch.set_num_threads(1)  # threads do not survive a fork
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sohot-kills-") as folder:
        found = kill(Path(folder), options.kills, options.seed)
    for (name, kind), count in sorted(found.kills.items()):
        print(f"{name:<18} {kind:<16} {count:>4} kills, {found.survived[name, kind]:>4} survived")
    for failure in found.failures:
        print(f"FAILED: {failure}")
    total, survived = sum(found.kills.values()), sum(found.survived.values())
    print(f"{survived} kills of {total} survived: the command, started again, gave the same bits and left nothing over")
    sys.exit(bool(found.failures))


if __name__ == "__main__":
    main()
