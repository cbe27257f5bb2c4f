"""Escapes of control characters can be undone, whatever a name holds."""

from hypothesis import given
from hypothesis import strategies as st

from sohot._escapes import escaped, unescaped, visible

names = st.text(st.one_of(st.sampled_from("\\u005c1b\x1b\n\t"), st.characters()))


@given(names)
def test_every_name_comes_back(name: str) -> None:
    assert unescaped(escaped(name)) == name


@given(names)
def test_nothing_unseen_is_left(name: str) -> None:
    text = escaped(name)
    assert visible(text) == text
    assert not {"\n", "\t", "\r"} & set(text)
    text.encode()


@given(st.text(st.characters(categories=["L", "N", "P", "Zs"], exclude_characters="\\")))
def test_plain_names_stay_as_they_are(name: str) -> None:
    assert escaped(name) == name


def test_backslashes_of_paths_stay() -> None:
    assert escaped(r"C:\users\x") == r"C:\users\x"
    assert escaped("a\\u001b.png") == r"a\u005cu001b.png"
