import random

from hypothesis import given
from hypothesis import strategies as st

from sohot.data.names import enumerate_words, natural_key, printable

file_names = st.text(st.characters(codec=None, exclude_characters="/\0"), min_size=1, max_size=20)


@given(st.lists(file_names, unique=True), st.randoms(use_true_random=False))
def test_the_order_does_not_depend_on_how_names_were_found(names: list[str], shuffler: random.Random) -> None:
    ordered = sorted(names, key=natural_key)
    shuffler.shuffle(names)
    assert sorted(names, key=natural_key) == ordered


@given(st.lists(st.integers(0, 10**9)))
def test_numbers_sort_by_value(numbers: list[int]) -> None:
    names = sorted((f"frame_{number}.jpg" for number in numbers), key=natural_key)
    assert names == [f"frame_{number}.jpg" for number in sorted(numbers)]


@given(st.binary(max_size=30))
def test_any_bytes_can_be_printed(raw: bytes) -> None:
    spelled = printable(raw.decode("utf-8", "surrogateescape"))
    assert printable(spelled) == spelled
    spelled.encode("utf-8")


@given(st.text())
def test_any_text_can_be_printed(text: str) -> None:
    printable(text).encode("utf-8")
    printable(text + "\ud800").encode("utf-8")


def test_enumerations() -> None:
    assert enumerate_words(["a", "b"]) == "a, b"
    assert enumerate_words(map(str, range(30)), limit=1) == "0 and 29 more"
