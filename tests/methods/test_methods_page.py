"""docs/methods.md tells of every candidate and every value of the paper."""

from pathlib import Path

from sohot.functional.unlabelled import CONFUSION_TEMPERATURE
from sohot.methods import METHOD_NAMES, OTHER_NAMES, POOL_NAMES
from sohot.methods.options import flag
from sohot.methods.pool_recipes import PUBLISHED_RECIPES
from sohot.runs import RunConfig
from sohot.runs.presets import PAPER_VALUES, resolve_paper
from sohot.selection.spaces import AUTO_CANDIDATES

PAGE = (Path(__file__).parents[2] / "docs" / "methods.md").read_text(encoding="utf-8")


def test_every_method_is_listed():
    first, rows = PAGE.split("## ")[0], [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
    assert "+zeta" in first
    named = {name for row in rows for name in row.split("`")[1::2]}
    plain = {name for name in METHOD_NAMES if "zeta" not in name}
    assert plain | set(OTHER_NAMES) | set(POOL_NAMES) <= named


def test_recipes_of_other_papers_are_listed_with_their_values():
    for recipe in PUBLISHED_RECIPES:
        (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{recipe.name}` | ")]
        numbers = [*recipe.terms.values()]
        numbers += [CONFUSION_TEMPERATURE] if recipe.name == "mcc" else []
        numbers += [recipe.threshold] if recipe.tested is not None else []
        assert all(f" {number:g}" in row for number in numbers), recipe.name
        assert "20" in row.split("|")[-2]  # the year of the paper


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
