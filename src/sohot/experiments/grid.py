"""A grid: data set × shifts × splits × methods × settings, declared in a short TOML file."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any

from .._files import parse_toml, write_toml
from .._reading import read_text
from ..data.datasets import dataset_names
from ..data.protocols import INDUCTIVE, POOLS, SUPERVISED, check_protocol, draw_names
from ..functional.plain_checks import check_choice
from ..methods.registry import method
from ..runs.auto import AUTO
from ..runs.presets import PAPER
from .grid_keys import check_head, check_settings, check_values, parse_splits, refuse_unknown

COMPLEXITY = "complexity"
"""Name of the one experiment that is not a grid."""

FIGURES = ("zeta", "shots", "sigma", "curves", "confusion")
BASELINE = "s+t"
"""The method that tables compare the others with, unless a grid names another."""

_METHODS = "method_settings"  # in the file, tables such as [method.so]
_SHIFTS = "shift_settings"  # in the file, tables such as [method.so.shift]
_BUILTIN = files("sohot.experiments") / "builtin"


@dataclass(frozen=True)
class Grid:
    """A grid of trainings to compare.

    Attributes:
        name: A short name, that of its file.
        title: A one-line description.
        dataset: Name of the data set.
        protocol: How images are split: "paper", "paper-folds", "rectified" or "k-shot".
        pool: What the unlabelled target images are, one or several of "supervised" (there are none), "transductive"
            (those that test) and "inductive" (half of those that would test; the others test).
        backbone: Name of the network.
        shifts: Pairs of source and target domain; empty for all of the data set.
        splits: Numbers of the splits.
        methods: Names of the methods.
        settings: Options of `sohot fit`, and numbers of the protocol such as `target_shots`, for all cells.
        vary: The same with a list of values each: every combination is computed.
        figures: What to draw.
        baseline: The method that tables compare the others with.
        published: Which published numbers to show beside ours in the table; None for none.
        method_settings: Settings of single methods, by name.
        shift_settings: Settings of single methods on single shifts, by name and then by shift; they override
            `method_settings`.
        space: What to choose from with `--select`, by setting: a list of values, or a range such as
            `{"low": 0.01, "high": 1.0, "log": True}`; empty for the usual ones.
        data: Options of the data set.
        frozen: Settings of `sohot.methods.HeadSettings` for all cells with `--frozen`, instead of `settings`.
        frozen_space: What to choose from with `--frozen --select`: a list of values by setting; empty for the usual.

    Example:
        >>> grid = Grid("mine", dataset="office31", methods=("S+T", "so"), vary={"sigma1": [0.1, 1.0]})
        >>> grid.methods, grid.splits
        (('s+t', 'so'), (1,))
    """

    name: str
    title: str = ""
    dataset: str = "domains"
    protocol: str = "paper"
    backbone: str = "lite0"
    shifts: tuple[str, ...] = ()
    splits: tuple[int, ...] = (1,)
    methods: tuple[str, ...] = ("s+t", "so")
    settings: Mapping[str, Any] = field(default_factory=dict)
    vary: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    figures: tuple[str, ...] = ()
    baseline: str = BASELINE
    published: str | None = None
    method_settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    shift_settings: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    space: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    frozen: Mapping[str, Any] = field(default_factory=dict)
    frozen_space: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    pool: tuple[str, ...] = (SUPERVISED,)

    def __post_init__(self) -> None:
        check_choice(self.dataset, dataset_names(), "dataset")
        check_protocol(self.protocol)
        for one in self.figures:
            check_choice(one, FIGURES, "each of figures")
        self._put("pool", _unique((self.pool,) if isinstance(self.pool, str) else self.pool, "pool"))
        for one in self.pool:
            check_choice(one, tuple(POOLS), "pool")
        self._put("splits", parse_splits(self.splits))
        for name in (*self.methods, self.baseline, *self.method_settings, *self.shift_settings):
            _refuse_stand_in(name)
        self._put("baseline", method(self.baseline).name)
        self._put("methods", _unique((method(name).name for name in self.methods), "methods"))
        self._put("shifts", _unique(self.shifts, "shifts", empty=True))
        self._put("settings", check_settings(self.settings, self.protocol, "settings"))
        self._put("vary", check_values(self.vary, self.protocol, "vary"))
        self._put("space", check_values(self.space, None, "space", ranges=True))
        self._put("frozen", check_head(self.frozen, "frozen"))
        for key, values in self.frozen_space.items():
            if not isinstance(values, (list, tuple)) or not values:
                raise ValueError(f"frozen_space.{key} must be a list of values such as [0.1, 1.0], got {values!r}")
            for value in values:
                check_head({key: value}, "frozen_space")
        self._put("frozen_space", {key.replace("-", "_"): list(values) for key, values in self.frozen_space.items()})
        own = {
            method(name).name: check_settings(table, None, f'method."{name}"')
            for name, table in self.method_settings.items()
        }
        self._put("method_settings", own)
        shifted = {
            method(name).name: {
                shift: check_settings(table, None, f'method."{name}".shift."{shift}"')
                for shift, table in tables.items()
            }
            for name, tables in self.shift_settings.items()
        }
        self._put("shift_settings", shifted)

    def _put(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def by_pool(self) -> list["Grid"]:
        """Return one grid for each value of `pool`: their results answer different questions and are never mixed.

        Published numbers stay with "supervised": they were obtained without a pool.

        >>> [one.pool for one in Grid("mine", pool=("supervised", "inductive")).by_pool()]
        [('supervised',), ('inductive',)]
        """
        return [
            replace(self, pool=(one,), published=self.published if one == SUPERVISED else None) for one in self.pool
        ]

    def draw_names(self) -> list[str]:
        """Return the names of the numbers that the protocol takes."""
        return draw_names(self.protocol)

    def changed(
        self,
        settings: Mapping[str, Any] | None = None,
        frozen_settings: Mapping[str, Any] | None = None,
        **parts: Any,
    ) -> "Grid":
        """Return the grid with other parts (None keeps one), and settings for all cells.

        Args:
            settings: They override the grid's own, those of single methods and varied ones.
            frozen_settings: The same for `frozen`.
            parts: Fields of the grid.
        """
        plain = {} if settings is None else check_settings(settings, self.protocol, "--set")
        head = {} if frozen_settings is None else check_head(frozen_settings, "--set")
        fixed = {**plain, **head}

        def free(table: Mapping[str, Any]) -> dict[str, Any]:
            return {name: value for name, value in table.items() if name not in fixed}

        return replace(
            self,
            settings={**self.settings, **plain},
            frozen={**self.frozen, **head},
            vary=free(self.vary),
            space=free(self.space),
            frozen_space=free(self.frozen_space),
            method_settings={name: free(table) for name, table in self.method_settings.items()},
            shift_settings={
                name: {shift: free(table) for shift, table in tables.items()}
                for name, tables in self.shift_settings.items()
            },
            **{name: value for name, value in parts.items() if value is not None},
        )


def builtin_names() -> list[str]:
    """Return the names of the built-in grids.

    >>> "office-alexnet" in builtin_names()
    True
    """
    return sorted(file.name[:-5] for file in _BUILTIN.iterdir() if file.name.endswith(".toml"))


def read_grid(name_or_file: str | Path) -> Grid:
    """Read a built-in grid by name, or a TOML file.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: There is no such name; or the file is not TOML, or has a wrong key or value.

    Example:
        >>> read_grid("office-alexnet").methods
        ('s+t', 'm', 'so')
    """
    text = str(name_or_file)
    if text in builtin_names():
        return _parse((_BUILTIN / f"{text}.toml").read_text(encoding="utf-8"), text, text)
    file = Path(text)
    if file.suffix != ".toml" and not file.is_file():
        near = get_close_matches(text, builtin_names(), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        known = ", ".join([*builtin_names(), COMPLEXITY])
        raise ValueError(f"there is no experiment {text!r}{hint} Known experiments: {known}; or give a TOML file")
    try:
        content = read_text(file)
    except (FileNotFoundError, IsADirectoryError):
        raise FileNotFoundError(f"{file}: there is no such file") from None
    except ValueError as error:
        raise ValueError(f"{file} is not TOML: {error}") from None
    return _parse(content, file.stem, str(file))


def _parse(text: str, name: str, where: str) -> Grid:
    try:
        content = parse_toml(text)
    except ValueError as error:
        raise ValueError(f"{where} is not TOML: {error}") from None
    try:
        for key, value in content.items():
            known = ["method" if one.name == _METHODS else one.name for one in fields(Grid) if one.name != _SHIFTS]
            refuse_unknown(key, known, "key")
            _check_kind(key, value)
        if "dataset" not in content:
            raise ValueError("'dataset' is missing")
        values: dict[str, Any] = {"name": name}
        for key, value in content.items():
            values[_METHODS if key == "method" else key] = tuple(value) if isinstance(value, list) else value
        values[_METHODS], values[_SHIFTS] = _method_tables(values.get(_METHODS, {}))
        return Grid(**values)
    except (ValueError, TypeError) as error:
        raise type(error)(f"{where}: {error}") from None


def _method_tables(tables: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Separate the file's settings of single methods into those for all shifts and those for single shifts."""
    everywhere, by_shift = {}, {}
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise ValueError(f'method."{name}" must be a table, got {table!r}')
        own = {key: value for key, value in table.items() if key != "shift"}
        if own or "shift" not in table:
            everywhere[name] = own
        if "shift" in table:
            by_shift[name] = table["shift"]
            if not (isinstance(table["shift"], dict) and all(isinstance(one, dict) for one in table["shift"].values())):
                raise ValueError(f'method."{name}".shift must hold a table per shift, e.g. "A-W" = {{ lr = 0.01 }}')
    return everywhere, by_shift


