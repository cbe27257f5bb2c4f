"""Which device a name stands for."""

import pytest
import torch

from sohot._device import choose_device


@pytest.mark.parametrize(
    ("there", "kinds", "expected"),
    [({"cuda", "mps"}, None, "cuda"), ({"mps"}, None, "mps"), ({"mps"}, ("cuda", "cpu"), "cpu"), (set(), None, "cpu")],
)
def test_auto_is_the_best_device_that_will_do(monkeypatch, there, kinds, expected):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: "cuda" in there)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: "mps" in there)
    found = choose_device("auto") if kinds is None else choose_device("auto", kinds)
    assert found == torch.device(expected)


@pytest.mark.parametrize("name", ["cuda", "tpu"])
def test_a_device_that_is_not_there_is_named(monkeypatch, name):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match=f"--device {name}: this machine has no such device"):
        choose_device(name)
