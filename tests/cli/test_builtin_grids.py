"""Every built-in grid, from the official layout of its data set to its table."""

from pathlib import Path

import pytest
from official_sets import make_office31, make_rgbd_caltech, make_voc_sketches

from sohot.experiments import read_grid

MADE = {
    "office31": lambda root: make_office31(root, {"amazon": 22, "dslr": 9, "webcam": 9}),
    "rgbd-caltech": lambda root: make_rgbd_caltech(root, photos=22),
    "voc-sketches": make_voc_sketches,
}
QUICK = "--backbone small-cnn --splits 1 --set image_size=16 --set steps=2 --device cpu --workers 1 --quiet --json"
METHODS = {
    "office-alexnet": ["s+t", "m", "so"],
    "office-vgg": ["s+t", "so", "so+zeta", "to+zeta", "so+to+zeta", "so+to+fo+zeta"],
    "rgbd-shots": ["t", "s+t", "so"],
    "sigma-sensitivity": ["s+t", "so"],
    "voc-sketch": ["s+t", "t", "so"],
    "zeta-histogram": ["so+zeta"],
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory):
    """The folder of a small data set, made when it is first asked for."""
    folders: dict[str, Path] = {}

    def make(name: str) -> Path:
        if name not in folders:
            folders[name] = MADE[name](tmp_path_factory.mktemp(name))
        return folders[name]

    return make


def test_the_builtin_grids_are_those_tested_here(sohot):
    assert sohot("experiment", "--list", "--json").json["experiments"].keys() == {*METHODS, "complexity"}


@pytest.mark.parametrize("name", METHODS)
def test_a_builtin_grid_ends_in_its_table(sohot, made, tmp_path, name):
    grid = read_grid(name)
    call = ("experiment", name, "--data", made(grid.dataset), "--out", tmp_path / "out")
    done = sohot(*call, *QUICK.split())
    assert done.code == 0, done.err
    rows = done.json["table"]["rows"]
    assert list(dict.fromkeys(row["method"] for row in rows)) == METHODS[name]
    assert {(cell["count"], cell["failed"]) for row in rows for cell in row["cells"].values()} == {(1, 0)}
    written = {Path(file).name for file in done.json["files"]}
    assert {"table.txt", "table.tex", "report.html"} <= written
    planned = sohot(*call, *QUICK.split(), "--dry-run").json["cells"]
    assert [cell["state"] for cell in planned] == ["done"] * done.json["cells"]["total"]
