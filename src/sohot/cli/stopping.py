"""Ctrl-C and SIGTERM; quick to import, so that they are answered from the first moment of a command."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

SIGINT, SIGTERM = 130, 143
"""Exit codes after Ctrl-C and SIGTERM."""


class Terminated(BaseException):
    """SIGTERM arrived outside training, when there is nothing to save."""


STOPS = (KeyboardInterrupt, Terminated)
"""What the two signals raise."""


@contextmanager
def terminate_politely() -> Iterator[None]:
    """Let SIGTERM end a command as Ctrl-C does: remove half-written files and print a message."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise Terminated

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not in the main thread: another program calls us
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def describe_stop(error: BaseException, words: Sequence[str]) -> tuple[int, str]:
    """Return the exit code and message of a command, given in words, that a signal has stopped.

    >>> describe_stop(KeyboardInterrupt(), ["demo", "--splits", "3"])
    (130, 'stopped by Ctrl-C; run the same command again')
    """
    code, by = (SIGTERM, "SIGTERM") if isinstance(error, Terminated) else (SIGINT, "Ctrl-C")
    resume = ", with --resume if training had begun" if "fit" in words[:1] else ""
    return code, f"stopped by {by}; run the same command again{resume}"