def _check_kind(key: str, value: Any) -> None:
    texts = ("name", "title", "dataset", "protocol", "backbone", "baseline", "published")
    if key in texts and not isinstance(value, str):
        raise ValueError(f"{key} must be a string, got {value!r}")
    if key in ("shifts", "methods", "figures") and not (
        isinstance(value, list) and all(isinstance(one, str) for one in value)
    ):
        example = {"shifts": "A-W", "methods": "so", "figures": "curves"}[key]
        raise ValueError(f'{key} must be a list of strings such as ["{example}"], got {value!r}')
    if key == "pool" and not all(isinstance(one, str) for one in (value if isinstance(value, list) else [value])):
        raise ValueError(f'pool must be a string such as "{INDUCTIVE}", or a list of them, got {value!r}')
    if key in ("settings", "vary", "space", "data", "method", "frozen", "frozen_space") and not isinstance(value, dict):
        raise ValueError(f"{key} must be a table, got {value!r}")


def _refuse_stand_in(name: Any) -> None:
    """Refuse the methods of `sohot fit` that stand for others: a grid names the methods it compares."""
    instead = {
        AUTO: "a grid names the methods it compares, and --select cv chooses their settings",
        PAPER: "in a grid, name 'so' and put the options that `sohot fit --method paper` prints under [method.so]",
    }
    if str(name).lower() in instead:
        raise ValueError(f"methods: {name!r} is for `sohot fit`; {instead[str(name).lower()]}")


def _unique(values: Iterable[Any], name: str, *, empty: bool = False) -> tuple[Any, ...]:
    found = tuple(dict.fromkeys(values))
    if not found and not empty:
        raise ValueError(f"{name} must name at least one")
    return found


def write_grid(grid: Grid, file: Path) -> None:
    """Write a grid as TOML that `read_grid` reads back."""
    content = {part.name: getattr(grid, part.name) for part in fields(grid) if part.name not in (_METHODS, _SHIFTS)}
    methods = {name: dict(table) for name, table in grid.method_settings.items()}
    for name, by_shift in grid.shift_settings.items():
        methods.setdefault(name, {})["shift"] = by_shift
    unsaid: tuple[Any, ...] = (None, (), {}, (SUPERVISED,))
    said = {name: value for name, value in {**content, "method": methods}.items() if value not in unsaid}
    write_toml(file, said, f"Repeat with: sohot experiment {file.name} --data ROOT")
