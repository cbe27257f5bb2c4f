"""Checks of numbers and names without torch: settings and the command line need them before any tensor exists."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

ESTIMATORS = ("plugin", "unbiased")


def check_order(order: int, name: str = "order") -> int:
    """Require one scatter order: an integer of at least 2 (centred data have no order 1)."""
    if isinstance(order, bool) or not isinstance(order, int):
        raise TypeError(f"{name} must be an integer, got {order!r}")
    if order < 2:
        raise ValueError(f"{name} must be at least 2 (the mean has its own term), got {order}")
    return order


def check_orders(orders: Iterable[int]) -> tuple[int, ...]:
    """Require one or more different orders, each at least 2, and return them as a tuple."""
    if isinstance(orders, (str, int)) or not isinstance(orders, (Sequence, set, frozenset)):
        raise TypeError(f"orders must be a sequence of integers such as (2, 3), got {orders!r}")
    checked = tuple(check_order(order, "each of orders") for order in orders)
    if not checked:
        raise ValueError("orders must name at least one order; for the means alone pass sigma1=0")
    if len(set(checked)) != len(checked):
        raise ValueError(f"orders must not repeat an order, got {checked}")
    return checked


def check_not_negative(value: float, name: str) -> float:
    """Require a finite number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number, got {value!r}")
    if not 0 <= value < float("inf"):
        raise ValueError(f"{name} must be a finite number of at least 0, got {value}")
    return float(value)


def check_positive(value: float, name: str) -> float:
    """Require a finite number above 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number, got {value!r}")
    if not 0 < value < float("inf"):
        raise ValueError(f"{name} must be a finite number above 0, got {value}")
    return value


def check_count(value: int, name: str, lowest: int = 1) -> int:
    """Require an integer of at least `lowest`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < lowest:
        raise ValueError(f"{name} must be an integer of at least {lowest}, got {value!r}")
    return value


def check_choice(value: str, choices: Sequence[str], name: str) -> str:
    """Require one of the choices."""
    if value not in choices:
        listed = ", ".join(map(repr, choices))
        raise ValueError(f"{name} must be one of {listed}, got {value!r}{nearest(value, choices)}")
    return value


def nearest(value: object, choices: Iterable[str]) -> str:
    """Suggest the choice that a misspelt value stands for, to end a sentence with; "" if none comes near.

    >>> nearest("meens", ["m", "means"])
    "; did you mean 'means'?"
    """
    near = get_close_matches(value.lower(), list(choices), n=1) if isinstance(value, str) else []
    return f"; did you mean {near[0]!r}?" if near else ""
