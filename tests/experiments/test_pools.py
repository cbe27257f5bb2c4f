"""Grids with unlabelled target images: each cell sees its own pool, and results with different pools never mix."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from experiment_work import InlineEngine, small_grid, write_domains
from pretrained import write_weights

from sohot.data import open_dataset
from sohot.data.protocols import POOL, POOLS
from sohot.experiments import cell_training, frozen, plan_grid, run_cell, run_grid
from sohot.experiments.cell_training import Workplace, draw_split
from sohot.experiments.cell_trunks import needed_features, prepare
from sohot.experiments.grid_cells import cells
from sohot.reporting import write_outputs
from sohot.reporting.pages.experiment_page import load_experiments
from sohot.reporting.tables import result_tables

EVERY = tuple(POOLS)
SMALL = {"image_size": 16, "steps": 1, "target_shots": 2, "source_shots": 4}


@pytest.fixture
def where(tmp_path):
    return Workplace(write_domains(tmp_path / "data"), tmp_path / "out", {}, "cpu", 0)


def cells_of(where, *, select="none", **changes):
    made = small_grid(**{"splits": (1,), "methods": ("s+t",), "pool": EVERY, **changes})
    return {cell.pool: cell for cell in cells(made, open_dataset("domains", where.root), select=select)}


def test_a_grid_computes_tables_apart_and_keeps_supervised_cells(tmp_path):
    root = write_domains(tmp_path / "data")

    def run(**changes):
        made = small_grid(**{"splits": (1,), "methods": ("s+t",), "settings": SMALL, **changes})
        plan = plan_grid(made, root, tmp_path / "out", device="cpu", workers=0)
        return plan, run_grid(plan, InlineEngine())

    _, plain = run()
    plan, ended = run(pool=EVERY)
    assert (plain.computed, ended.computed, ended.kept, ended.failed) == (1, 2, 1, [])
    tables = {table.pool: table for table in result_tables(ended.records, plan.grid)}
    for record in ended.records:
        (row,) = tables[record.cell.pool].rows
        assert row.cells["photos-sketches"].splits == {"1": 100 * record.result.accuracy.micro}
        expected = {"supervised": (12, None), "transductive": (12, 12), "inductive": (6, 6)}[record.cell.pool]
        assert (record.result.sizes["test"], record.result.sizes.get("pool")) == expected
    write_outputs(ended.records, plan.grid, tmp_path / "out")
    assert {file.name for file in (tmp_path / "out").glob("table*.txt")} == {f"table-{pool}.txt" for pool in EVERY}
    parts = load_experiments(tmp_path / "out")
    assert [(part.table.pool, part.progress()) for part in parts] == [(pool, (1, 0, 1)) for pool in EVERY]
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert all(f"{pool.capitalize()}: Results" in page for pool in EVERY)
    assert "Transductive accuracy in %, on target images that training saw without their labels" in page


@pytest.mark.parametrize("select", ["none", "cv", "validation"])
@pytest.mark.parametrize("pool", EVERY)
def test_training_sees_the_pool_of_the_split_and_what_scores_is_to_it_what_tests_is(where, monkeypatch, select, pool):
    shots = {"target_shots": 2, "validation_shots": 1} if select == "validation" else {"target_shots": 2}
    cell = cells_of(where, select=select, settings={**SMALL, **shots}, space={"lr": [0.1, 0.2]})[pool]
    split, seen = draw_split(cell, where), []

    def train(_, data, *__, **___):
        seen.append(data)
        tested = SimpleNamespace(micro=0.5)
        return SimpleNamespace(
            logits=torch.zeros(len(data.test), 3),
            tested=lambda: tested,
            result=SimpleNamespace(objective=SimpleNamespace(learned_weights=dict), history=[], steps=1, pool=None),
            seconds=SimpleNamespace(_asdict=dict),
            sizes=SimpleNamespace(_asdict=dict),
            notes=[],
        )

    monkeypatch.setattr(cell_training, "train_and_test", train)
    run_cell.run_cell(cell, where)
    *tried, last = seen
    assert (last.protocol, last.pool, last.test) == (pool, split.sides.get(POOL), split.sides["target_test"])
    assert len(tried) == {"none": 0, "cv": 4, "validation": 2}[select]
    for data in tried:
        held = set(data.test.files)
        assert held.isdisjoint(split.sides["target_test"].files)
        assert held.isdisjoint(data.target.files)
        if pool == "supervised":
            assert data.pool is None
        else:
            added = held if pool == "transductive" else set()
            assert set(data.pool.files) == {*split.sides[POOL].files, *added}
            assert data.pool.classes == ("unlabelled",)


def test_cells_with_a_pool_prepare_views_of_what_trains_and_plain_images_of_what_tests(where, tmp_path):
    trunk = {"weights": str(write_weights(tmp_path)), "trains": "head", "projection": 4, "pool_views": 1}
    for pool, cell in cells_of(where, settings={**SMALL, **trunk}).items():
        sides = draw_split(cell, where).sides
        source = set(sides["source_train"].files)  # of which there are weak views only
        target = {file for side in ("target_train", POOL) for file in getattr(sides.get(side), "files", ())}
        tested, shown = set(sides["target_test"].files), {None: set(), 1: set(), 2: set()}
        for folder, lists in needed_features([cell], where):
            views = None if folder.views is None else len(folder.views)
            shown[views] |= {file for images in lists for file in images.files}
        plainly = {None: tested | source | target, 1: set(), 2: set()}
        assert shown == (plainly if pool == "supervised" else {None: tested, 1: source, 2: target})
    assert prepare([cell], where) == len(tested) + len(source) + len(target)
    before = sorted((where.out / "features").rglob("*.safetensors"))
    assert run_cell.run_cell(cell, where).notes == []
    assert sorted((where.out / "features").rglob("*.safetensors")) == before


def test_a_cell_on_frozen_features_finds_the_pool_in_the_shared_folder(where, tmp_path):
    solved = {"weights": str(write_weights(tmp_path)), "trains": "head", "image_size": 16, "target_shots": 2}
    for cell in cells_of(where, settings=solved, pool=("transductive", "inductive")).values():
        prepare([cell], where)
        assert run_cell.run_cell(cell, where).notes == []


def test_a_cell_that_ignores_the_pool_tests_a_supervised_model(where):
    ignoring = {"settings": {**SMALL, "pool_weight": 0}}
    supervised, transductive, inductive = cells_of(where, **ignoring).values()
    plain = run_cell.run_cell(supervised, where)
    assert run_cell.run_cell(transductive, where).accuracy == plain.accuracy
    assert run_cell.run_cell(inductive, where).curve == plain.curve
    assert {side for folder, _ in needed_features([inductive], where) for side in [folder.views]} == {None}


def test_settings_for_a_pool_do_not_multiply_cells_without_one(where):
    made = small_grid(splits=(1,), methods=("s+t",), pool=EVERY, vary={"pool_weight": [0.5, 1.0], "pool_views": [1, 2]})
    found = [cell.pool for cell in cells(made, open_dataset("domains", where.root))]
    assert {pool: found.count(pool) for pool in EVERY} == {"supervised": 1, "transductive": 4, "inductive": 4}
    assert len({cell.key for cell in cells_of(where).values()}) == 3
    ignored = replace(made, vary={"pool_weight": [0.0], "pool_views": [1, 2]}, pool=("inductive",))
    assert len(cells(ignored, open_dataset("domains", where.root))) == 1
    assert cells_of(where)["supervised"] == cells_of(where, pool=("supervised",))["supervised"]


def test_a_method_that_needs_a_pool_is_refused_without_one(where):
    pooled = small_grid(methods=("s+t", "mcc"), pool=("transductive", "inductive"))
    assert len(cells(pooled, open_dataset("domains", where.root))) == 8
    with pytest.raises(
        ValueError, match="the method 'mcc' learns from unlabelled target images, and with pool 'superv"
    ):
        cells(replace(pooled, pool=EVERY), open_dataset("domains", where.root))
    with pytest.raises(ValueError, match="mcc"):
        cells(pooled, open_dataset("domains", where.root), frozen=True)


def test_heads_on_frozen_features_learn_from_the_pool(tmp_path, monkeypatch):
    made = small_grid(splits=(1,), methods=("s+t",), pool=EVERY, frozen={"steps": 5})
    made = replace(made, frozen_space={"head_decay": [0.1]})
    root, seen = write_domains(tmp_path / "data"), []
    plan = plan_grid(made, root, tmp_path / "out", device="cpu", select="cv", frozen=True, workers=0)
    known = frozen.fit_stack
    monkeypatch.setattr(
        frozen, "fit_stack", lambda problems, *rest, **more: seen.append(problems) or known(problems, *rest, **more)
    )
    records = {record.cell.pool: record.result for record in run_grid(plan, InlineEngine()).records}
    tried, whole = ([None if one.pool is None else len(one.pool) for one in problems] for problems in seen)
    assert whole == [None, 12, 6]
    assert tried == [None, None, 15, 15, 6, 6]  # two folds each; what a transductive one holds out joins its pool
    assert [records[pool].sizes.get("pool") for pool in EVERY] == [None, 12, 6]


def test_settings_of_heads_for_a_pool_do_not_count_without_one(where):
    def keys(**changes):
        made = small_grid(splits=(1,), methods=("s+t",), pool=EVERY, **changes)
        return [cell.key for cell in cells(made, open_dataset("domains", where.root), frozen=True)]

    plain, weighty = keys(), keys(frozen={"pool_weight": 0.1})
    assert [one == two for one, two in zip(plain, weighty, strict=True)] == [True, False, False]
