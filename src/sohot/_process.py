"""Identity of a process on a machine, distinct from a later one of its number; what children import; how they fail."""

import hashlib
import os
import socket
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Runner:
    """A process.

    Attributes:
        host: Name of the machine.
        pid: Number of the process.
        began: When it began, in the system's units; "" if unknown.
    """

    host: str
    pid: int
    began: str


def this_runner() -> Runner:
    """Describe this process."""
    return Runner(socket.gethostname(), os.getpid(), _began(os.getpid()) or "")


def is_alive(other: Runner, me: Runner) -> bool | None:
    """Tell whether a process is alive; None if that is unknown, mostly because it is on another machine.

    >>> me = this_runner()
    >>> earlier, elsewhere = Runner(me.host, me.pid, "earlier"), Runner("elsewhere", 1, "")
    >>> is_alive(me, me), is_alive(earlier, me), is_alive(elsewhere, me)
    (True, False, None)
    """
    if other.host != me.host:
        return None
    began = _began(other.pid)
    if began is None:
        return False
    return began == other.began if began else None


def process_tag() -> str:
    """Name this process in the names of its files: machine, number, beginning.

    >>> tag_is_alive(process_tag())
    True
    """
    me = this_runner()
    return f"{_short(me.host)}-{me.pid}-{me.began}"


def tag_is_alive(tag: str) -> bool | None:
    """Tell whether the process of a `process_tag` is alive; None if that is unknown."""
    me = this_runner()
    machine, pid, began = tag.split("-")
    return is_alive(Runner(me.host, int(pid), began), me) if machine == _short(me.host) else None


def _short(host: str) -> str:
    return hashlib.sha256(host.encode()).hexdigest()[:8]


def _began(pid: int) -> str | None:
    """Return when a process began, in ticks since boot; "" if it is alive but that is unknown; None if it is dead."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None if Path("/proc/self/stat").exists() else ""
    except OSError:
        return ""
    state, *rest = stat.rpartition(")")[2].split()  # the name before it may contain anything
    return None if state in "ZX" else rest[18]


def search_path() -> dict[str, str]:
    """Return the variable that keeps the working folder off a child's search path, if it is not on our own.

    Otherwise a child that is started in a stranger's folder would import a file there that has the name of a module.
    Python 3.10 does not know the variable.
    """
    return {} if {"", os.getcwd()} & set(sys.path) else {"PYTHONSAFEPATH": "1"}


def describe_error(error: BaseException) -> str:
    """Write an error as one sentence: our own messages as they are, others with their class.

    >>> describe_error(ValueError("lr must be above 0")), describe_error(KeyError("a"))
    ('lr must be above 0', "KeyError: 'a'")
    """
    sentence = " ".join(str(error).split())
    ours = isinstance(error, (ValueError, TypeError, OSError, RuntimeError)) and sentence
    return sentence if ours else f"{type(error).__name__}: {sentence}".rstrip(": ")
