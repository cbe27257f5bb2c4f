"""A results file that is damaged or comes from a stranger: a sentence, and what is intact is shown."""

import json
import os
import sqlite3
import struct
import warnings

import pytest
from experiment_work import make_cells, result_of

from sohot.experiments.store import Store


@pytest.fixture
def file(tmp_path):
    return tmp_path / "results.sqlite"


@pytest.fixture
def store(file):
    with Store(file) as opened:
        yield opened


def change(file, statement, values=()):
    """Do to a results file what sohot never does."""
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA ignore_check_constraints = ON")
    connection.execute(statement, values)
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("column", "content", "sentence"),
    [
        ("result", "{}", "it has no 'accuracy'"),
        ("result", '{"accuracy": {"rows": 2}}', "the accuracy has no 'interval95'"),
        ("result", "half of {", "Expecting value"),
        ("result", "[1]", "list"),
        ("result", "[" * 100_000, "recursion"),
        ("result", None, "NoneType is no JSON"),
        ("result", b"\xff", "bytes is no JSON"),
        ("cell", '{"shift": "A-W"}', "missing"),
        ("cell", '{"shift": "A-W", "split": "one", "dataset": "a", "method": "so", "backbone": "b"}', "split is 'one'"),
        ("versions", "7", "int"),
        ("status", "begun", "its status is 'begun'"),
        ("host", b"x", "host is b'x', not str"),
    ],
)
def test_a_damaged_attempt_does_not_count_and_hides_no_other(store, file, column, content, sentence):
    bad, good = make_cells(2)
    for cell in (bad, good):
        store.claim(cell)
        store.finish(cell, result_of())
    change(file, f"UPDATE attempts SET {column} = ? WHERE key = ?", (content, bad.key))
    told = rf"results\.sqlite: the record of cell ({bad.key}|A-W split 1 so) is damaged .*{sentence}"
    with pytest.warns(UserWarning, match=told):
        assert [record.key for record in store.records()] == [good.key]
    assert store.settled() == {good.key: "done"}
    assert store.claim(bad)  # it is computed again
    store.finish(bad, result_of())
    assert {record.key for record in store.records()} == {good.key, bad.key}


def test_many_damaged_attempts_are_counted(store, file):
    for cell in make_cells(25):
        store.fail(cell, "no reason")
    change(file, "UPDATE attempts SET versions = '{'")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert store.records() == []
    assert len(told) == 11
    assert "results.sqlite: 15 more records are damaged" in str(told[-1].message)


@pytest.mark.parametrize("path", ["accuracy", "accuracy.micro", "accuracy.per_class", "zeta", "seconds", "steps"])
@pytest.mark.parametrize("value", ["text", [None], {"mug": "x"}, [[["x"]]], float("nan"), 10**400])
def test_a_result_of_the_wrong_types_does_not_count(store, file, path, value):
    cell = make_cells(1)[0]
    store.claim(cell)
    store.finish(cell, result_of())
    *outer, last = ["result", *path.split(".")]
    content = {"result": result_of().as_json()}
    place = content
    for name in outer:
        place = place[name]
    place[last] = value
    change(file, "UPDATE attempts SET result = ?", (json.dumps(content["result"]),))
    with pytest.warns(UserWarning, match="the record of cell A-W split 1 so is damaged"):
        assert store.records() == []


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"


@pytest.mark.parametrize(
    "statements",
    [
        ("DROP TABLE plan", f"CREATE VIEW plan AS SELECT i AS place, i AS key FROM ({ENDLESS})"),
        ("DROP TABLE plan", f"CREATE VIEW PLAN AS SELECT i AS place, i AS key FROM ({ENDLESS})"),
        (f"CREATE TRIGGER slow AFTER INSERT ON plan BEGIN DELETE FROM plan WHERE key IN ({ENDLESS}); END",),
        ("ALTER TABLE plan ADD COLUMN more AS (zeroblob(1000000000))",),
        ("CREATE INDEX more ON plan (zeroblob(length(key)))",),
        ("DROP TABLE plan",),
    ],
)
def test_tables_that_are_not_ours_are_refused(file, statements):
    Store(file).close()
    for statement in statements:
        change(file, statement)
    with pytest.raises(ValueError, match=r"results\.sqlite is not a results file, or was changed"):
        Store(file)


def test_tables_beside_ours_do_no_harm(file):
    Store(file).close()
    change(file, f"CREATE VIEW endless AS {ENDLESS}")
    with Store(file) as store:
        assert store.claim(make_cells(1)[0])


def test_pages_that_refer_to_each_other_end_in_a_sentence(store, file):
    """Every page of a tree names the next one hundreds of times: a small file with endless rows."""
    store.close()
    connection = sqlite3.connect(file)
    (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'plan'").fetchone()
    (size,), (count,) = (
        connection.execute("PRAGMA page_size").fetchone(),
        connection.execute("PRAGMA page_count").fetchone(),
    )
    connection.close()
    pages = bytearray(file.read_bytes())
    leaf = pages[(root - 1) * size : root * size]
    levels = [root, *range(count + 1, count + 9)]  # and the leaf after them
    pages += bytes(size * len(levels))
    for page, child in zip(levels, [*levels[1:], count + len(levels)], strict=True):
        cells = [struct.pack(">IB", child, 1)] * 400
        content = b"".join(cells)
        start = size - len(content)
        head = struct.pack(">BHHHBI", 5, 0, len(cells), start, 0, child)
        offsets = b"".join(struct.pack(">H", start + 5 * number) for number in range(len(cells)))
        body = (head + offsets).ljust(start, b"\0") + content
        pages[(page - 1) * size : page * size] = body
    pages[-size:] = leaf_of(leaf, size)
    pages[28:32] = struct.pack(">I", len(pages) // size)
    file.write_bytes(pages)
    with Store(file) as opened, pytest.raises(ValueError, match="far more than its size allows"):
        opened.records()


def test_a_pipe_in_place_of_the_file_is_refused(file):
    os.mkfifo(file)
    with pytest.raises(ValueError, match="not even a regular file"):
        Store(file)


def test_another_database_is_refused_and_left_as_it_was(file):
    change(file, "CREATE TABLE diary (day TEXT)")
    before = file.read_bytes()
    with pytest.raises(ValueError, match="holds something else"):
        Store(file)
    assert file.read_bytes() == before


def leaf_of(empty, size):
    """A leaf page of a table with one row: rowid 1, and the values NULL and ''."""
    cell = bytes([3, 1, 3, 0, 13])
    return (struct.pack(">BHHHB", empty[0], 0, 1, size - len(cell), 0) + struct.pack(">H", size - len(cell))).ljust(
        size - len(cell), b"\0"
    ) + cell
