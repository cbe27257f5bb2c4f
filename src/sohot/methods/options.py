"""Declarations of options: default, range, help and group, and conversion from text or TOML.

Each option is declared once, as a dataclass field: those shared by images and features in `sohot.methods.settings`,
those of folders, networks and machines in `sohot.runs.config`. The command line, TOML keys, settings objects, estimator
parameters and docs/options.md are generated from these declarations or checked against them.
"""

from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ..functional.plain_checks import check_choice, check_count, check_not_negative, check_orders

DATA, NETWORK, METHOD, TRAINING, MACHINE, RUN = "Data", "Network", "Method", "Training", "Machine", "Run"
POOL = "Unlabelled images"
GROUPS = (DATA, RUN, NETWORK, METHOD, POOL, TRAINING, MACHINE)
"""Headings of options, in the order of the help."""


@dataclass(frozen=True)
class Allowed:
    """The values an option may take.

    Attributes:
        words: The range in words.
        check: Raises ValueError or TypeError for a value out of range; its second argument names the option.
    """

    words: str
    check: Callable[[Any, str], Any]


_MANY = 10**9  # no count comes near it, and sums and products of such counts still fit in 64 bits
_LARGE = 1e30  # products of such numbers with those of a network still fit in float32


def at_least(lowest: int) -> Allowed:
    """Return the range of integers from `lowest` up, as far as anyone can mean them."""
    return Allowed(f"an integer of at least {lowest}", from_to(lowest, _MANY).check)


def from_to(lowest: int, most: int) -> Allowed:
    """Return a range of integers.

    >>> from_to(1, 3).words
    'an integer from 1 to 3'
    """

    def check(value: Any, name: str) -> None:
        if check_count(value, name, lowest) > most:
            raise ValueError(f"{name} must be at most {most}, got {value}")

    return Allowed(f"an integer from {lowest} to {most}", check)


def one_of(*choices: str) -> Allowed:
    """Return a range of names."""
    return Allowed(", ".join(choices), lambda value, name: check_choice(value, choices, name))


def _check_number(value: Any, name: str, most: float = _LARGE) -> float:
    if isinstance(value, (int, float)) and most < value < float("inf"):
        raise ValueError(f"{name} must be at most {most:g}, got {value}")
    return check_not_negative(value, name)


def above_zero(most: float = _LARGE) -> Allowed:
    """Return the range of numbers above 0."""

    def check(value: Any, name: str) -> None:
        if _check_number(value, name, most) == 0:
            raise ValueError(f"{name} must be above 0, got {value}")

    return Allowed("above 0", check)


def _share(value: Any, name: str) -> None:
    if _check_number(value, name) > 1:
        raise ValueError(f"{name} must be between 0 and 1, got {value}")


def _not_negative(value: Any, name: str) -> None:
    for number in value if isinstance(value, tuple) else (value,):
        _check_number(number, name)


def _orders(values: Any, name: str) -> None:
    for order in check_orders(values):
        if order > 100:
            raise ValueError(f"each of {name} must be at most 100, got {order}")


def _switch(value: Any, name: str) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r}")


NOT_NEGATIVE = Allowed("at least 0", _not_negative)
ABOVE_ZERO = above_zero()
SHARE = Allowed("0 to 1", _share)
SWITCH = Allowed("true or false", _switch)
STEPS = from_to(1, 10**7)
SEED = from_to(0, 2**63 - 1)  # the largest integer of TOML
WIDTH = from_to(1, 2**16)
ORDERS = Allowed("each 2 to 100", _orders)


def option(
    default: Any,
    group: str,
    help: str,
    within: Allowed | None = None,
    *,
    optional: bool = False,
    shown: str | None = None,
    stored: bool = True,
    decides: bool = True,
) -> Any:
    """Declare an option.

    Args:
        default: Its value if not given.
        group: Its heading in the help.
        help: What it does, in one line.
        within: The values it may take; None for any of its type.
        optional: Whether it may be None although that is not the default.
        shown: How the help shows the default; None for the value itself, "" for nothing.
        stored: Whether it is stored with the configuration of a run.
        decides: Whether results depend on it.
    """
    about = {"group": group, "help": help, "within": within, "optional": optional or default is None}
    return field(default=default, metadata={**about, "shown": shown, "stored": stored, "decides": decides})


