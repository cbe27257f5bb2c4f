"""Predictions as CSV: whatever the names are, they come back, and none is a formula."""

import csv
import io
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from sohot._escapes import unescaped, visible
from sohot.data.names import printable
from sohot.runs import Prediction, predictions_csv, read_predictions
from sohot.runs.predictions import UNKNOWN

characters = st.one_of(st.sampled_from('\r\n\t\x1b\x9b\u202e",=+-@\\u0041'), st.characters(exclude_categories=["Cs"]))
names = st.text(characters, min_size=1).filter(lambda name: "/" not in name)


@given(names, names)
def test_names_come_back_and_are_no_formulas(file, label):
    text = predictions_csv([Prediction(Path(file), (label,), (0.5,))])
    _, (found, found_label, share) = csv.reader(io.StringIO(text, newline=""))
    assert Path(found).as_posix().removeprefix("./") != ""
    assert unescaped(found_label) in (label, f"'{label}")
    assert Path(unescaped(found)) == Path(printable(file))
    assert [line for line in text.splitlines() if visible(line) != line] == []
    assert len(text.splitlines()) == 2
    assert not found.startswith(("=", "+", "-", "@"))
    assert not found_label.startswith(("=", "+", "-", "@"))
    assert float(share) == 0.5


@given(st.lists(st.tuples(names, names, names), min_size=1, max_size=3), st.booleans(), st.sampled_from([None, 0.5, 1]))
def test_what_is_written_is_what_is_read(tmp_path_factory, rows, known, limit):
    predictions = [
        Prediction(
            Path(printable(file)),
            (printable(label), "other"),
            (0.75, 0.25),
            printable(truth) if known else None,
            None if limit is None else limit > 0.75,
        )
        for file, label, truth in rows
        if not (label.startswith("'") or truth.startswith("'"))  # a guarded name looks the same
        and label != UNKNOWN
    ]
    file = tmp_path_factory.mktemp("csv") / "predictions.csv"
    file.write_bytes(predictions_csv(predictions, top=2).encode())
    assert read_predictions(file) == predictions
