"""Cells that take turns end as they do alone, and fail alone."""

from dataclasses import replace

import pytest
import torch
from experiment_work import small_grid, write_domains

from sohot.data.datasets import open_dataset
from sohot.experiments import cell_work as module
from sohot.experiments.cell_training import Workplace
from sohot.experiments.cell_trunks import prepare
from sohot.experiments.cell_work import CellWork, takes_turns
from sohot.experiments.grid_cells import cells
from sohot.experiments.run_cell import run_cell

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))]


# Kernels of a GPU without a deterministic form say so.
pytestmark = pytest.mark.filterwarnings("ignore:.*deterministic")


@pytest.fixture(params=DEVICES)
def where(request, tmp_path):
    return Workplace(write_domains(tmp_path / "data"), tmp_path / "out", {}, request.param, 0)


def cells_of(where, **changes):
    # A CPU draws the numbers of dropout from generators that all cells share: there, they go without.
    own = {"steps": 3, "dropout": "none"} if where.device == "cpu" else {"steps": 45}
    settings = {"image_size": 16, "target_shots": 2, "source_shots": 4, **own, **changes}
    found = cells(small_grid(splits=(1,), methods=("s+t", "so+zeta", "ccsa"), settings=settings), dataset(where))
    prepare(found, where)
    return found


def dataset(where):
    return open_dataset("domains", where.root)


def numbers(result):
    return [value for name in ("loss", "cross_entropy") for value in result.curve[name]]


@pytest.mark.filterwarnings("ignore")  # kernels without a deterministic form say so
def test_cells_in_turns_end_as_they_do_alone(where):
    some = cells_of(where)
    together = {ended.cell: ended for ended in CellWork(where).together(some)}
    assert list(together) == some
    for cell in some:
        alone, ended = run_cell(cell, where), together[cell]
        assert ended.error is None
        tolerance = 0 if where.device == "cpu" else 1e-4
        assert numbers(ended.result) == pytest.approx(numbers(alone), rel=tolerance, abs=tolerance)
        assert ended.result.accuracy == alone.accuracy
        assert ended.result.steps == alone.steps


def test_times_of_cells_add_up_to_the_time_that_passed(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(module.time, "perf_counter", lambda: now[0])
    clock = module._SharedClock()
    now[0] = 2
    assert clock() == 2
    clock.share(4)
    now[0] = 6
    assert clock() == 3


def test_a_cell_that_fails_or_diverges_does_not_touch_the_others(where):
    good = cells_of(where)
    bad = [replace(good[0], settings={**good[0].settings, "lr": 1e9}), replace(good[0], split=-1)]
    ended = {one.cell: one for one in CellWork(where).together([good[0], *bad, *good[1:]])}
    assert "diverged" in str(ended[bad[0]].error)
    assert "split" in str(ended[bad[1]].error)
    assert [ended[cell].result.accuracy for cell in good] == [run_cell(cell, where).accuracy for cell in good]


def test_cells_begin_only_while_there_is_room(where, monkeypatch):
    under_way, most = [], []

    class Watched(module._Taking):
        def turn(self):
            under_way.append(self.cell)
            most.append(len(set(under_way)))
            super().turn()
            if self.ended is not None:
                under_way[:] = [cell for cell in under_way if cell is not self.cell]

    monkeypatch.setattr(module, "_Taking", Watched)
    monkeypatch.setattr(module, "_has_room", lambda _: False)
    some = cells_of(where)
    assert len(list(CellWork(where).together(some))) == len(some)
    assert max(most) == 1


@pytest.mark.parametrize("changes", [{"settings": {"augment": True}}, {"select": "cv"}, {"pool": "transductive"}])
def test_cells_that_draw_numbers_on_the_processor_do_their_turns_at_once(changes, tmp_path):
    where = Workplace(write_domains(tmp_path / "data"), tmp_path / "out", {}, "cpu", 0)
    (cell,) = cells(small_grid(splits=(1,), methods=("so",)), dataset(where))
    assert takes_turns(cell)
    assert not takes_turns(replace(cell, **changes))
