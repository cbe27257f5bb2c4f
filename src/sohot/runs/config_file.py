"""Files in the folder of a run: their names, and its configuration as TOML."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .._files import write_atomically
from .config import known_key

CONFIG = "config.toml"
"""The options, resolved."""

DESCRIPTION = "run.json"
"""What the run is: settings, network, images, versions."""


if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found,unused-ignore] # what became tomllib


def read_config(file: Path) -> dict[str, Any]:
    """Read a TOML file of options, flat or in tables as one likes: the names of the tables say nothing.

    Args:
        file: The file.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is no TOML, or it has a key that is no option or comes twice.
    """
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, IsADirectoryError):
        raise FileNotFoundError(f"--config {file}: there is no such file") from None
    except ValueError as error:  # of the encoding, or of TOML itself
        raise ValueError(f"--config {file} is not TOML: {error}") from None
    values: dict[str, Any] = {}
    _collect(content, values, file)
    return values


def _collect(table: Mapping[str, Any], values: dict[str, Any], file: Path) -> None:
    for key, value in table.items():
        if isinstance(value, dict):
            _collect(value, values, file)
            continue
        try:
            name = known_key(key)
        except ValueError as error:
            raise ValueError(f"--config {file}: {error}") from None
        if name in values:
            raise ValueError(f"--config {file}: {key!r} comes twice")
        values[name] = value


def write_config(file: Path, values: Mapping[str, Any], heading: str) -> None:
    """Write options as TOML, atomically.

    Args:
        file: The file.
        values: Texts, numbers, truth values and lists of them by name.
        heading: A comment for the first line.
    """
    # What json writes for these values is TOML too, but for the one control character that JSON allows as it is.
    lines = [
        f"{name} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007f") for name, value in values.items()
    ]
    write_atomically(file, "\n".join([f"# {heading}", *lines, ""]).encode())
