import pytest

from sohot.functional import explicit_cost, gram_cost, unique_coefficients
from sohot.functional.distance import explicit_is_cheaper


def test_counts_of_the_paper() -> None:
    assert unique_coefficients(4096, 2) == 4096 * 4097 // 2
    assert explicit_cost(20, 3, 4096, 2) == 24 * 4096 * 4097 // 2
    assert gram_cost(20, 3, 4096) == (400 + 60 + 9) * 4096


@pytest.mark.parametrize(
    ("rows", "features", "order", "explicit"),
    [
        (23, 4096, 2, False),  # the paper's case
        (23, 4096, 3, False),
        (5000, 16, 2, True),  # many rows, few features
        (20000, 4, 4, True),
        (10, 4, 4, True),  # next to nothing either way
        (300, 30, 4, False),
    ],
)
def test_the_cheaper_way_in_clear_cases(rows: int, features: int, order: int, explicit: bool) -> None:
    assert explicit_is_cheaper(rows // 2, rows - rows // 2, features, order) is explicit
