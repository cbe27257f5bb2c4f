"""Cells on frozen features: the same as fits one by one, chosen on the labelled target images alone."""

import pytest
import torch
from experiment_work import InlineEngine, small_grid, write_domains

from sohot.data import open_dataset
from sohot.data.protocols import few_shot_folds
from sohot.experiments import plan_grid, read_grid, run_grid
from sohot.experiments.cell_training import draw_split
from sohot.experiments.cell_trunks import trunks_of
from sohot.experiments.frozen_settings import frozen_candidates, frozen_space
from sohot.experiments.grid import write_grid
from sohot.experiments.grid_cells import cells
from sohot.heads import FeatureProblem, fit_stack
from sohot.methods import OTHER_NAMES, HeadSettings
from sohot.reporting.pages.experiment_page import load_experiments
from sohot.reporting.tables import result_table
from sohot.training import evaluate

SETTINGS = {"steps": 8, "components": 6}
METHODS = ("s", "t", "s+t", "m", "so", "so+zeta", *OTHER_NAMES)


def plan_of(tmp_path, select="none", **changes):
    root = tmp_path / "data"
    if not root.exists():
        write_domains(root)
    grid = small_grid(**{"frozen": SETTINGS, "methods": METHODS, **changes})
    return plan_grid(grid, root, tmp_path / "out", device="cpu", select=select, frozen=True, workers=0)


def run(plan):
    return {(record.cell.method, record.cell.split): record for record in run_grid(plan, InlineEngine()).records}


def problem_of(cell, where, rest=None):
    """Build the problem of a cell by hand, from features computed image by image."""
    split = draw_split(cell, where)
    _, trunks = trunks_of(cell, len(split.classes), where)

    def features(images):
        found = trunks["target"].inputs(images)
        return found.batch(torch.arange(len(images))), torch.tensor(images.labels)

    target = split.sides["target_train"] if rest is None else rest
    problem = FeatureProblem(*features(split.sides["source_train"]), *features(target), len(split.classes))
    return problem, features


def test_cells_end_as_single_fits_do(tmp_path):
    plan = plan_of(tmp_path, methods=("s", "t", "s+t", "m", "so+zeta", "means", "ccsa", "lp-ft"))  # one of each kind
    found = run(plan)
    assert len(found) == len(plan.cells)
    for cell in plan.cells:
        problem, features = problem_of(cell, plan.where)
        (fit,) = fit_stack([problem], [HeadSettings(method=cell.method, **SETTINGS)])
        images, labels = features(draw_split(cell, plan.where).sides["target_test"])
        result = found[cell.method, cell.split].result
        tested = evaluate(fit.predict_logits(images), labels, result_classes(result))
        assert result.accuracy == tested
        assert result.curve["loss"] == pytest.approx(fit.history["loss"].tolist(), rel=1e-3)
        assert (result.zeta is not None) == (cell.method == "so+zeta")
        assert result.steps == (8 if fit.settings.trains_network() else 0)
        assert found[cell.method, cell.split].cell.frozen


def result_classes(result):
    return list(result.accuracy.per_class)


def test_settings_are_chosen_by_folds_of_the_labelled_target_images(tmp_path):
    plan = plan_of(tmp_path, "cv", methods=("so",), splits=(1,), frozen_space={"sigma1": [0.01, 5.0]})
    ((_, record),) = run(plan).items()
    (cell,) = plan.cells
    scores = []
    for tried in frozen_candidates("so", cell.settings, cell.search["space"]):
        shares = []
        for rest, held in few_shot_folds(draw_split(cell, plan.where).sides["target_train"]):
            problem, features = problem_of(cell, plan.where, rest)
            (fit,) = fit_stack([problem], [tried.settings])
            images, labels = features(held)
            shares.append(float((fit.predict_logits(images).argmax(1) == labels).double().mean()))
        scores.append(sum(shares) / len(shares))
    chosen = record.result.chosen
    assert chosen.score == pytest.approx(max(scores))
    assert chosen.settings == {"sigma1": [0.01, 5.0][scores.index(max(scores))]}
    assert chosen.trials == 2


