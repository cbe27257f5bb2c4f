"""The cells of a grid: the whole product, nothing twice, the same wherever the images lie."""

import shutil

import pytest
from experiment_work import small_grid, write_domains

from sohot.data import open_dataset
from sohot.experiments.grid_cells import cells, weights_fingerprint


@pytest.fixture
def root(tmp_path):
    return write_domains(tmp_path / "data")


@pytest.fixture
def dataset(root):
    return open_dataset("domains", root)


def test_a_grid_is_the_product_of_its_parts(dataset):
    grid = small_grid(shifts=(), methods=("so", "so+zeta"), vary={"sigma1": [0.2, 0.3], "target_shots": [1, 2]})
    found = cells(grid, dataset)
    assert len(found) == 2 * 2 * 2 * 2 * 2  # shifts, splits, methods, σ1, shots
    assert len({cell.key for cell in found}) == len(found)
    assert {cell.shift for cell in found} == {"photos-sketches", "sketches-photos"}
    assert [cell.split for cell in found] == sorted(cell.split for cell in found)
    assert {cell.draw["target_shots"] for cell in found} == {1, 2}
    assert all("target_shots" not in cell.settings for cell in found)


def test_a_method_that_does_not_align_is_one_cell_for_every_sigma(dataset):
    grid = small_grid(splits=(1,), methods=("s+t", "so"), vary={"sigma1": [0.2, 0.3, 0.4], "sigma2": [0.5]})
    assert [cell.method for cell in cells(grid, dataset)] == ["s+t", "so", "so", "so"]


def test_defaults_said_aloud_are_the_same_cell(dataset):
    grid = small_grid(splits=(1,), methods=("so",), settings={"target_shots": 2})
    aloud = grid.changed({"steps": 100, "sigma1": 0.1, "lr": 0.003, "optimizer": "sgd"})
    assert [cell.key for cell in cells(grid, dataset)] == [cell.key for cell in cells(aloud, dataset)]


def test_settings_of_a_method_are_its_own(dataset):
    grid = small_grid(splits=(1,), method_settings={"s+t": {"lr": 0.5}})
    assert {cell.method: cell.settings.get("lr") for cell in cells(grid, dataset)} == {"s+t": 0.5, "so+zeta": None}


def test_settings_of_a_shift_win_over_those_of_its_method(dataset):
    there, back = dataset.shifts
    grid = small_grid(
        splits=(1,),
        shifts=(there, back),
        methods=("s+t",),
        method_settings={"s+t": {"lr": 0.5, "steps": 7}},
        shift_settings={"s+t": {back: {"lr": 0.1}}},
    )
    found = {cell.shift: (cell.settings["lr"], cell.settings["steps"]) for cell in cells(grid, dataset)}
    assert found == {there: (0.5, 7), back: (0.1, 7)}


def test_settings_of_a_shift_that_is_not_there_are_refused(dataset):
    with pytest.raises(ValueError, match="nowhere"):
        cells(small_grid(shift_settings={"s+t": {"nowhere-photos": {"lr": 0.1}}}), dataset)


def test_moved_images_are_the_same_and_changed_ones_are_not(root, dataset, tmp_path):
    grid = small_grid(splits=(1,), methods=("so",))
    before = cells(grid, dataset)[0].key
    moved = shutil.copytree(root, tmp_path / "moved")
    assert cells(grid, open_dataset("domains", moved))[0].key == before
    (moved / "cartoons").mkdir()
    shutil.copytree(moved / "photos", moved / "cartoons", dirs_exist_ok=True)
    assert cells(grid, open_dataset("domains", moved))[0].key == before  # another domain is not looked at
    (moved / "sketches" / "red" / "0.png").unlink()
    assert cells(grid, open_dataset("domains", moved))[0].key != before


def test_weights_are_known_by_their_content(dataset, tmp_path):
    keys = []
    for place, content in (("a", "1"), ("b", "1"), ("c", "2")):
        (tmp_path / place).mkdir()
        (tmp_path / place / "net.safetensors").write_text(content)
        grid = small_grid(splits=(1,), methods=("so",)).changed({"weights": tmp_path / place / "net.safetensors"})
        keys.append(cells(grid, dataset)[0].key)
    assert keys[0] == keys[1] != keys[2]
    with pytest.raises(FileNotFoundError, match=r"missing\.safetensors"):
        cells(small_grid().changed({"weights": "missing.safetensors"}), dataset)


def test_selection_is_part_of_a_cell(dataset):
    grid = small_grid(splits=(1,), methods=("s+t", "so"))
    plain, aligned = cells(grid, dataset, select="cv", trials=3)
    assert set(plain.search["space"]) == {"lr", "steps"}
    assert set(aligned.search["space"]) == {"lr", "sigma1", "sigma2"}
    assert plain.search["trials"] == 3
    own = cells(small_grid(methods=("so",), space={"orders": [[2], [2, 3]]}), dataset, select="cv")
    assert own[0].search["space"] == {"orders": [[2], [2, 3]]}
    with pytest.raises(ValueError, match=r"space holds no setting that the method 's\+t' uses"):
        cells(small_grid(methods=("s+t",), space={"sigma1": [1.0]}), dataset, select="cv")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"shifts": ("photos-paintings",)}, "shift must be one of"),
        ({"backbone": "alexnett"}, "alexnett"),
        ({"protocol": "paper", "settings": {}}, "the paper does not use domains"),
        ({"settings": {"sigma1": [0.1, 0.2]}, "methods": ("so",)}, "sigma1 must hold one number for each"),
        ({"settings": {"steps": 0}}, "steps must be an integer of at least 1"),
        ({"settings": {"steps": 3, "epochs": 3}}, "exclude each other"),
    ],
)
def test_what_cannot_be_had_is_named_before_anything_starts(dataset, changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        cells(small_grid(**changes), dataset)


def test_more_cells_than_anyone_can_compute_are_refused_at_once(dataset):
    with pytest.raises(ValueError, match=r"the grid has 320000 cells .*: 100 × 1 × 2 × 1600\).* divide it"):
        cells(small_grid(splits=range(1, 101), vary={"lr": [0.1] * 40, "sigma1": [0.1] * 40}), dataset)
    with pytest.raises(ValueError, match="trials must be between 1 and 10000"):
        cells(small_grid(), dataset, select="cv", trials=10**12)
    many = {"lr": [0.1] * 200, "head_decay": [0.1] * 200}
    with pytest.raises(ValueError, match=r"frozen_space has 40000 combinations for 's\+t'"):
        cells(small_grid(frozen_space=many), dataset, select="cv", frozen=True)


def test_cells_depend_on_what_a_networks_files_hold_not_where_they_lie(tmp_path):
    def network(folder, weights):
        folder.mkdir()
        (folder / "config.json").write_text("{}")
        (folder / "model.safetensors").write_text(weights)
        return f"timm:local-dir:{folder}"

    here, copy, other = (network(tmp_path / name, weights) for name, weights in {"a": "1", "b": "1", "c": "2"}.items())
    assert weights_fingerprint(here, {}) == weights_fingerprint(copy, {})
    assert len({weights_fingerprint(here, {}), weights_fingerprint(other, {}), weights_fingerprint("lite0", {})}) == 3
    with pytest.raises(FileNotFoundError, match=r"none/config\.json: there is no such file"):
        weights_fingerprint(f"timm:local-dir:{tmp_path / 'none'}", {})
