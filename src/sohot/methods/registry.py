"""The methods by name: which domains train the classifier, and what is aligned."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..functional.plain_checks import check_orders

ORDER_NAMES = {"so": 2, "to": 3, "fo": 4}
"""Second, third and fourth order."""

METHOD_NAMES = ("s", "t", "s+t", "m", "so", "to", "fo", "so+zeta", "to+zeta", "so+to+zeta", "so+to+fo+zeta")
"""The methods of the paper's tables. Every other sum of so, to and fo, with or without zeta, is known too."""

RIVAL_NAMES = ("means", "variance", "ccsa", "dsne", "dage", "supcon", "l2-sp", "lp-ft")
"""Methods to compare with: parts of the alignment by themselves, losses of other papers, ways of careful training."""


@dataclass(frozen=True)
class Method:
    """What a method trains on and what it aligns.

    Attributes:
        name: Its name in one spelling: lower case, orders ascending, zeta last.
        uses_source: Whether the classifier learns from the source.
        uses_target: Whether the classifier learns from the target.
        orders: Orders of the scatters that are aligned; empty without alignment.
        scope: "class" for one alignment per class, "marginal" for one of whole domains, None without alignment.
        class_weights: "learned" where ζ is learned, else None.
        rival: Name of what it does in place of aligning scatters, one of `RIVAL_NAMES`, else None.
    """

    name: str
    uses_source: bool
    uses_target: bool
    orders: tuple[int, ...] = ()
    scope: str | None = None
    class_weights: str | None = None
    rival: str | None = None

    @property
    def aligns(self) -> bool:
        """Whether scatters are aligned."""
        return self.scope is not None

    @property
    def mean_scope(self) -> str | None:
        """Whose means are drawn together: the scope of the scatters, and "class" for `means`, which aligns no more."""
        return "class" if self.rival == "means" else self.scope


_PLAIN = {
    "s": Method("s", uses_source=True, uses_target=False),
    "t": Method("t", uses_source=False, uses_target=True),
    "s+t": Method("s+t", uses_source=True, uses_target=True),
    "m": Method("m", uses_source=True, uses_target=True, orders=(2,), scope="marginal"),
    **{name: Method(name, uses_source=True, uses_target=True, rival=name) for name in RIVAL_NAMES},
}


def method(name: str, orders: Sequence[int] | None = None) -> Method:
    """Look up a method.

    Args:
        name: `s` (source alone), `t` (target alone), `s+t` (both, no alignment), `m` (both, whole domains aligned at
            second order), or a sum of `so`, `to` and `fo` (class scatters of order 2, 3 and 4), with `+zeta` for
            learned class weights; or `means` (class means alone, which is the default of training on images). To
            compare with: `variance` (the spread of classes penalised, nothing aligned), `ccsa`, `dsne`, `dage`,
            `supcon` (see `sohot.losses`), `l2-sp` (weights held at where they started), `lp-ft` (first the
            classifier alone, then all layers).
        orders: Orders to align in place of those in the name, for methods that align.

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
    found = _PLAIN.get("+".join(terms)) or _sum_of_orders(terms)
    if found is None:
        raise ValueError(
            f"method must be one of {', '.join((*METHOD_NAMES, *RIVAL_NAMES))} or another sum of so, to, fo and zeta, "
            f"got {name!r}"
        )
    if orders is None:
        return found
    if not found.aligns:
        raise ValueError(
            f"orders={tuple(orders)} needs a method that aligns scatters, such as 'so', and {found.name!r} does not"
        )
    return replace(found, orders=check_orders(orders))


def _sum_of_orders(terms: list[str]) -> Method | None:
    """Read a sum such as so+fo+zeta; None if it is not one."""
    named = [term for term in terms if term in ORDER_NAMES]
    others = [term for term in terms if term not in ORDER_NAMES]
    if not named or len(set(named)) != len(named) or others not in ([], ["zeta"]):
        return None
    named.sort(key=ORDER_NAMES.__getitem__)
    orders = tuple(ORDER_NAMES[term] for term in named)
    weights = "learned" if others else None
    return Method("+".join([*named, *others]), True, True, orders=orders, scope="class", class_weights=weights)
