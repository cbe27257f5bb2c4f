"""Whose code runs: a network named FILE.py:function in a stranger's folder is imported only if the user says so."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..networks.names import is_own


class UntrustedCode(ValueError):  # noqa: N818 - it is the code that is at fault
    """A folder names a Python file that the user has not said to trust."""


def refuse_code(values: Any, where: Path) -> None:
    """Refuse values from a folder if one of them names a Python file to import.

    Args:
        values: Values from the folder, as JSON or TOML give them.
        where: The folder or file, for the message.

    Raises:
        UntrustedCode: One of the values has the form FILE.py:function.
    """
    for name in code_in(values):
        raise UntrustedCode(
            f"{where} names the network {name}, and importing it would run that file: "
            "if you trust the file, add --trust (in Python: trust=True)"
        )


def code_in(values: Any) -> Iterator[str]:
    """Yield the names of the form FILE.py:function anywhere in JSON or TOML values.

    >>> list(code_in({"network": {"backbone": "nets/mine.py:small", "tap": None}}))
    ['nets/mine.py:small']
    """
    if isinstance(values, str) and is_own(values):
        yield values
    elif isinstance(values, Mapping):
        for value in values.values():
            yield from code_in(value)
    elif isinstance(values, (list, tuple)):
        for value in values:
            yield from code_in(value)
