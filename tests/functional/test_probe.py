"""Where Triton cannot compile, plain operations are used, and one sentence says so."""

import warnings

import pytest
import torch

from sohot.functional.fused import probe

GPU = torch.device("cuda", 0)


@pytest.fixture(autouse=True)
def _a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(probe, "_HAS_TRITON", True)
    monkeypatch.setattr(torch.cuda, "device", lambda _: warnings.catch_warnings())
    probe.kernels_work.cache_clear()
    yield
    probe.kernels_work.cache_clear()


def test_a_missing_compiler_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: torch.device) -> None:
        raise RuntimeError("Failed to find C compiler.\nPlease specify via CC environment variable.")

    monkeypatch.setattr(probe, "run_smallest", fail)
    with pytest.warns(UserWarning, match=r"cannot compile kernels here \(Failed to find C compiler\. Please .* gcc"):
        assert not probe.kernels_work(GPU)
    assert not probe.kernels_work(GPU)


def test_kernels_that_run_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[torch.device] = []
    monkeypatch.setattr(probe, "run_smallest", tried.append)
    assert probe.kernels_work(GPU)
    assert probe.kernels_work(GPU)
    assert tried == [GPU]


def test_nothing_is_tried_without_a_gpu() -> None:
    assert not probe.kernels_work(torch.device("cpu"))
