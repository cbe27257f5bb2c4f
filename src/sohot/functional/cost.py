"""What a scatter distance costs, explicit and by the kernel, so that the cheaper way can be taken."""

from math import comb

from .plain_checks import check_order


def unique_coefficients(num_features: int, order: int) -> int:
    """Count the different coefficients of a super-symmetric tensor with `order` modes of size `num_features`.

    >>> unique_coefficients(4096, 2)
    8390656
    >>> unique_coefficients(4096, 3)
    11461636096
    """
    return comb(num_features + order - 1, order)


def explicit_cost(num_source: int, num_target: int, num_features: int, order: int) -> int:
    """Multiplications of the explicit distance by the paper's formula, (N + N* + 1)·D, D the unique coefficients."""
    return (num_source + num_target + 1) * unique_coefficients(num_features, order)


def gram_cost(num_source: int, num_target: int, num_features: int) -> int:
    """Multiplications of the kernel form by the paper's formula, (N² + N·N* + N*²)·d, whatever the order.

    >>> round(explicit_cost(20, 3, 4096, 2) / gram_cost(20, 3, 4096), 1)  # the text says 52
    104.8
    >>> round(explicit_cost(20, 3, 4096, 3) / gram_cost(20, 3, 4096))  # the text says 143 000
    143194
    """
    return (num_source**2 + num_source * num_target + num_target**2) * num_features


def explicit_is_cheaper(num_source: int, num_target: int, num_features: int, order: int) -> bool:
    """Compare what the two ways really compute: all d^r coefficients of a tensor against all (N + N*)² of a Gram.

    The matrix products decide at order 2. Above it the explicit way first has to form the products of each row with
    itself, which run at the speed of memory: its work counts four times there. The Gram form has many small steps
    besides, worth some five million multiplications (`make bench` shows both ways side by side).
    """
    check_order(order)
    rows = num_source + num_target
    explicit: int = (rows + 1) * num_features**order * (1 if order == 2 else 4)
    gram: int = rows * rows * (num_features + 2 * order) + 5_000_000
    return explicit < gram
