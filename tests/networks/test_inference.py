"""Batches through a network: all rows, in order, the same whatever the number of threads."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from sohot.networks.inference import run_batches

CPU = torch.device("cpu")


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Dropout())


def batches() -> list[Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(rows, 3, 6, 6, generator=generator) for rows in (20, 1, 8, 9, 33)]


@pytest.mark.usefixtures("two_threads")
def test_outputs_come_in_order_and_in_the_shape_of_the_batches() -> None:
    net = network()
    found = list(run_batches(net, batches(), CPU))
    assert not net.training
    assert [len(rows) for rows in found] == [20, 1, 8, 9, 33]
    assert not any(rows.requires_grad for rows in found)
    with torch.no_grad():
        torch.testing.assert_close(torch.cat(found), net(torch.cat(batches())))


@pytest.mark.usefixtures("two_threads")
def test_the_number_of_threads_changes_no_bit() -> None:
    two = torch.cat(list(run_batches(network(), batches(), CPU)))
    torch.set_num_threads(1)
    assert torch.equal(two, torch.cat(list(run_batches(network(), batches(), CPU))))


@pytest.mark.usefixtures("two_threads")
def test_batches_are_not_all_read_ahead() -> None:
    read = 0

    def many() -> Iterator[Tensor]:
        nonlocal read
        for _ in range(50):
            read += 1
            yield torch.ones(8, 3, 6, 6)

    next(iter(run_batches(network(), many(), CPU)))
    assert read < 10


@pytest.mark.usefixtures("two_threads")
def test_an_error_while_reading_reaches_the_caller() -> None:
    def broken() -> Iterator[Tensor]:
        yield torch.ones(8, 3, 6, 6)
        raise ValueError("mug/3.jpg cannot be read")

    with pytest.raises(ValueError, match="cannot be read"):
        list(run_batches(network(), broken(), CPU))


def test_nothing_gives_nothing() -> None:
    assert list(run_batches(network(), [], CPU)) == []


def test_a_network_in_double_precision_takes_rows_in_single_precision() -> None:
    assert next(run_batches(network().double(), [torch.ones(2, 3, 6, 6)], CPU)).dtype == torch.float64
