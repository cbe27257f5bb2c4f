"""docs/methods.md tells of every candidate and every value of the paper."""

from pathlib import Path

from sohot.methods.options import flag
from sohot.runs import RunConfig
from sohot.runs.presets import PAPER_VALUES, resolve_paper
from sohot.selection.spaces import AUTO_CANDIDATES

PAGE = (Path(__file__).parents[2] / "docs" / "methods.md").read_text(encoding="utf-8")


def test_candidates_are_listed_in_their_order():
    places = [PAGE.index(f"`{name}`", PAGE.index("**Candidates**")) for name in AUTO_CANDIDATES]
    assert places == sorted(places)


def test_values_of_the_paper_are_listed():
    rows = [line for line in PAGE.splitlines() if line.startswith("| `--")]
    assert [row.split("`")[1] for row in rows[-len(PAPER_VALUES) :]] == [flag(one.name) for one in PAPER_VALUES]
    found = resolve_paper(RunConfig(method="paper", backbone="alexnet"))
    for name in ("method", "streams", "heads", "estimator", "feature_scale", "tap", "dropout", "optimizer"):
        assert any(f"`{flag(name)}` | `{getattr(found, name)}`" in row for row in rows), name
    for name in ("sigma1", "sigma2"):
        row = next(row for row in rows if f"`{flag(name)}`" in row)
        assert float(row.split("|")[2]) == getattr(found, name)
