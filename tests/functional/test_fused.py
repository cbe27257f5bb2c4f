"""The GPU kernels, interpreted on a CPU, against the plain version in float64; and when they are used at all."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from interpreted import run_interpreted

from sohot.functional import fused, scatter_alignment
from sohot.functional.fused.layout import choose_layout

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


def features(rows: int = 4, device: str = "cpu", dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.zeros(rows, 2, dtype=dtype, device=device)


def test_a_cpu_has_the_plain_version() -> None:
    assert not fused.is_usable(features(), features(), 2)


@pytest.mark.skipif(find_spec("triton") is None, reason="needs triton")
def test_forced_for_what_the_kernels_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOHOT_KERNEL", "triton")
    assert fused.is_usable(features(), features(), 2)
    assert not fused.is_usable(features(dtype=torch.float64), features(dtype=torch.float64), 2)
    assert not fused.is_usable(features(), features(dtype=torch.bfloat16), 2)
    assert not fused.is_usable(features(rows=100), features(rows=100), 1)  # one class of many rows


def test_never_where_the_plain_version_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOHOT_KERNEL", "plain")
    assert not fused.is_usable(features(device="meta"), features(device="meta"), 2)


def test_a_wrong_choice_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOHOT_KERNEL", "fast")
    with pytest.raises(ValueError, match="variable SOHOT_KERNEL must be one of 'auto', 'plain', 'triton', got 'fast'"):
        scatter_alignment(features(), torch.tensor([0] * 4), features(), torch.tensor([0] * 4), 1)


def test_without_triton_forcing_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOHOT_KERNEL", "triton")
    monkeypatch.setattr(fused, "_HAS_TRITON", False)
    with pytest.raises(ValueError, match="SOHOT_KERNEL=triton needs the package triton"):
        fused.is_usable(features(), features(), 2)


@pytest.mark.parametrize(("rows", "classes", "size"), [(713, 31, 4096), (64_000, 1000, 4096), (2, 1, 1), (7, 9, 33)])
def test_a_layout_covers_all_columns_and_takes_classes_of_equal_size(rows: int, classes: int, size: int) -> None:
    layout = choose_layout(rows, classes, size, processors=132)
    assert layout.capacity >= min(rows / classes, 64)
    for block, parts in ((layout.block, layout.parts), (layout.gradient_block, layout.gradient_parts)):
        columns_each = -(-size // (block * parts)) * block
        assert columns_each % block == 0
        assert columns_each * parts >= size


def test_to_a_compiler_the_choice_is_a_constant() -> None:
    marked = torch.compiler.assume_constant_result(lambda: None)
    assert vars(fused._suits) == vars(marked) != {}


def test_importing_leaves_the_kernels_and_the_compiler_alone() -> None:
    code = (
        "import sys; from sohot import ScatterAlignment; from sohot.functional import scatter_alignment; "
        "assert not {'sohot.functional.fused.passes', 'torch._dynamo'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