def test_a_fit_that_diverges_is_a_failure_and_the_others_go_on(tmp_path):
    wild = {**SETTINGS, "lr": 1e30, "feature_scale": "none"}
    ended = run_grid(plan_of(tmp_path, methods=("s+t", "so"), splits=(1,), frozen=wild), InlineEngine())
    ((cell, error),) = ended.failed
    assert cell.method == "so"
    assert "training diverged" in error
    assert [record.status for record in ended.records if record.cell.method == "s+t"] == ["done"]


def test_settings_of_images_do_not_count_and_those_of_heads_do(tmp_path):
    dataset = open_dataset("domains", write_domains(tmp_path / "data"))

    def keys(**changes):
        grid = small_grid(methods=("s+t", "so"), splits=(1,), **changes)
        return [cell.key for cell in cells(grid, dataset, frozen=True)]

    plain = keys()
    other_images = small_grid().settings
    assert keys(settings={**other_images, "steps": 99, "lr": 0.5}) == plain
    assert keys(frozen={"sigma1": 0.7})[0] == plain[0]  # s+t does not look at it
    assert keys(frozen={"sigma1": 0.7})[1] != plain[1]
    assert set(keys(settings={**other_images, "image_size": 24})).isdisjoint(plain)


def test_a_grid_keeps_its_settings_of_heads(tmp_path):
    grid = small_grid(frozen={"lr": 0.01}, frozen_space={"head-decay": [0.1, 0.2]})
    write_grid(grid, tmp_path / "grid.toml")
    again = read_grid(tmp_path / "grid.toml")
    assert (again.frozen, again.frozen_space) == ({"lr": 0.01}, {"head_decay": [0.1, 0.2]})
    changed = again.changed(None, {"head_decay": "0.3", "orders": "2,3"})
    assert changed.frozen == {"lr": 0.01, "head_decay": 0.3, "orders": [2, 3]}
    assert changed.frozen_space == {}


def test_cells_are_not_repeated_for_what_another_method_does_not_use(tmp_path):
    vary = {"sigma1": [0.1, 1.0], "margin": [1.0, 2.0]}
    plan = plan_of(tmp_path, methods=("s+t", "so", "ccsa", "dage"), splits=(1,), vary=vary)
    counts = {name: sum(cell.method == name for cell in plan.cells) for name in plan.grid.methods}
    assert counts == {"s+t": 1, "so": 2, "ccsa": 2, "dage": 1}
    run_grid(plan, InlineEngine())
    experiment = load_experiments(tmp_path / "out")[0]
    assert experiment.progress() == (6, 0, 6)
    rows = [(row.method, row.values) for row in experiment.table.rows]
    assert ("ccsa", {"sigma1": None, "margin": 2.0}) in rows
    assert ("so", {"sigma1": 1.0, "margin": None}) in rows


def test_the_table_shows_defaults_of_training_on_features(tmp_path):
    plan = plan_of(tmp_path, methods=("l2-sp",), splits=(1,), vary={"head_decay": [5e-3, 0.1]})
    rows = result_table(run_grid(plan, InlineEngine()).records, plan.grid).rows
    assert [row.values["head_decay"] for row in rows] == [5e-3, 0.1]
    assert "frozen features" in str(result_table(run_grid(plan, InlineEngine()).records, plan.grid))


def test_bad_settings_are_named():
    with pytest.raises(ValueError, match="frozen: unknown setting on frozen features 'stepz'; did you mean 'steps'"):
        small_grid(frozen={"stepz": 3})
    with pytest.raises(ValueError, match="frozen: steps must be an integer of at least 1"):
        small_grid(frozen={"steps": 0})
    with pytest.raises(ValueError, match=r"frozen_space\.sigma1 must be a list of values"):
        small_grid(frozen_space={"sigma1": 0.1})
    with pytest.raises(ValueError, match="frozen: head_first must be between 0 and 1"):
        small_grid(frozen={"head-first": "2"})
    with pytest.raises(ValueError, match="no setting that the method 'dage' uses"):
        frozen_space(small_grid(frozen_space={"margin": [1.0, 2.0]}), "dage")
