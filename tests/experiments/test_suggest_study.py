"""studies/unlabelled/suggest.py: every way names different rows, and its table compares what belongs together."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

_spec = importlib.util.spec_from_file_location(
    "suggest_study", Path(__file__).parents[2] / "studies" / "unlabelled" / "suggest.py"
)
study = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(study)


@pytest.mark.parametrize("name", study.CANDIDATES)
def test_every_way_names_different_rows_and_the_same_again(name):
    random = np.random.default_rng(0)
    pool = study.Pool(random.normal(size=(50, 4)), random.dirichlet([1, 1, 1], 50), random.normal(size=(6, 4)), seed=3)
    found = study.CANDIDATES[name](pool, 7)
    assert len(set(found)) == 7
    assert found == study.CANDIDATES[name](pool, 7)


def test_differences_are_paired_by_draw_and_averaged_over_shifts():
    rows = [
        {
            "shift": shift,
            "draw": draw,
            "shots": shots,
            "labels": labels,
            "way": way,
            "accuracy": 50.0 + gain * (1 + draw),
        }
        for shift in study.SHIFTS
        for draw in (0, 1)
        for shots in study.SHOTS
        for labels in ("20", "one per class")
        for way, gain in (("none", 0), (study.RANDOM, 1), (study.RANDOM, 3), (study.LEAST_SURE, 2), (study.OURS, 4))
    ]
    assert study.by_draw(rows, study.RANDOM, "Office-31, three shifts", 3, "20").tolist() == [52, 54]
    table = study.tabulate(rows)
    assert "| random | 53.00 | 53.00 | 53.00 |" in table
    assert "| least confidence − random | +0.00 [+0.00, +0.00] |" in table
    assert f"| {study.OURS} − random | +3.00 [" in table
