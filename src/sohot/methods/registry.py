"""Methods by name."""

from collections.abc import Sequence
from dataclasses import replace

from ..functional.plain_checks import check_orders, nearest
from .records import ORDER_NAMES, OTHER_RECORDS, POOL_RECORDS, RECORDS, Method, scatter_method

__all__ = ["METHOD_NAMES", "OTHER_NAMES", "POOL_NAMES", "Method", "default_loss_weight", "method", "methods_help"]

METHOD_NAMES = ("s", "t", "s+t", "m", "so", "to", "fo", "so+zeta", "to+zeta", "so+to+zeta", "so+to+fo+zeta")
"""The methods of the paper's tables. Every other sum of so, to and fo, with or without zeta, is known too."""

OTHER_NAMES = tuple(record.name for record in OTHER_RECORDS)
"""Other methods to compare with."""

POOL_NAMES = tuple(record.name for record in POOL_RECORDS)
"""Methods that need unlabelled target images."""


def method(name: str, orders: Sequence[int] | None = None, *, besides: Sequence[str] = ()) -> Method:
    """Look up a method.

    Args:
        name: One of `METHOD_NAMES`, `OTHER_NAMES` and `POOL_NAMES`, or another sum of `so`, `to` and `fo`, with or
            without `zeta`; docs/methods.md describes them.
        orders: Orders to align instead of those in the name, for methods that align scatters.
        besides: Other names that the caller knows, for the message about an unknown one.

    Returns:
        The method.

    Example:
        >>> method("so+to+zeta").orders
        (2, 3)
        >>> method("so+zeta", orders=(2, 5)).orders
        (2, 5)
    """
    if not isinstance(name, str):
        raise TypeError(f"method must be a name such as 'so', got {name!r}")
    terms = name.lower().replace(" ", "").replace("ζ", "zeta").split("+")
    if sorted(terms) == ["s", "t"]:
        terms = ["s", "t"]
    record = RECORDS.get("+".join(terms)) or _sum_of_orders(terms)
    if record is None:
        known = (*METHOD_NAMES, *OTHER_NAMES, *POOL_NAMES, *besides)
        raise ValueError(
            f"method must be one of {', '.join(known)} or another sum of so, to, fo and zeta, got {name!r}"
            f"{nearest(name, known)}"
        )
    if orders is None:
        return record
    orders = check_orders(orders)
    if not record.aligns:
        raise ValueError(f"orders={orders} needs a method that aligns scatters, such as 'so'; {record.name!r} does not")
    return replace(record, orders=orders)


def _sum_of_orders(terms: list[str]) -> Method | None:
    """Read a sum such as so+fo+zeta; None if it is not one."""
    named = [term for term in terms if term in ORDER_NAMES]
    others = [term for term in terms if term not in ORDER_NAMES]
    if not named or len(set(named)) != len(named) or others not in ([], ["zeta"]):
        return None
    return scatter_method(sorted(named, key=ORDER_NAMES.__getitem__), zeta=bool(others))


def default_loss_weight(name: str) -> float:
    """Return the weight of a method's loss, from its paper if the paper gives one.

    >>> default_loss_weight("dage")
    1.0
    """
    return method(name).loss_weight


def method_that_looks_at(option: str) -> str:
    """Name a method that uses an option.

    >>> method_that_looks_at("sigma1"), method_that_looks_at("temperature")
    ('so', 'supcon')
    """
    return next(name for name in ("so", "so+zeta", *OTHER_NAMES) if option in method(name).looks_at)


def methods_help() -> str:
    """Describe all methods in one paragraph, as `--help` prints it."""
    listed = ("s", "t", "s+t", "m", "so", "to", "fo")
    plain = "; ".join(f"{name}: {method(name).label}" for name in listed)
    other = "; ".join(f"{record.name}: {record.label}" for record in OTHER_RECORDS)
    return (
        "What is aligned while both domains train: nothing (s+t), class means (means), whole domains (m) or class "
        "scatters (so); auto lets held-out target labels choose. "
        f"All methods: {plain}; sums of orders (so+to); +zeta learns a weight for each class. Other methods: {other}. "
        f"With unlabelled images, s+t and the --pool-loss of that name: {', '.join(POOL_NAMES)}. "
        "paper: so with the paper's published settings (its sigmas suit raw features of norm about 40, such as fc7 of "
        "AlexNet). auto: the best of a short list, by cross-validation on the labelled target images."
    )
