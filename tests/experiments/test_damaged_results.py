"""Results that are damaged or come from a stranger: a sentence for each, and what is intact is read."""

import json
import os
import warnings

import pytest
from experiment_work import make_cells, result_of

from sohot.experiments import Store

BAD, GOOD = make_cells(2)


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path) as opened:
        opened.plan([BAD, GOOD])
        for cell in (BAD, GOOD):
            opened.claim(cell)
            opened.finish(cell, result_of())
        opened.plan([BAD, GOOD])
    with Store(tmp_path) as opened:
        yield opened


def file_of(store):
    return store.folder / f"{BAD.key}.json"


def change(store, value, *path):
    """Change one value in the file of the bad cell."""
    content = json.loads(file_of(store).read_text())
    *outer, last = path
    inside = content
    for name in outer:
        inside = inside[name]
    inside[last] = value
    file_of(store).write_text(json.dumps(content))


def assert_only_the_good_is_read(store, sentence=""):
    with pytest.warns(UserWarning, match=rf"{BAD.key}\.json is damaged and does not count: .*{sentence}") as told:
        assert [record.key for record in store.records()] == [GOOD.key]
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is said once
        assert store.settled([BAD, GOOD]) == {GOOD.key: "done"}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "Expecting value"),
        ('{"cell": {', "Expecting property name"),
        ("[1]", "list indices"),
        ("7", "not subscriptable"),
        ("[" * 100_000, "recursion"),
        ("\0" * 100, "Expecting value"),
        ("NaN", "NaN is no JSON"),
        ("{}", "it has no 'cell'"),
        ('{"cell": {"shift": "A-W"}, "attempts": []}', "missing"),
    ],
)
def test_a_damaged_file_does_not_count_and_hides_no_other(store, content, sentence):
    file_of(store).write_text(content)
    assert_only_the_good_is_read(store, sentence)
    assert store.claim(BAD)  # it is computed again
    store.finish(BAD, result_of())
    assert [record.key for record in store.records()] == [BAD.key, GOOD.key]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("cell", "split"), "one"),
        (("cell",), []),
        (("attempts",), []),
        (("attempts",), [{}]),
        (("attempts", 0, "versions"), 7),
        (("attempts", 0, "host"), None),
        (("attempts", 0, "more"), 1),
        (("attempts", 0, "result"), {}),
        (("attempts", 0, "result", "chosen"), {"more": 1}),
    ],
)
def test_a_record_of_the_wrong_form_does_not_count(store, path, value):
    change(store, value, *path)
    assert_only_the_good_is_read(store)


@pytest.mark.parametrize("path", ["accuracy", "accuracy.micro", "accuracy.per_class", "zeta", "seconds", "steps"])
@pytest.mark.parametrize("value", ["text", [None], {"mug": "x"}, [[["x"]]], float("nan"), 10**400])
def test_a_result_of_the_wrong_types_does_not_count(store, path, value):
    change(store, value, "attempts", 0, "result", *path.split("."))
    assert_only_the_good_is_read(store)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "large"])
def test_only_a_regular_file_of_sane_size_is_read(store, kind):
    file = file_of(store)
    file.unlink()
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "device":
        file.symlink_to("/dev/zero")
    elif kind == "folder":
        file.mkdir()
    else:
        with open(file, "wb") as stream:
            stream.truncate(1 << 40)
    assert_only_the_good_is_read(store)


@pytest.mark.parametrize("content", ["{", '{"a": 1}', "[1]", "7"])
def test_a_damaged_plan_is_told(store, content):
    (store.folder / "plan.json").write_text(content)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert store.records() == []
    assert all("plan.json is damaged" in str(one.message) for one in told)
    store.plan([BAD, GOOD])
    assert len(store.records()) == 2


def test_a_plan_leads_nowhere_else(store, tmp_path):
    outside = tmp_path / "outside.json"
    file_of(store).rename(outside)
    (store.folder / "plan.json").write_text(json.dumps(["../outside", str(outside.with_suffix("")), GOOD.key]))
    assert [record.key for record in store.records()] == [GOOD.key]


def test_links_are_neither_read_nor_written_through(store, tmp_path):
    outside = tmp_path / "outside.json"
    file_of(store).rename(outside)
    before = outside.read_bytes()
    file_of(store).symlink_to(outside)
    assert_only_the_good_is_read(store, "is a link")
    (store.folder / f"{BAD.key}.claim").symlink_to(outside)
    assert store.claim(BAD)
    store.finish(BAD, result_of(steps=9))
    assert outside.read_bytes() == before
    assert [record.result.steps for record in store.records()] == [9, 1]
