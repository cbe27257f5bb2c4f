"""How a command ends: the exit code and the one-sentence message of each error."""

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from .._files import disk_error, is_full
from ..training.errors import (
    CorruptCheckpoint,
    ExportError,
    Interrupted,
    OtherVersion,
    RanksFailed,
    TrainingError,
)
from .output import errors
from .stopping import SIGINT, SIGTERM

FAILED, WRONG = 1, 2
DEBUG = "SOHOT_TRACEBACK"
"""Environment variable: if set, errors end in a traceback."""

# Newer versions of typer bundle their own copy of click, so its classes are reached through typer's names.
_CallError: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")
_WRONG_INPUT = (ValueError, TypeError, FileNotFoundError, NotADirectoryError, IsADirectoryError, FileExistsError)


def describe_end(error: BaseException, words: Sequence[str] = ()) -> tuple[int, str] | None:
    """Return the exit code and message of an error; None for one that is shown with its traceback.

    Args:
        error: What ended the command.
        words: The command line: advice names only options of its command.

    Example:
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
    if isinstance(error, BrokenPipeError):
        return FAILED, ""
    if os.environ.get(DEBUG):
        return None
    if isinstance(error, _CallError):
        return error.exit_code, error.format_message()
    return _describe_failure(error, words)


def _describe_failure(error: BaseException, words: Sequence[str]) -> tuple[int, str] | None:
    sentence = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, OSError) and is_full(error) and not error.filename:  # of files, the writer names each
        error = disk_error(error, Path("standard output"))
    if isinstance(error, OSError) and error.strerror and error.filename:  # raised by the system, not by us
        sentence = f"{os.fsdecode(error.filename)}: {error.strerror}"
    if isinstance(error, (CorruptCheckpoint, OtherVersion)):
        return WRONG, sentence
    if isinstance(error, (TrainingError, ExportError, ConnectionError, ModuleNotFoundError)):
        return FAILED, sentence
    if _is_lack_of_memory(error):
        advice = "; lower --batch-rows, or choose --cache disk" if "fit" in words[:1] else ""
        return FAILED, f"out of memory ({sentence}){advice}"
    if isinstance(error, _WRONG_INPUT):
        return WRONG, sentence
    if isinstance(error, OSError):
        return FAILED, sentence
    if isinstance(error, Exception):
        kind = type(error).__name__
        return (
            FAILED,
            f"unexpected {kind}: {sentence}; please report it with the traceback that {DEBUG}=1 shows",
        )
    return None


def _is_lack_of_memory(error: BaseException) -> bool:
    torch = sys.modules.get("torch")  # if torch is not imported, it raised nothing
    kinds = (MemoryError, getattr(torch, "OutOfMemoryError", MemoryError))
    return isinstance(error, kinds) or (isinstance(error, RuntimeError) and "DefaultCPUAllocator" in str(error))


@contextmanager
def show_warnings() -> Iterator[None]:
    """Show our own warnings as one sentence each, and hide those of libraries."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("always", module=r"sohot(\.|$)")

        def show(message: Warning | str, *_: Any, **__: Any) -> None:
            errors().print(f"warning: {message}", markup=False, highlight=False, soft_wrap=True)

        warnings.showwarning = show
        yield
