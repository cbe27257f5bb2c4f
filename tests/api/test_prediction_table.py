"""The table of labels."""

import sys
from pathlib import Path

import pytest

from sohot.api import Predicted, Predictions

ROWS = [
    Predicted(Path("a.png"), "mug", 0.75, (("mug", 0.75), ("pen", 0.25))),
    Predicted(1, None, None),
    Predicted(Path("<b>.png"), "pen", 0.5, (("pen", 0.5), ("mug", 0.5))),
]


def test_rows_are_named_tuples_in_a_list() -> None:
    table = Predictions(ROWS)
    assert table == ROWS
    assert table[0].label == "mug"
    assert (table.labels, table.probabilities) == (["mug", None, "pen"], [0.75, None, 0.5])
    assert repr(table) == "3 images: mug 1, None 1, pen 1"
    assert repr(Predictions()) == "no images"


def test_a_data_frame_has_a_row_per_image() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = Predictions(ROWS).to_pandas()
    assert list(frame) == ["image", "label", "probability", "label_2", "probability_2"]
    assert list(frame["image"]) == ["a.png", 1, "<b>.png"]
    assert pandas.isna(frame.loc[1, ["label", "probability", "label_2"]]).all()
    assert list(Predictions().to_pandas()) == ["image", "label", "probability"]


def test_pandas_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match=r"^to_pandas needs pandas: pip install pandas$"):
        Predictions(ROWS).to_pandas()


def test_a_notebook_shows_the_first_rows() -> None:
    page = Predictions(ROWS * 10, {1: "it is <empty>"})._repr_html_()
    assert page.count("<tr>") == 21
    assert "&lt;b&gt;.png" in page
    assert "it is &lt;empty&gt;" in page
    assert page.endswith("<p>… and 10 more</p>")
