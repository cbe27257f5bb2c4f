"""The GPU kernels, interpreted on a CPU, against the plain version in float64; and when they are used at all."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from interpreted import run_interpreted

from sohot.functional import fused, scatter_alignment

Errors = dict[str, dict[str, float]]
HALF = ("bfloat16", "float16")


@pytest.fixture(scope="module")
def errors() -> Errors:
    """Run all cases once, in a process that interprets kernels."""
    found: Errors = run_interpreted(Path(__file__).with_name("fused_cases.py"))
    return found


def test_float32_is_within_1e_5_of_float64(errors: Errors) -> None:
    assert len(errors) > 25
    far = {}
    for name, case in errors.items():
        tolerance = 3e-5 if name == "high order" else 1e-5  # an error of the Gram matrix grows with the order
        # Unbiased distances have either sign: their sum can cancel, each of them is as close as ever.
        sums = ("loss", "terms") if "unbiased" in name else ()
        if name not in HALF and not all(error <= tolerance for part, error in case.items() if part not in sums):
            far[name] = case
    assert far == {}


@pytest.mark.parametrize("half", HALF)
def test_half_precision_loses_digits_in_the_gradient_alone(errors: Errors, half: str) -> None:
    gradients = {name: errors[half].pop(name) for name in ("by source", "by target")}
    assert all(error < 1e-2 for error in gradients.values())
    assert all(error < 1e-5 for error in errors[half].values())


def test_forced_for_what_the_kernels_take(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton")
    monkeypatch.setenv("SOHOT_KERNEL", "triton")
    assert holds() == 64  # few rows need no counting
    assert holds(rows=40, classes=2) == 40
    assert holds(rows=40, classes=2, most_rows=50) == 50
    assert holds(rows=100, classes=2) is None  # too many in a class
    assert holds(dtype=torch.float64) is None
    assert holds(rows=100, classes=2, most_rows=100) is None


def holds(rows: int = 4, classes: int = 2, dtype: torch.dtype = torch.float32, most_rows: int | None = None) -> Any:
    """How many rows of a class the kernels hold for so many rows in each domain; None where they are not used."""
    x, labels = torch.zeros(rows, 2, dtype=dtype), torch.arange(rows) % classes
    return fused.rows_to_hold(x, labels, x, labels, classes, most_rows)


def test_a_cpu_has_the_plain_version() -> None:
    assert holds() is None


def test_never_where_the_plain_version_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOHOT_KERNEL", "plain")
    x = torch.zeros(4, 2, device="meta")
    assert fused.rows_to_hold(x, x, x, x, 2) is None


def test_a_wrong_choice_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOHOT_KERNEL", "fast")
    x, labels = torch.zeros(4, 2), torch.tensor([0] * 4)
    with pytest.raises(ValueError, match="variable SOHOT_KERNEL must be one of 'auto', 'plain', 'triton', got 'fast'"):
        scatter_alignment(x, labels, x, labels, 1)


def test_without_triton_forcing_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOHOT_KERNEL", "triton")
    monkeypatch.setattr(fused, "_HAS_TRITON", False)
    with pytest.raises(ValueError, match="SOHOT_KERNEL=triton needs the package triton"):
        holds()


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[torch.device]:
    """A device that passes for a GPU which has never been tried."""
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(fused, "_HAS_TRITON", True)
    monkeypatch.setattr(torch.cuda, "device", lambda _: nullcontext())
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (9, 0))
    fused.kernels_work.cache_clear()
    yield torch.device("cuda", 0)
    fused.kernels_work.cache_clear()


def test_a_missing_compiler_is_told_once(monkeypatch: pytest.MonkeyPatch, gpu: torch.device) -> None:
    def fail(_: torch.device) -> None:
        raise RuntimeError("Failed to find C compiler.\nPlease specify via CC environment variable.")

    monkeypatch.setattr(fused, "_run_smallest", fail)
    with pytest.warns(UserWarning, match=r"cannot compile kernels here \(Failed to find C compiler\. Please .* gcc"):
        assert not fused.kernels_work(gpu)
    assert not fused.kernels_work(gpu)


def test_importing_leaves_the_kernels_and_the_compiler_alone() -> None:
    code = (
        "import sys; from sohot import ScatterAlignment; from sohot.functional import scatter_alignment; "
        "assert not {'sohot.functional.fused.passes', 'torch._dynamo'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
