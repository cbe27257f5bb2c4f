"""Files in the folder of a run: their names, and its configuration as TOML."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .._files import parse_toml
from .config import known_key

CONFIG = "config.toml"
"""The options, resolved."""

DESCRIPTION = "run.json"
"""What the run is: settings, network, images, versions."""


def read_config(file: Path) -> dict[str, Any]:
    """Read a TOML file of options, flat or in tables as one likes: the names of the tables say nothing.

    Args:
        file: The file.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is no TOML, or it has a key that is no option or comes twice.
    """
    try:
        content = parse_toml(file.read_text(encoding="utf-8"))
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
