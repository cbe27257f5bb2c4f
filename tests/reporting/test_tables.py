import csv
import io
import json
import os
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from reporting.made_records import make_grid, make_record, make_records, only

from sohot._escapes import escaped
from sohot.reporting.tables import (
    Document,
    TextTable,
    csv_table,
    latex_table,
    markdown_table,
    result_table,
    result_tables,
    text_table,
    to_latex,
    to_markdown,
    to_text,
    write_tables,
)

GRID = make_grid()
RECORDS = make_records(GRID)
NASTY = "<script>alert('1')</script> | a & 100 % \\ _x_ $y$ #z ~ ^ {w}\nnext \x1b[31m"


def as_json(*args, **options):
    """The table as its JSON file holds it."""
    return result_table(*args, **options).as_json()


def changed(record, **cell):
    """A record of a cell that is another in some parts."""
    return replace(record, cell=replace(record.cell, **cell))


def row(table, method: str):
    return next(one for one in table["rows"] if one["method"] == method)


def test_cells_are_mean_and_population_std_over_splits_and_the_average_is_that_of_the_shifts() -> None:
    table = as_json(RECORDS, GRID)
    for one in table["rows"]:
        means = []
        for shift in GRID.shifts:
            values = [100 * r.result.accuracy.micro for r in only(RECORDS, method=one["method"], shift=shift)]
            cell = one["cells"][shift]
            assert (cell["mean"], cell["std"]) == pytest.approx((np.mean(values), np.std(values)))
            assert cell["sample_std"] == pytest.approx(np.std(values, ddof=1))
            assert (cell["count"], cell["expected"], cell["failed"]) == (3, 3, 0)
            means.append(np.mean(values))
        assert one["average"]["mean"] == pytest.approx(np.mean(means))


POOLED = replace(GRID, shifts=("A-W", "W-D"), pool=("supervised", "transductive", "inductive"))
OF_POOLS = [record for one in POOLED.by_pool() for record in make_records(one)]


def test_pools_never_share_a_table() -> None:
    tables = {table.pool: table.as_json() for table in result_tables(OF_POOLS, POOLED)}
    assert list(tables) == list(POOLED.pool)
    for one in POOLED.by_pool():
        (pool,) = one.pool
        assert tables[pool] == as_json(make_records(one), one)  # the records of others change nothing
        assert {len(cell["splits"]) for cell in row(tables[pool], "so")["cells"].values()} == {3}
    assert len({row(table, "so")["average"]["mean"] for table in tables.values()}) == 3
    with pytest.raises(ValueError, match="the pools supervised, transductive, inductive are not comparable"):
        result_table(OF_POOLS, POOLED)


def test_a_table_says_what_its_unlabelled_images_are() -> None:
    supervised, transductive, inductive = (text_table(OF_POOLS, one) for one in POOLED.by_pool())
    assert supervised.startswith("Office-31 (supervised: no unlabelled target images)\n")
    assert transductive.startswith(
        "Office-31 (transductive: tested on the unlabelled target images that training sees)"
    )
    assert inductive.startswith("Office-31 (inductive: ")
    assert "\nAccuracy on the target in per cent" in supervised
    assert "\nTransductive accuracy on the target in per cent" in transductive
    assert "\nInductive accuracy on the target in per cent" in inductive
    assert "Labels of test images choose nothing." in transductive
    assert "published, AlexNet" in supervised
    assert "ublished" not in transductive + inductive  # they were obtained without a pool
    assert text_table(OF_POOLS, POOLED) == "\n\n\n".join([supervised, transductive, inductive])
    assert r"\caption{Office-31 (transductive: " in latex_table(OF_POOLS, POOLED)
    assert {line["pool"] for line in csv.DictReader(io.StringIO(csv_table(OF_POOLS, POOLED)))} == {*POOLED.pool}


def test_pools_have_files_of_their_own(tmp_path: Path) -> None:
    one = write_tables(OF_POOLS, POOLED.by_pool()[1], tmp_path)
    assert {file.stem for file in one} == {"table"}
    several = write_tables(OF_POOLS, POOLED, tmp_path)
    assert sorted(several) == sorted(tmp_path.iterdir())  # none of the earlier grid is left
    assert {file.stem for file in several} == {"table-supervised", "table-transductive", "table-inductive"}
    assert json.loads((tmp_path / "table-inductive.json").read_bytes())["pool"] == "inductive"


