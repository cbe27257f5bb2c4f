"""Started by test_selection.py: processes that select together, or are killed while they select; prints one JSON."""

import json
import os
import signal
import sys
import time
from pathlib import Path

from sohot.selection import select

SPACE = {"x": {"low": -2.0, "high": 2.0}, "kind": ["a", "b"]}
TRIALS = 14


def run(folder: Path, log: str, *, kill_at: int | None = None, pause: float = 0.0) -> dict:
    """Select, note every setting that is scored, and die by SIGKILL while one is."""
    calls = 0

    def score(settings: dict) -> float:
        nonlocal calls
        calls += 1
        with open(folder / log, "a") as stream:
            stream.write(json.dumps(settings) + "\n")
        if calls == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(pause)
        return -((settings["x"] - 1) ** 2) - (settings["kind"] == "a")

    chosen = select(score, SPACE, folder=folder, name="shared", trials=TRIALS, seed=3)
    return {"settings": chosen.settings, "score": chosen.score, "trials": chosen.trials}


def fork(folder: Path, log: str, **options: float) -> int:
    """Select in a child, which leaves its result in a file named after the log."""
    (folder / log).touch()  # a child that starts late may score nothing
    child = os.fork()
    if child == 0:
        try:
            (folder / f"{log}.json").write_text(json.dumps(run(folder, log, **options)))
            os._exit(0)
        finally:
            os._exit(1)
    return child


def ends(children: list[int]) -> list[int]:
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def scored(folder: Path, *logs: str) -> list[dict]:
    return [json.loads(line) for log in logs for line in (folder / log).read_text().splitlines()]


def main(root: Path) -> dict:
    folders = {name: root / name for name in ("alone", "killed", "shared", "orphan")}
    for folder in folders.values():
        folder.mkdir()
    alone, killed, shared, orphan = folders.values()
    found: dict = {"alone": run(alone, "log"), "alone_scored": scored(alone, "log")}

    found["deaths"] = [ends([fork(killed, "log", kill_at=at)])[0] for at in (1, 3, 9)]
    found["resumed"], found["resumed_scored"] = run(killed, "log"), scored(killed, "log")

    logs = ["one", "two", "three"]
    found["ends"] = ends([fork(shared, log, pause=0.1) for log in logs])
    found["together"] = [json.loads((shared / f"{log}.json").read_text()) for log in logs]
    found["shares"] = [len(scored(shared, log)) for log in logs]

    # One lives on while the other dies in the middle of a setting: the survivor tries that one again.
    found["orphan_ends"] = sorted(ends([fork(orphan, "dies", kill_at=2, pause=0.1), fork(orphan, "lives", pause=0.1)]))
    found["survivor"] = json.loads((orphan / "lives.json").read_text())
    found["orphan_scored"] = len(scored(orphan, "dies", "lives"))
    found["left_over"] = sorted(path.name for path in root.rglob("*") if path.suffix in (".alive", ".lock"))
    return found


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
