"""Trains in child processes that die by SIGKILL at given moments, then resumes. Run by test_kill.py as a process.

    python kill_worker.py FOLDER MOMENT,MOMENT,… MOMENT,…

Each argument after the folder is a run of its own. A moment is `CALL:n` (at the n-th call of os.fsync, os.replace or
os.mkdir: before the call or, with `CALL+:n`, after it), `write:n` (in the n-th file opened for writing, half of it
written), `step:n` or `time:seconds`. For each moment a child process starts or resumes the run and is killed; then one
more finishes it. The last line printed is a JSON object.
"""

import builtins
import hashlib
import json
import os
import pathlib
import signal
import sys
import threading
import time


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def arm(moment: str) -> int:
    """Prepare the death of this process; return the step to die in, 0 for none."""
    kind, value = moment.split(":")
    if kind == "step":
        return int(value)
    if kind == "time":
        threading.Timer(float(value), die).start()
    elif kind == "write":
        _die_in_write(int(value))
    elif kind != "never":
        _die_at_call(kind.rstrip("+"), int(value), after=kind.endswith("+"))
    return 0


def _die_at_call(name: str, number: int, after: bool) -> None:
    real, calls = getattr(os, name), [0]

    def counted(*arguments, **options):
        calls[0] += 1
        if calls[0] == number and not after:
            die()
        result = real(*arguments, **options)
        if calls[0] == number:
            die()
        return result

    setattr(os, name, counted)
    if sys.version_info < (3, 11) and name == "mkdir":  # there pathlib keeps the function it found when it was imported
        pathlib._NormalAccessor.mkdir = staticmethod(counted)


def _die_in_write(number: int) -> None:
    real, calls = builtins.open, [0]

    def counted(file, mode="r", *arguments, **options):
        if mode == "xb" and str(file).endswith((".safetensors", ".json", ".tmp")):
            calls[0] += 1
            if calls[0] == number:
                with real(file, "xb") as stream:
                    stream.write(b"half of a fi")
                die()
        return real(file, mode, *arguments, **options)

    builtins.open = counted


def digest(state) -> str:
    found = hashlib.sha256()
    for name, tensor in state.items():
        found.update(name.encode() + tensor.numpy().tobytes())
    return found.hexdigest()


def train(run_dir: str, moment: str) -> dict:
    from standin import RandomRows, SmallStreams, problem

    from sohot.methods import FitSettings
    from sohot.training import TensorInputs, fit

    last = arm(moment)

    def on_step(record):
        if moment.startswith("time"):
            time.sleep(0.005)
        if record["step"] == last:
            die()

    source, source_labels, target, target_labels = problem()
    settings = FitSettings(method="so+zeta", steps=30, checkpoint_every=4, lr=0.02, device="cpu", loggers="none")
    data = TensorInputs(source), source_labels, TensorInputs(target), target_labels
    options = {"batches": RandomRows(24, 9), "run_dir": run_dir, "resume": True, "on_step": on_step}
    result = fit(SmallStreams(), *data, settings, **options)
    weights, weights_of_loss = digest(result.model.state_dict()), digest(result.objective.state_dict())
    return {"model": weights, "objective": weights_of_loss, "resumed_from": result.resumed_from}


def in_child(run_dir: str, moment: str) -> tuple[int, dict | None]:
    """Train in a process of its own; return the signal it died of and, if it did not, its result."""
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            result = train(run_dir, moment)
            os.write(writable, json.dumps(result).encode())
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
    os.close(writable)
    with os.fdopen(readable, "rb") as stream:
        text = stream.read()
    status = os.waitpid(child, 0)[1]
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0, json.loads(text) if text else None


def main() -> None:
    import torch

    torch.set_num_threads(1)  # threads do not survive a fork
    root, *groups = sys.argv[1:]
    # In this process, so that what is imported and built on first use is there when the children start.
    found = {"undisturbed": train(f"{root}/undisturbed", "never:0"), "killed": []}
    for number, group in enumerate(groups):
        run_dir = f"{root}/{number}"
        deaths = [in_child(run_dir, moment)[0] for moment in group.split(",")]
        found["killed"].append({"deaths": deaths, "end": in_child(run_dir, "never:0")[1]})
    print(json.dumps(found))


if __name__ == "__main__":
    main()