def test_the_table_fits_into_json_and_does_not_depend_on_the_order_of_records() -> None:
    table = as_json(RECORDS, GRID)
    assert json.loads(json.dumps(table, allow_nan=False)) == table
    shuffled = random.Random(0).sample(RECORDS, len(RECORDS))
    assert as_json(iter(shuffled), GRID) == table
    assert text_table(shuffled, GRID) == text_table(RECORDS, GRID)


def test_macro_accuracy_on_demand() -> None:
    macro = row(as_json(RECORDS, GRID, accuracy="macro"), "so")["cells"]["A-W"]["splits"]["1"]
    assert macro == pytest.approx(100 * only(RECORDS, method="so", shift="A-W", split=1)[0].result.accuracy.macro)
    assert "share of test images per class, averaged over the classes" in text_table(RECORDS, GRID, accuracy="macro")
    with pytest.raises(ValueError, match="accuracy must be one of 'micro', 'macro', got 'best'"):
        as_json(RECORDS, GRID, accuracy="best")


def test_only_records_of_the_grid_count() -> None:
    small = replace(GRID, shifts=("A-W",), splits=(1, 2), methods=("s+t", "so"))
    table = as_json(RECORDS, small)
    assert [one["method"] for one in table["rows"]] == ["s+t", "so"]
    assert list(row(table, "so")["cells"]["A-W"]["splits"]) == ["1", "2"]


def test_of_two_attempts_the_later_counts() -> None:
    first = make_record(micro=0.1)
    second = replace(make_record(micro=0.9), finished="2026-01-02T00:00:00+00:00")
    failed = replace(make_record(error="no memory"), finished="2025-01-01T00:00:00+00:00")
    cell = row(as_json([second, first, failed], GRID), "so")["cells"]["A-W"]
    assert (cell["mean"], cell["count"], cell["failed"]) == (90.0, 1, 0)


def test_differences_are_to_the_baseline_of_the_same_backbone() -> None:
    other = make_records(replace(GRID, backbone="vgg16", methods=("so",)))
    table = as_json([*RECORDS, *other], GRID)
    assert {(one["method"], one["backbone"]) for one in table["differences"]} == {
        ("m", "lite0"),
        ("so", "lite0"),
        ("so+zeta", "lite0"),
    }
    difference = next(one for one in table["differences"] if one["method"] == "so")
    ours, theirs = (row(table, name)["average"]["mean"] for name in ("so", "s+t"))
    assert difference["average"]["mean"] == pytest.approx(ours - theirs, abs=1e-6)
    assert (difference["average"]["pairs"], difference["pairs"]["pairs"]) == (3, 18)
    assert difference["cells"]["A-W"]["pairs"] == 3


def test_the_text_prints_as_the_paper_does_and_names_the_backbones() -> None:
    lines = text_table(RECORDS, GRID).splitlines()
    assert lines[2].split() == ["method", "backbone", *GRID.shifts, "average"]
    cell = row(as_json(RECORDS, GRID), "so")["cells"]["A-W"]
    assert f"{cell['mean']:.1f} ± {cell['std']:.1f}" in next(line for line in lines if line.startswith("so "))
    published = next(line for line in lines if line.startswith("So "))
    assert "published, AlexNet" in published
    assert "84.5 ± 1.7" in published
    assert "82.67 (" in published
    text = "\n".join(lines)
    assert "recomputed from the published shifts; printed as 82.68" in text
    assert "average over 3 shifts only" in text
    assert "Published rows use AlexNet, ours lite0: different backbones, not comparable." in text
    assert "mean of 3 splits" in text
    assert "settings were fixed before this run, in the grid. Test images choose nothing." in text


def test_with_the_same_backbone_nothing_warns() -> None:
    grid = replace(GRID, backbone="alexnet")
    assert "not comparable" not in text_table(make_records(grid), grid)
    assert "not comparable" in text_table(make_records(grid), replace(grid, published="office-rectified"))


