"""Several ranks give what one gives: real processes that talk over gloo."""

import os
import random
import signal
import socket
import time
from pathlib import Path

import ddp_worker as worker
import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from warm_process import WarmProcess

import sohot
from sohot.methods import FitSettings
from sohot.training import load_run
from sohot.training.fabric import make_fabric
from sohot.training.logs import read_csv_log
from sohot.training.randomness import reproducible, seed_all, step_seed

WORKER = Path(worker.__file__)
TOLERANCES = {torch.float64: 1e-12, torch.float32: 1e-6}


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def start(out: Path, names: str, count: int = 2) -> list[WarmProcess]:
    paths = [str(Path(sohot.__file__).parents[1]), str(WORKER.parent)]
    shared = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(paths),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "TORCHELASTIC_RUN_ID": "test",
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
        "GROUP_RANK": "0",
    }
    words = [WORKER, out, names]
    return [WarmProcess(words, {**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(count)]


def finish(workers: list[WarmProcess], timeout: float = 120) -> tuple[list[int], list[str]]:
    try:
        said = [worker.communicate(timeout=timeout)[1] for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    return [worker.returncode for worker in workers], said


def run(out: Path, names: str, count: int = 2) -> None:
    codes, said = finish(start(out, names, count))
    assert codes == [0] * count, said


@pytest.fixture(scope="module")
def out(tmp_path_factory) -> Path:
    """Weights of every case after training on two ranks."""
    folder = tmp_path_factory.mktemp("ranks")
    run(folder, ",".join(worker.CASES))
    return folder


def close(one: dict, other: dict) -> None:
    assert set(one) == set(other)
    for name, tensor in one.items():
        tolerance = 1e-5 if name.startswith("last") else TOLERANCES.get(tensor.dtype, 0.0)
        torch.testing.assert_close(
            tensor, other[name], rtol=tolerance, atol=tolerance, msg=lambda text, name=name: f"{name}: {text}"
        )


@pytest.mark.parametrize("name", worker.CASES)
def test_two_ranks_end_where_one_does(out, name):
    first, second = (load_file(out / f"{name} {rank}.safetensors") for rank in (0, 1))
    close(first, second)
    close(first, worker.tensors_of(worker.run_case(name)))


def test_a_run_goes_on_with_another_number_of_ranks(tmp_path):
    """Stopped by a signal to one rank of two, resumed by three."""
    codes, said = finish(start(tmp_path, "resume-term:3"))
    assert codes == [1, 1], said
    assert all("Interrupted: stopped by SIGTERM after step 3 of 6; saved in" in text for text in said)
    assert load_run(tmp_path / "run").step == 3
    run(tmp_path, "resume:6", count=3)
    close(load_file(tmp_path / "resumed 0.safetensors"), worker.tensors_of(worker.run_case("so+zeta")))
    assert [row["step"] for row in read_csv_log(tmp_path / "run" / "log.csv")] == [1, 2, 3, 4, 5, 6]


def test_a_rank_that_dies_ends_the_others_with_a_checkpoint(tmp_path):
    began = time.monotonic()
    codes, said = finish(start(tmp_path, "resume-die:4"))
    assert codes == [1, -signal.SIGKILL], said
    assert "RankLost: rank 0 has lost the connection to another rank; the last good checkpoint is" in said[0]
    assert time.monotonic() - began < 60
    assert load_run(tmp_path / "run").step == 4
    rest = worker.run_case("so+zeta", run_dir=tmp_path / "run", resume=True)
    assert rest.resumed_from == 4
    close(worker.tensors_of(rest), worker.tensors_of(worker.run_case("so+zeta")))


def test_dropout_differs_by_rank_and_step_but_not_by_resuming():
    def draw(rank, step):
        with reproducible(0, "cpu"):
            torch.rand(step)
            seed_all(step_seed(5, rank, step))
            return torch.rand(4).tolist(), random.random(), float(np.random.rand())

    drawn = [draw(rank, step) for rank in range(3) for step in range(3)]
    assert len({repr(one) for one in drawn}) == 9
    assert draw(1, 2) == drawn[5]


def test_several_devices_need_a_launcher():
    with pytest.raises(ValueError, match="devices=2 needs 2 processes: run the script with torchrun"):
        make_fabric(FitSettings(devices=2, device="cpu"))
