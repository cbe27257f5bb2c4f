"""How many threads and processes a machine is asked for at most."""

from types import SimpleNamespace

import joblib
import psutil
import pytest

from sohot._limits import check_processes, check_threads, usable_cores
from sohot.data.decode import default_workers
from sohot.experiments.engines.local import LocalEngine
from sohot.runs import RunConfig, fit_run

GB = 10**9


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    """Two cores and 8 GB, whatever this machine has; call it for other numbers."""

    def has(cores, gigabytes):
        monkeypatch.setattr(joblib, "cpu_count", lambda: cores)
        monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=gigabytes * GB))

    has(2, 8)
    return has


def test_all_cores_may_be_used(machine):
    for cores in (1, 2, 64, 512):
        machine(cores, 4 * cores)
        assert usable_cores() == check_threads(cores) == check_processes(cores, "--workers") == cores
        assert default_workers() == min(cores, 8)


@pytest.mark.parametrize("value", [17, 100_000, 10**30])
def test_too_many_threads_are_refused(value):
    sentence = rf"--threads must be at most 16 on this machine \(2 usable cores\), got {value}"
    with pytest.raises(ValueError, match=sentence):
        check_threads(value)


@pytest.mark.parametrize(("cores", "gigabytes", "most"), [(2, 64, 8), (64, 8, 7), (1, 0.5, 1)])
def test_processes_need_cores_and_memory(machine, cores, gigabytes, most):
    machine(cores, gigabytes)
    assert check_processes(most, "--workers") == most
    with pytest.raises(ValueError, match=f"--workers must be at most {most} on this machine"):
        check_processes(most + 1, "--workers")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"devices": 99}, "--devices must be at most 7 on this machine"),
        ({"threads": 100_000}, "--threads must be at most 16 on this machine"),
        ({"read_threads": 100_000}, "--read-threads must be at most 16 on this machine"),
    ],
)
def test_a_run_starts_no_more_than_fits(tmp_path, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        fit_run(RunConfig(out=tmp_path / "run", device="cpu", **options))


@pytest.mark.parametrize("options", [{"workers": 99}, {"threads": 100_000}])
def test_an_experiment_starts_no_more_than_fits(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} must be at most"):
        LocalEngine(device="cpu", **options)
