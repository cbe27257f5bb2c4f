"""Checks of the numbers that protocols take."""


def check_count(value: int, name: str, lowest: int, highest: int | None = None) -> int:
    """Require an integer in a range."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < lowest or (highest is not None and value > highest):
        bounds = f"at least {lowest}" if highest is None else f"in {lowest} … {highest}"
        raise ValueError(f"{name} must be {bounds}, got {value}")
    return value
