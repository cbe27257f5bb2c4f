"""Options of a run as fields of a dataclass: each with its help, its group, and how text or TOML becomes its value."""

from collections.abc import Callable
from dataclasses import Field, field
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args


def option(default: Any, group: str, help: str, *, shown: str | None = None, stored: bool = True) -> Any:
    """Declare an option.

    Args:
        default: Its value where it is not given.
        group: The heading it stands under in the help.
        help: What it does, in a line.
        shown: How the default reads in the help; None for the value itself, "" for nothing.
        stored: Whether it belongs to the configuration that is kept with a run.
    """
    return field(default=default, metadata={"group": group, "help": help, "shown": shown, "stored": stored})


def flag(name: str) -> str:
    """Spell a field as an option of the command line.

    >>> flag("source_shots")
    '--source-shots'
    """
    return f"--{name.replace('_', '-')}"


def kinds_of(hint: Any) -> list[Any]:
    """List the types that a field may have, without None.

    >>> kinds_of(float | tuple[float, ...] | None)
    [<class 'float'>, tuple[float, ...]]
    """
    kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    return [kind for kind in kinds if kind is not NoneType]


def convert(one: "Field[Any]", hint: Any, value: Any) -> Any:
    """Bring a value from the command line or a TOML file to the type of its field.

    Args:
        one: The field.
        hint: Its type, resolved.
        value: The value; text with commas stands for a list.

    Raises:
        ValueError: The value cannot be of that type; the sentence names the option.
    """
    kinds = kinds_of(hint)
    if value is None and NoneType in get_args(hint):
        return None
    for kind in kinds:
        try:
            return _CONVERTERS[kind](value)
        except (ValueError, TypeError):
            continue
    wanted = " or ".join(_IN_WORDS[kind] for kind in kinds)
    raise ValueError(f"{flag(one.name)} must be {wanted}, got {value!r}")


def _integer(value: Any) -> int:
    if isinstance(value, (bool, float)):
        raise TypeError
    return int(value)


def _number(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError
    return float(value)


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _path(value: Any) -> Path:
    path = Path(value)
    str(path).encode()  # a name that is not UTF-8 could not be stored with the run; UnicodeEncodeError is a ValueError
    return path


def _list_of(each: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    def read(value: Any) -> tuple[Any, ...]:
        if isinstance(value, str):
            value = [part.strip() for part in value.split(",") if part.strip()]
        return tuple(each(part) for part in (value if isinstance(value, (list, tuple)) else [value]))

    return read


_CONVERTERS: dict[Any, Callable[[Any], Any]] = {
    int: _integer,
    float: _number,
    bool: _truth,
    str: _text,
    Path: _path,
    tuple[int, ...]: _list_of(_integer),
    tuple[float, ...]: _list_of(_number),
    tuple[str, ...]: _list_of(_text),
}
_IN_WORDS = {
    int: "an integer",
    float: "a number",
    bool: "true or false",
    str: "a text",
    Path: "a path in UTF-8",
    tuple[int, ...]: "integers with commas between",
    tuple[float, ...]: "numbers with commas between",
    tuple[str, ...]: "words with commas between",
}
