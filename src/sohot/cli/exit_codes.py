"""How a command ends: which exit code an error has, and its one sentence."""

import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import typer

from ..methods.options import RENAMED, flag
from ..training.errors import (
    CorruptCheckpoint,
    ExportError,
    Interrupted,
    OtherVersion,
    PickleRefused,
    RanksFailed,
    TrainingError,
)
from .output import errors

FAILED, WRONG, SIGINT, SIGTERM = 1, 2, 130, 143
DEBUG = "SOHOT_TRACEBACK"
"""Environment variable: if set, errors end in a traceback."""

# Newer versions of typer bring their own copy of click, so its classes are reached through typer's names.
_CallError: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")
_WRONG_INPUT = (ValueError, TypeError, FileNotFoundError, NotADirectoryError, IsADirectoryError, FileExistsError)


class Terminated(BaseException):
    """SIGTERM came outside training, where there is nothing to save."""


def describe_end(error: BaseException) -> tuple[int, str] | None:
    """Give the exit code of an error and the sentence for it; None for one to be shown with its traceback.

    >>> describe_end(ValueError("lr must be above 0, got -1"))
    (2, 'lr must be above 0, got -1')
    """
    if isinstance(error, (typer.Exit, SystemExit)):
        code = error.exit_code if isinstance(error, typer.Exit) else error.code
        return (code if isinstance(code, int) else FAILED), ""
    if isinstance(error, RanksFailed):
        return error.code, str(error)
    if isinstance(error, Interrupted):
        return (SIGTERM if error.signal == "SIGTERM" else SIGINT), str(error)
    if isinstance(error, (KeyboardInterrupt, typer.Abort)):
        return SIGINT, "stopped by Ctrl-C; give the same command again, with --resume if it had begun to train"
    if isinstance(error, Terminated):
        return SIGTERM, "stopped by SIGTERM; give the same command again, with --resume if it had begun to train"
    if isinstance(error, BrokenPipeError):
        return FAILED, ""
    if os.environ.get(DEBUG):
        return None
    if isinstance(error, _CallError):
        return error.exit_code, _renamed_option(error) or error.format_message()
    return _describe_failure(error)


def _renamed_option(error: Any) -> str | None:
    """Say what an option that this command no longer knows is called now; None if it never was one."""
    new = RENAMED.get(str(getattr(error, "option_name", "")).lstrip("-").replace("-", "_"))
    known = [name for option in error.ctx.command.params for name in option.opts] if new and error.ctx else []
    return f"{error.option_name} is now called {flag(new)}" if new and flag(new) in known else None


def _describe_failure(error: BaseException) -> tuple[int, str] | None:
    sentence = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, OSError) and error.strerror and error.filename:  # raised by the system, not by us
        sentence = f"{os.fsdecode(error.filename)}: {error.strerror}"
    if isinstance(error, (CorruptCheckpoint, PickleRefused, OtherVersion)):
        return WRONG, sentence
    if isinstance(error, (TrainingError, ExportError, ConnectionError, ModuleNotFoundError)):
        return FAILED, sentence
    if _is_lack_of_memory(error):
        return FAILED, f"out of memory ({sentence}); lower --batch-rows, or choose --cache disk"
    if isinstance(error, _WRONG_INPUT):
        return WRONG, sentence
    if isinstance(error, OSError):
        return FAILED, sentence
    if isinstance(error, Exception):
        kind = type(error).__name__
        return (
            FAILED,
            f"unexpected {kind}: {sentence}; please report it, with what {DEBUG}=1 in front of the command shows",
        )
    return None


def _is_lack_of_memory(error: BaseException) -> bool:
    torch = sys.modules.get("torch")  # not imported to ask: without it there are no errors of its own
    return isinstance(error, (MemoryError, getattr(torch, "OutOfMemoryError", MemoryError)))


@contextmanager
def terminate_politely() -> Iterator[None]:
    """Let SIGTERM end a command as Ctrl-C does: files half written are removed, and a sentence is said."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise Terminated

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not in the main thread: somebody else's process
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def show_warnings() -> Iterator[None]:
    """Show our own warnings as one sentence each, and none of the libraries' about their insides."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("always", module=r"sohot(\.|$)")

        def show(message: Warning | str, *_: Any, **__: Any) -> None:
            errors().print(f"warning: {message}", markup=False, highlight=False, soft_wrap=True)

        warnings.showwarning = show
        yield