def test_a_part_of_the_shifts_gets_the_average_over_that_part() -> None:
    table = as_json(RECORDS, replace(GRID, shifts=("A-W", "W-D")))
    averages = {one["label"]: one["average"] for one in table["published"]}
    assert averages["So"]["mean"] == pytest.approx((84.5 + 97.5) / 2)
    assert averages["So"]["printed"] is None
    assert averages["M"]["mean"] == pytest.approx((82.6 + 95.9) / 2)
    assert averages["DeCAF6 S+T"] is None
    assert "average" not in text_table(RECORDS, replace(GRID, shifts=("A-W",), published=None))


def test_what_is_missing_or_failed_is_said() -> None:
    records = [one for one in RECORDS if not (one.cell.method == "so" and one.cell.shift == "A-W")]
    records += [make_record(split=1), make_record(split=3, error="RuntimeError: no | memory")]
    text = text_table(records, GRID)
    assert "1 of 3 splits, 1 failed." in text
    assert "Failed: so, A-W, split 3 (RuntimeError: no | memory)." in text
    assert "average over the finished splits" in text


def test_without_records_the_table_is_there_and_empty() -> None:
    text = text_table([], GRID)
    assert "0 of 3 splits" in text
    assert "Difference" not in text
    assert all(one["average"]["mean"] is None for one in as_json([], GRID)["rows"])


def test_one_split_has_neither_spread_nor_interval() -> None:
    grid = replace(GRID, splits=(1,), published=None)
    text = text_table(RECORDS, grid)
    assert "±" not in text
    assert "mean of 1 split" in text


def test_a_varied_setting_gets_rows_of_its_own_and_s_t_one() -> None:
    grid = replace(GRID, shifts=("A-W",), methods=("s+t", "so"), vary={"sigma1": [0.01, 0.1, 1.0]}, published=None)
    records = [  # a cell leaves out what is the default
        changed(one, settings={}) if one.cell.settings == {"sigma1": 0.1} else one for one in make_records(grid)
    ]
    table = as_json(records, grid)
    assert [(one["method"], one["values"]["sigma1"]) for one in table["rows"]] == [
        ("s+t", None),
        ("so", 0.01),
        ("so", 0.1),
        ("so", 1.0),
    ]
    assert [one["values"]["sigma1"] for one in table["differences"]] == [0.01, 0.1, 1.0]
    assert "sigma1" in text_table(records, grid).splitlines()[2]


def test_with_varied_shots_each_number_has_its_own_baseline() -> None:
    grid = replace(
        GRID,
        dataset="rgbd-caltech",
        shifts=("depth-caltech",),
        methods=("s+t", "so"),
        vary={"target_shots": [3, 5]},
        published="rgbd-shots",
    )
    records = [  # 3 is the protocol's own number
        changed(one, draw={}) if one.cell.draw == {"target_shots": 3} else one for one in make_records(grid)
    ]
    table = as_json(records, grid)
    assert [one["values"]["target_shots"] for one in table["rows"]] == [3, 5, 3, 5]
    means = {
        (one["method"], one["values"]["target_shots"]): one["cells"]["depth-caltech"]["mean"] for one in table["rows"]
    }
    for one in table["differences"]:
        shots = one["values"]["target_shots"]
        gain = means["so", shots] - means["s+t", shots]
        assert one["cells"]["depth-caltech"]["mean"] == pytest.approx(gain, abs=1e-6)
    assert "Published gain of So over S+T (AlexNet), target_shots = 3: +1.24." in text_table(records, grid)


def test_csv_holds_the_same_numbers_as_json() -> None:
    lines = list(csv.DictReader(io.StringIO(csv_table(RECORDS, GRID))))
    table = as_json(RECORDS, GRID)
    ours = [line for line in lines if line["origin"] == "ours"]
    assert len(ours) == len(table["rows"]) * (len(GRID.shifts) + 1)
    for line in ours:
        one = row(table, line["method"])
        cell = one["average"] if line["shift"] == "average" else one["cells"][line["shift"]]
        assert float(line["mean"]) == cell["mean"]
        assert (line["difference_mean"] == "") == (line["method"] == "s+t")
    assert {line["backbone"] for line in lines if line["origin"] == "published"} == {"alexnet", "own"}


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_no_name_in_csv_is_a_formula_to_a_spreadsheet_and_numbers_stay_numbers(start: str) -> None:
    backbone = f"{start}cmd|calc!A1.py:net"
    records = [changed(one, backbone=backbone) for one in make_records(replace(GRID, shifts=("A-W",)))]
    lines = list(csv.DictReader(io.StringIO(csv_table(records, replace(GRID, shifts=("A-W",))), newline="")))
    ours = [line for line in lines if line["origin"] == "ours"]
    assert {line["backbone"] for line in ours} == {f"'{backbone}" if start in "=+-@" else escaped(backbone)}
    assert all(float(line["mean"]) > 0 for line in ours)
    assert any(float(line["difference_low"]) < 0 for line in ours if line["difference_low"])