def redeclared(
    of: type, name: str, default: Any, help: str | None = None, within: Allowed | None = None, shown: str | None = None
) -> Any:
    """Redeclare an inherited option with another default and, if given, another help, range or default in the help."""
    inherited = next(declared for declared in fields(of) if declared.name == name)
    changed = {key: value for key, value in (("help", help), ("within", within), ("shown", shown)) if value is not None}
    return field(default=default, metadata={**inherited.metadata, **changed})


def check_ranges(options: Any, spell: Callable[[str], str] = str) -> None:
    """Require every option of an object to be in its range.

    Args:
        options: An object of a dataclass of options.
        spell: How messages write an option's name.
    """
    for declared in fields(options):
        within, value = declared.metadata.get("within"), getattr(options, declared.name)
        if within is not None and not (value is None and declared.metadata["optional"]):
            within.check(value, spell(declared.name))


def in_groups(kind: type) -> list["Field[Any]"]:
    """List the options of a dataclass in the order of `GROUPS`."""
    return sorted(
        (declared for declared in fields(kind) if declared.metadata),
        key=lambda declared: GROUPS.index(declared.metadata["group"]),
    )


def flag(name: str) -> str:
    """Spell a field as a command-line option.

    >>> flag("source_shots")
    '--source-shots'
    """
    return f"--{name.replace('_', '-')}"


def kinds_of(hint: Any) -> list[Any]:
    """List the types a field may have, without None.

    >>> kinds_of(float | tuple[float, ...] | None)
    [<class 'float'>, tuple[float, ...]]
    """
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return [kind for kind in kinds if kind is not NoneType]


def convert(one: "Field[Any]", hint: Any, value: Any, spell: Callable[[str], str] = flag) -> Any:
    """Convert a value from the command line or a TOML file to the type of its field.

    Args:
        one: The field.
        hint: Its type, resolved.
        value: The value; text with commas stands for a list.
        spell: How messages write an option's name.

    Raises:
        ValueError: The value does not convert to that type; the message names the option.
    """
    kinds = kinds_of(hint)
    if value is None and NoneType in get_args(hint):
        return None
    for kind in kinds:
        try:
            return _CONVERTERS[kind](value)
        except (ValueError, TypeError, OverflowError):
            continue
    wanted = " or ".join(_IN_WORDS[kind] for kind in kinds)
    raise ValueError(f"{spell(one.name)} must be {wanted}, got {value!r}")


def convert_fields(options: Any, spell: Callable[[str], str] = str) -> None:
    """Convert every field of a new object to its type: text to a path, a list to a tuple, an integer to a float.

    Args:
        options: An object of a dataclass of options; changed in place, although frozen.
        spell: How messages write an option's name.

    Raises:
        ValueError: A value has another type; the message names the option.
    """
    hints = _hints(options.__class__)
    for declared in fields(options):
        value = convert(declared, hints[declared.name], getattr(options, declared.name), spell)
        object.__setattr__(options, declared.name, value)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


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
    str(path).encode()  # only UTF-8 names can be stored with the run; UnicodeEncodeError is a ValueError
    return path


def _list_of(each: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    def read(value: Any) -> tuple[Any, ...]:
        if isinstance(value, str):
            value = [part.strip() for part in value.split(",") if part.strip()]
        return tuple(each(part) for part in (value if isinstance(value, (list, tuple)) else [value]))

    return read


Rest = Literal["rest"]
REST: Rest = "rest"
"""The word that stands for the target images left over, where folders are expected."""


def _rest(value: Any) -> Rest:
    if value not in (REST, [REST], (REST,)):
        raise ValueError
    return REST


_CONVERTERS: dict[Any, Callable[[Any], Any]] = {
    Rest: _rest,
    int: _integer,
    float: _number,
    bool: _truth,
    str: _text,
    Path: _path,
    tuple[Path, ...]: _list_of(_path),
    tuple[int, ...]: _list_of(_integer),
    tuple[float, ...]: _list_of(_number),
}
_IN_WORDS = {
    Rest: repr(REST),
    int: "an integer",
    float: "a number",
    bool: "true or false",
    str: "text",
    Path: "a UTF-8 path",
    tuple[Path, ...]: "a list of UTF-8 paths",
    tuple[int, ...]: "comma-separated integers",
    tuple[float, ...]: "comma-separated numbers",
}
