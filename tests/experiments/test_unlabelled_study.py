"""studies/unlabelled: its page shows what its scripts print, and what is known is not computed again."""

import sys
from importlib import import_module
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
SCRIPTS = ("rows", "tables", "study", "curves", "pools")


@pytest.fixture(scope="module")
def scripts():
    """The scripts of the study, which import each other by their short names."""
    before = set(sys.modules)
    sys.path.insert(0, str(ROOT / "studies" / "unlabelled"))
    try:
        yield SimpleNamespace(**{name: import_module(name) for name in SCRIPTS})
    finally:
        sys.path.remove(str(ROOT / "studies" / "unlabelled"))
        for name in {*SCRIPTS, "features", "tasks"} - before:
            sys.modules.pop(name, None)


def test_the_page_shows_what_the_scripts_print(scripts):
    tables = scripts.tables
    cells = tables.read([RESULTS / "unlabelled-cells.csv"])
    tables.add_chosen(cells, RESULTS / "unlabelled-chosen.csv")
    printed = {line for where in dict.fromkeys(key[:4] for key in cells) for line in tables.table(cells, *where)}
    printed |= {*scripts.pools.table(scripts.pools.read(RESULTS / "unlabelled-pools.csv"))}
    development = tables.read([RESULTS / "unlabelled-development.csv"])
    printed |= {*tables.rules(development, RESULTS / "unlabelled-development-chosen.csv")}
    shown, inside = [], False
    for line in (RESULTS / "unlabelled.md").read_text(encoding="utf-8").splitlines():
        inside = line.startswith("|") and (inside or line.startswith(("| | splits |", "| pool |", "| two passes |")))
        shown += [line] if inside else []
    assert len(shown) > 100
    assert [line for line in shown if line not in printed] == []


def test_a_row_as_chosen_counts_no_split_whose_other_way_is_missing(scripts, tmp_path):
    """Else splits would count only where one pass, which was measured more often, was chosen."""
    key = "pacs", "lite0", "transductive", 3
    one, two = (*key, "pseudo-labels"), (*key, "pseudo-labels, two passes")
    cells = {one: {("a-b", split): float(split) for split in (1, 2, 3)}, two: {("a-b", 1): 11.0}}
    file = tmp_path / "chosen.csv"
    for third, expected in (("both", {("a-b", 1): 11.0}), ("fixed", {("a-b", 1): 11.0, ("a-b", 3): 3.0})):
        lines = [f"pacs,transductive,3,a-b,{split},{way}" for split, way in ((1, "both"), (3, third))]
        file.write_text("\n".join(["data,protocol,shots,shift,split,chosen", *lines]), encoding="utf-8")
        found = dict(cells)
        scripts.tables.add_chosen(found, file)
        assert found[(*key, "pseudo-labels, as chosen")] == expected


def test_known_cells_and_unwanted_passes_are_left_out(scripts, tmp_path):
    study, root = scripts.study, tmp_path / "images"
    for domain, name in product(("photo", "cartoon"), ("cat", "dog")):
        (root / domain / name).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(root / domain / name / "one.png")
    rows = [row for row in scripts.rows.study("pacs") if row.phase == 9]

    def places(**left_out):
        planned, named = study.plan(rows, root, tmp_path / "out", "cpu", **left_out)
        return {study.place_of("pacs", cell, named[cell.key]) for cell in planned.cells}

    whole = places()
    assert len(whole) == 3 * 2 * 10  # rows, shifts, splits
    known = ("pacs", "lite0", "pseudo-labels, two passes", "transductive", "3", "photo-cartoon", "1")
    once = ("pacs", "transductive", "3", "cartoon-photo", "2")
    assert whole - places(known=[known]) == {known}
    assert {(place[0], *place[3:]) for place in whole - places(once=[once])} == {once}
    assert len(whole - places(once=[once])) == len(rows)


def test_earlier_lists_are_read_by_what_names_a_cell(scripts, tmp_path):
    known = scripts.study.read_known(RESULTS / "unlabelled-cells.csv")
    assert ("office31", "lite0", "pseudo-labels", "transductive", "3", "A-W", "1") in known
    assert len(known) == len((RESULTS / "unlabelled-cells.csv").read_text(encoding="utf-8").splitlines()) - 1
    file = tmp_path / "chosen.csv"
    file.write_text(
        "data,protocol,shots,shift,split,chosen\npacs,inductive,3,a-b,1,both\npacs,inductive,3,a-b,2,fixed\n"
    )
    assert ("pacs", "inductive", "3", "a-b", "2") in scripts.study.read_once(file)
    assert ("pacs", "inductive", "3", "a-b", "1") not in scripts.study.read_once(file)
