"""The options of a run as the user gives them, on the command line, in a file or in Python: combined and checked."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from ..methods.options import flag
from ..methods.registry import method as find_method
from ..methods.registry import method_that_looks_at
from .auto import AUTO, read_asked
from .config import POOL_OPTIONS, RunConfig
from .description import CONFIG, DESCRIPTION, read_config
from .trust import refuse_code


def resolve(config: Path | None, given: dict[str, Any], trust: bool = False) -> tuple[RunConfig, set[str]]:
    """Combine the configuration of a resumed run, then the file, then the options given.

    Python files to import are the user's own word: on the command line or in a file outside a run's folder.

    Returns:
        The configuration, and the names of the options that were given.

    Raises:
        ValueError: An option is wrong, or has no effect because no method is named; the message says which.
    """
    from_file = {} if config is None else read_config(config)
    merged = {**from_file, **given}
    # The configuration in a run's folder may be a stranger's.
    own = given if config is None or (config.parent / DESCRIPTION).exists() else merged
    place, out = config, merged.get("out")
    stored = None if out is None or not merged.get("resume") else Path(out) / CONFIG
    if stored is not None and stored.is_file():
        merged, place = {**_asked_before(stored, merged), **merged}, stored
    if not trust and place is not None:
        refuse_code({name: value for name, value in merged.items() if name not in own}, place)
    resolved = RunConfig.from_values(merged)
    _require_method(merged)
    _require_pool(resolved)
    if stored is None or stored.is_file() or "target" in merged:  # else there is no run to resume
        resolved.require_places()
    return resolved, set(merged)


def _require_method(given: Collection[str]) -> None:
    """If no method is named, refuse options that the default method would silently ignore."""
    idle = [name for name in find_method(RunConfig.method).ignored() if name in given]
    if idle and "method" not in given:
        raise ValueError(
            f"the default method, {RunConfig.method}, ignores {', '.join(map(flag, idle))}: name one that "
            f"does not, such as --method {method_that_looks_at(idle[-1])}"
        )


def _require_pool(config: RunConfig) -> None:
    """Refuse options about unlabelled images where there are none."""
    from .pool_defaults import has_pool  # only now: it reads splits

    idle = [name for name in (*POOL_OPTIONS, "pool_views") if name in config.changed()]
    if idle and config.target is not None and not has_pool(config):
        raise ValueError(f"{flag(idle[0])} is about unlabelled images: give --unlabelled, too")


def _asked_before(stored: Path, merged: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a run to resume; if its method is to be chosen again, those the first choice began with."""
    before = read_config(stored)
    if str(merged.get("method")).lower() == AUTO and before.get("method") != AUTO:
        return read_asked(stored.parent) or before
    return before
