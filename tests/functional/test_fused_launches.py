"""Launches by address: kernels that note what they are given stand for compiled ones."""

import gc
import weakref
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from sohot.functional.fused.prepared import Launch, Launches
from sohot.functional.fused.store import Section, Store

triton = pytest.importorskip("triton")
STREAM, DEVICE = 77, 3
Call = tuple[Any, ...]


class Log:
    """All that reaches kernels."""

    def __init__(self) -> None:
        self.by_tensors: list[Call] = []
        self.by_addresses: list[Call] = []


class Kernel:
    """Like a function under `triton.jit`, whose constants are SIZE and KIND, and like what it is compiled to."""

    function, packed_metadata = "handle", "metadata"

    def __init__(self, arguments: int, log: Log, is_interpreted: bool) -> None:
        self.arg_names = [*(f"x{k}" for k in range(arguments)), "SIZE", "KIND"]
        self.log, self.is_interpreted = log, is_interpreted

    def __getitem__(self, grid: tuple[int, int, int]) -> Any:
        def launch(*arguments: Any, **constants: Any) -> Any:
            self.log.by_tensors.append((grid, arguments, constants))
            return None if self.is_interpreted else self

        return launch

    def run(self, *arguments: Any) -> None:
        self.log.by_addresses.append(arguments)


@pytest.fixture(autouse=True)
def _one_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    streams = {DEVICE: STREAM}
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", streams.__getitem__, raising=False)


def two_launches(log: Log, is_interpreted: bool = False) -> Launches:
    group = 0.5, "b", "absent", (1.0, 2.0)
    first, second = (Kernel(arguments, log, is_interpreted) for arguments in (4, 2))
    launches = [
        Launch(first, (4, 2, 1), ("a", 7, group, "absent"), SIZE=16, KIND="a", num_warps=2),
        Launch(second, (1, 1, 1), ("b", "a"), SIZE=8, KIND=None),
    ]
    return Launches(launches, ["a", "b"])


def tensors() -> dict[str, Tensor]:
    return {"a": torch.zeros(1), "b": torch.ones(2)}


def test_the_first_launch_is_on_tensors_and_later_ones_are_on_addresses() -> None:
    log, named = Log(), tensors()
    launches = two_launches(log)
    launches(DEVICE, [10, 20], lambda: named)
    a, b = named.values()
    assert log.by_tensors == [
        ((4, 2, 1), (a, 7, (0.5, b, None, (1.0, 2.0)), None), {"SIZE": 16, "KIND": "a", "num_warps": 2}),
        ((1, 1, 1), (b, a), {"SIZE": 8, "KIND": None}),
    ]
    for address in (30, 50):
        launches(DEVICE, [address, address + 1], lambda: pytest.fail("needs no tensors"))
    common = STREAM, "handle", "metadata", None, None, None
    for address, calls in ((30, log.by_addresses[:2]), (50, log.by_addresses[2:])):
        group = 0.5, address + 1, None, (1.0, 2.0)
        assert calls == [
            (4, 2, 1, *common, address, 7, group, None, 16, "a"),
            (1, 1, 1, *common, address + 1, address, 8, None),
        ]


def test_interpreted_kernels_get_tensors_always() -> None:
    log = Log()
    launches = two_launches(log, is_interpreted=True)
    for _ in range(3):
        launches(-1, [1, 2], tensors)
    assert len(log.by_tensors) == 6
    assert not log.by_addresses


def test_a_profiler_of_triton_hears_of_each_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log()
    launches = two_launches(log)
    launches(DEVICE, [1, 2], tensors)
    monkeypatch.setattr(triton.knobs.runtime, "launch_enter_hook", SimpleNamespace(calls=[print]))
    launches(DEVICE, [1, 2], tensors)
    assert (len(log.by_tensors), len(log.by_addresses)) == (4, 0)
    monkeypatch.undo()


def test_versions_of_triton_that_nobody_has_read_are_called_as_everybody_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton, "__version__", "9.0.0")
    log = Log()
    launches = two_launches(log)
    launches(DEVICE, [1, 2], tensors)
    launches(DEVICE, [5, 6], tensors)
    assert log.by_tensors[2:] == [
        ((4, 2, 1), (5, 7, (0.5, 6, None, (1.0, 2.0)), None, 16, "a"), {}),
        ((1, 1, 1), (6, 5, 8, None), {}),
    ]
    assert not log.by_addresses


def test_sections_do_not_overlap_and_lie_where_their_addresses_say() -> None:
    sections = {
        "a": Section(torch.float64, (3, 5)),
        "b": Section(torch.int32, (7,), zeroed=True),
        "c": Section(torch.float32, ()),
        "d": Section(torch.int32, (100,), zeroed=True),
    }
    store = Store(sections)
    numbers = store.allocate(torch.empty(0))
    views = store.views(numbers)
    assert not views["b"].any()
    assert not views["d"].any()
    for k, view in enumerate(views.values()):
        view.fill_(k + 1)
    assert [float(view.double().mean()) for view in views.values()] == [1, 2, 3, 4]
    assert [view.data_ptr() for view in views.values()] == store.addresses(numbers)
    assert all(address % 16 == numbers.data_ptr() % 16 for address in store.addresses(numbers))
    assert {name: (view.dtype, tuple(view.shape)) for name, view in views.items()} == {
        name: (section.dtype, section.shape) for name, section in sections.items()
    }


def test_a_first_launch_keeps_no_tensor_alive() -> None:
    """A loss that lives on holds its graph: the next backward pass could not be recorded on another stream."""

    class Forgetful(Kernel):
        def __getitem__(self, _: tuple[int, int, int]) -> Any:
            return lambda *_arguments, **_constants: self

    x = torch.ones(1)
    seen = weakref.ref(x)
    launch = Launch(Forgetful(1, Log(), False), (1, 1, 1), (("a", 1.0),), SIZE=1, KIND=None)
    gc.disable()
    try:
        launch.compile({"a": x})
        del x
        assert seen() is None
    finally:
        gc.enable()