def test_names_are_shown_and_not_obeyed() -> None:
    document = Document(NASTY, [TextTable(NASTY, ["name", NASTY], [[NASTY, "1"]])], [NASTY])
    text, markdown, latex = to_text(document), to_markdown(document), to_latex(document)
    assert "\x1b" not in text + markdown + latex
    assert "<script>" in text
    assert "<" not in markdown
    rows = [line for line in markdown.splitlines() if line.startswith("|")]
    assert all(line.replace("\\|", "").count("|") == 3 for line in rows)
    for command in ("\\&", "\\%", "\\textbackslash{}", "\\_", "\\$", "\\#", "\\textasciitilde{}", "\\{"):
        assert command in latex
    body = [line for line in latex.splitlines() if line.endswith("\\\\")]
    assert all(line.replace("\\&", "").count("&") == 1 for line in body)


def test_columns_line_up_with_wide_letters() -> None:
    from rich.cells import cell_len

    lines = to_text(Document("t", [TextTable("", ["name", "n"], [["日本", "1"], ["a", "22"]])])).splitlines()[2:]
    assert len({cell_len(line) for line in lines}) == 1


def test_latex_has_the_rules_of_booktabs_and_ends_what_it_begins() -> None:
    text = latex_table(RECORDS, GRID)
    assert text.count("\\begin{table}") == text.count("\\end{table}") == 2
    assert text.count("\\toprule") == text.count("\\bottomrule") == 2
    assert text.count("\\begin{tabular}{llrrrrrrr}") == 1


def test_files_are_written_whole_and_agree(tmp_path: Path) -> None:
    files = write_tables(RECORDS, GRID, tmp_path / "new")
    assert sorted(file.name for file in files) == sorted(os.listdir(tmp_path / "new"))
    assert {file.suffix for file in files} == {".txt", ".md", ".tex", ".csv", ".json"}
    read = {file.suffix: file.read_text(encoding="utf-8") for file in files}
    assert json.loads(read[".json"]) == as_json(RECORDS, GRID)
    assert read[".txt"] == text_table(RECORDS, GRID) + "\n"
    assert read[".md"] == markdown_table(RECORDS, GRID) + "\n"
    assert read[".csv"] == csv_table(RECORDS, GRID)


def test_a_grid_that_names_no_shifts_means_those_of_its_records() -> None:
    assert as_json(RECORDS, replace(GRID, shifts=())) == as_json(RECORDS, GRID)
    assert text_table([], replace(GRID, shifts=())).splitlines()[2].split() == ["method", "backbone"]


def test_a_varied_setting_without_a_default_in_the_options_has_that_of_training() -> None:
    grid = replace(GRID, methods=("s+t", "so"), vary={"steps": [50, 100], "alpha1": [0.1, 1.0]})
    [one] = [row for row in as_json([make_record()], grid)["rows"] if row["method"] == "so"]
    assert one["values"] == {"steps": 100, "alpha1": None}


def test_selection_and_frozen_networks_are_said() -> None:
    records = make_records(replace(GRID, shifts=("A-W",), methods=("s+t", "so")))
    records = [changed(one, select="cv", frozen=True) if one.cell.method == "so" else one for one in records]
    text = text_table(records, GRID)
    assert "few-shot cross-validation on training images; elsewhere settings were fixed before this run, in the" in text
    assert "In some cells only heads are trained, on frozen features; the network does not change." in text
    assert "frozen features" not in text_table(RECORDS, GRID)
