"""A cell trains as `sohot fit` does, tests on the split's test images, and tells what a table needs."""

import json
from dataclasses import asdict, replace

import pytest
from experiment_work import small_grid, write_domains
from pretrained import write_weights

from sohot.data import open_dataset
from sohot.data.protocols import make_split
from sohot.experiments.cell_training import Workplace
from sohot.experiments.cell_trunks import prepare, shown_sides
from sohot.experiments.grid_cells import cells
from sohot.experiments.result import CellResult
from sohot.experiments.run_cell import run_cell
from sohot.runs import RunConfig, evaluate_on
from sohot.runs.batch_shape import make_batches
from sohot.runs.run_model import build_model
from sohot.runs.trunk_outputs import trunk_outputs
from sohot.training import fit


@pytest.fixture
def where(tmp_path):
    return Workplace(write_domains(tmp_path / "data"), tmp_path / "out", {}, "cpu", 0)


def cell_of(where, method="so", **changes):
    options = {name: changes.pop(name) for name in ("select", "trials") if name in changes}
    grid = small_grid(splits=(1,), methods=(method,), **changes)
    (cell,) = cells(grid, open_dataset("domains", where.root), **options)
    return cell


@pytest.mark.parametrize("method", ["s", "t", "s+t", "so+to+zeta"])
def test_a_cell_ends_as_fit_does_on_the_same_images(where, method):
    cell = cell_of(where, method)
    found = run_cell(cell, where)
    split = make_split("k-shot", open_dataset("domains", where.root), cell.shift, 1, **cell.draw)
    config = RunConfig(method=method, backbone="small-cnn", image_size=16, steps=3, device="cpu", read_threads=0)
    model = build_model(config, 3)
    parts = [split.sides["source_train"] if method != "t" else None, split.sides["target_train"]]
    parts[1] = parts[1] if method != "s" else None
    inputs = [
        None if part is None else trunk_outputs(config, model, domain, part, "memory")
        for domain, part in zip(("source", "target"), parts, strict=True)
    ]
    labels = [() if part is None else part.labels for part in parts]
    settings = replace(config.settings(from_trunk=True), loggers="none")
    result = fit(model, inputs[0], labels[0], inputs[1], labels[1], settings, batches=make_batches(config, *parts))
    assert found.curve["loss"] == [record["loss"] for record in result.history]
    assert found.accuracy == evaluate_on(model, split.sides["target_test"], 0)


def test_a_pretrained_network_starts_from_its_frozen_features(where, tmp_path):
    """As in `sohot fit --keep layers`: a learning rate that moves nothing leaves it there."""
    common = {"image_size": 16, "target_shots": 2, "source_shots": 4, "weights": str(write_weights(tmp_path))}
    still = {"trains": "paper", "steps": 1, "lr": 1e-20}
    layers, head = (
        run_cell(cell_of(where, settings={**common, **more}), where) for more in (still, {"trains": "head"})
    )
    assert layers.accuracy == head.accuracy
    assert (layers.steps, head.steps, head.curve["step"]) == (1, 0, [])


def test_shared_features_change_nothing(where):
    cell = cell_of(where)
    alone = run_cell(cell, where)
    assert prepare([cell], where) > 0
    shared = run_cell(cell, where)
    assert (len(alone.notes), shared.notes) == (1, [])  # the first had to compute them itself, and says so
    assert (alone.accuracy, alone.curve) == (shared.accuracy, shared.curve)


def test_a_result_is_whole_and_fits_into_json(where):
    result = run_cell(cell_of(where, "so+to+zeta", settings={"image_size": 16, "steps": 130, "target_shots": 3}), where)
    written = json.dumps(asdict(result), allow_nan=False)
    assert CellResult.from_json(json.loads(written)) == result
    assert set(json.loads(written)) == {"accuracy", "zeta", "curve", "chosen", "seconds", "steps", "sizes", "notes"}
    assert {name: len(values) for name, values in result.zeta.items()} == {"means": 3, "order2": 3, "order3": 3}
    steps = result.curve["step"]
    assert (len(steps), steps[0], steps[-1]) == (100, 1, 130)
    assert set(map(len, result.curve.values())) == {100}
    assert set(result.seconds) == {"features", "select", "train", "test"}
    assert result.sizes == {"source": 18, "target": 9, "test": 9}
    assert sum(map(sum, result.accuracy.confusion)) == 9


def test_without_alignment_its_curve_is_empty_and_no_weights_are_told(where):
    result = run_cell(cell_of(where, "s+t"), where)
    assert result.zeta is None
    assert result.curve["alignment"] == [None] * 3


def test_augmented_images_are_read_anew(where):
    settings = {"image_size": 16, "steps": 2, "target_shots": 2, "augment": True}
    cell = cell_of(where, settings=settings)
    assert prepare([cell], where) == 0
    assert run_cell(cell, where).steps == 2


def test_a_source_of_its_own_channels_has_a_trunk_of_its_own(where):
    cell = cell_of(where, settings={"image_size": 16, "steps": 2, "target_shots": 2, "source_channels": 1})
    prepare([cell], where)
    assert len([path for path in (where.out / "features").iterdir() if path.is_dir()]) == 2
    assert run_cell(cell, where).notes == []


def test_settings_are_chosen_by_folds_and_what_diverges_is_not(where):
    cell = cell_of(where, "s+t", space={"lr": [1e30, 0.003]}, select="cv", trials=4)
    prepare([cell], where)
    result = run_cell(cell, where)
    assert (result.chosen.settings, result.chosen.trials) == ({"lr": 0.003}, 2)
    assert result.notes == []
    assert result.curve == run_cell(cell_of(where, "s+t"), where).curve  # all labelled images train in the end


def test_validation_images_choose_where_the_protocol_has_some(where):
    settings = {"image_size": 16, "steps": 2, "target_shots": 2, "validation_shots": 2}
    cell = cell_of(where, settings=settings, space={"lr": [0.01]}, select="validation")
    prepare([cell], where)
    assert run_cell(cell, where).chosen.trials == 1
    assert ("target", "validation") in shown_sides(cell)
    without = cell_of(where, space={"lr": [0.01]}, select="validation")
    with pytest.raises(ValueError, match="--select validation needs validation images"):
        prepare([without], where)
