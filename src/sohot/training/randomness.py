"""Same seed, same machine, same result: seeding, and the state of all generators for a checkpoint."""

import hashlib
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import torch


@contextmanager
def reproducible(seed: int, device_type: str) -> Iterator[None]:
    """Seed Python, numpy and torch inside, choose deterministic kernels, and restore everything afterwards."""
    before = random_state()
    seed_all(seed)
    try:
        # On a CPU the kernels in use are deterministic anyway, and asking for them imports a compiler for seconds.
        with _deterministic_kernels() if device_type == "cuda" else nullcontext():
            yield
    finally:
        restore_random_state(before)


@contextmanager
def _deterministic_kernels() -> Iterator[None]:
    deterministic, warn_only = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    benchmark = torch.backends.cudnn.benchmark
    memory: Any = torch.utils.deterministic
    filled = memory.fill_uninitialized_memory
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False
    memory.fill_uninitialized_memory = False  # it costs a kernel per tensor, and only helps find other bugs
    try:
        yield
    finally:
        memory.fill_uninitialized_memory = filled
        torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)
        torch.backends.cudnn.benchmark = benchmark


def step_seed(seed: int, rank: int, step: int) -> int:
    """Return the seed of one rank's step: each rank draws its own numbers, whenever the run was resumed.

    >>> step_seed(0, 0, 7) == step_seed(0, 1, 7)
    False
    """
    digest = hashlib.sha256(f"{seed} {rank} {step}".encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def seed_all(seed: int, gpu: bool = True) -> None:
    """Seed Python, numpy and torch; a GPU only if `gpu` is true."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    if gpu:
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)


def random_state() -> dict[str, Any]:
    """Return the state of all generators as JSON values."""
    version, words, gauss = random.getstate()
    numpy_state: dict[str, Any] = np.random.get_state(legacy=False)
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []  # type: ignore[no-untyped-call]
    return {
        "python": [version, list(words), gauss],
        "numpy": {
            **numpy_state,
            "state": {"key": numpy_state["state"]["key"].tolist(), "pos": numpy_state["state"]["pos"]},
        },
        "torch": bytes(torch.get_rng_state().numpy()).hex(),
        "cuda": [bytes(state.numpy()).hex() for state in cuda],
    }


def restore_random_state(state: dict[str, Any]) -> None:
    """Restore all generators to a state from `random_state`.

    >>> before = random_state()
    >>> first = torch.rand(1)
    >>> restore_random_state(before)
    >>> bool(first == torch.rand(1))
    True
    """
    version, words, gauss = state["python"]
    random.setstate((version, tuple(words), gauss))
    words_and_place = state["numpy"]["state"]
    key = np.array(words_and_place["key"], dtype=np.uint32)
    np.random.set_state({**state["numpy"], "state": {"key": key, "pos": words_and_place["pos"]}})
    torch.set_rng_state(_generator_state(state["torch"]))
    if state["cuda"] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all([_generator_state(generator) for generator in state["cuda"]])


def _generator_state(text: str) -> torch.Tensor:
    return torch.frombuffer(bytearray.fromhex(text), dtype=torch.uint8)
