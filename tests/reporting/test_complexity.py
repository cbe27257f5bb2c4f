import csv
import json
from pathlib import Path

import pytest

from sohot.reporting.complexity import (
    Complexity,
    complexity_figure,
    complexity_text,
    measure_complexity,
    write_complexity,
)


@pytest.fixture(scope="module")
def result():
    return measure_complexity(quick=True)


def test_formula_and_claim_stand_beside_what_is_measured(result) -> None:
    assert Complexity.from_json(json.loads(json.dumps(result.as_json(), allow_nan=False))) == result
    rows = {(row.order, row.features): row for row in result.rows}
    assert rows[2, 4096].formula == pytest.approx(104.8, abs=0.05)
    assert rows[3, 4096].formula == pytest.approx(143_194, abs=0.5)
    assert (rows[2, 4096].stated, rows[3, 4096].stated) == (52, 143_000)
    assert rows[3, 4096].measured is None
    measured = [row for row in result.rows if row.measured is not None]
    assert len(measured) == 4
    for row in measured:
        assert row.measured == pytest.approx(row.explicit_seconds / row.gram_seconds)
        assert min(row.explicit_seconds, row.gram_seconds) > 0


def test_the_text_has_every_row(result) -> None:
    text = complexity_text(result)
    assert "143 194" in text
    assert "104.8" in text
    assert " 52 " in text
    assert max(map(len, text.splitlines()[:12])) < 100


def test_all_files_are_written(result, tmp_path: Path) -> None:
    files = write_complexity(result, tmp_path / "new")
    names = [file.relative_to(tmp_path / "new").as_posix() for file in files]
    assert names == [
        *(f"table.{suffix}" for suffix in ("txt", "md", "tex", "csv", "json")),
        "figures/complexity.png",
        "figures/complexity.svg",
    ]
    assert all(file.is_file() for file in files)
    with open(files[3], encoding="utf-8") as stream:
        assert len(list(csv.DictReader(stream))) == len(result.rows)


def test_the_figure_has_both_ways_for_each_order_on_logarithmic_axes(result) -> None:
    figure = complexity_figure(result)
    assert [axes.get_title() for axes in figure.axes] == ["order 2", "order 3"]
    for axes in figure.axes:
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
        assert [line.get_label() for line in axes.lines] == ["explicit tensors", "kernel form"]
