import threading

import pytest
import torch

from sohot.training.inputs import ReadAhead
from sohot.training.randomness import random_state, reproducible

GPU = torch.device("cuda", 0)


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch):
    """Reading ahead needs a GPU to choose, not to work."""
    monkeypatch.setattr(torch.cuda, "set_device", lambda _: None)


class Reader:
    def __init__(self):
        self.steps, self.threads = [], set()

    def __call__(self, step):
        self.steps.append(step)
        self.threads.add(threading.current_thread())
        return step, torch.rand(1).item()


def test_the_next_batch_is_read_and_none_beyond_the_last():
    reader = Reader()
    ahead = ReadAhead(reader, last=3, gpu=GPU)
    assert [ahead.batch(step)[0] for step in range(3)] == [0, 1, 2]
    ahead.close()
    assert reader.steps == [0, 1, 2]
    assert len(reader.threads) == 2


def test_a_step_that_was_not_expected_is_read_anew():
    ahead = ReadAhead(Reader(), last=9, gpu=GPU)
    assert [ahead.batch(step)[0] for step in (0, 5, 6)] == [0, 5, 6]
    ahead.close()


def test_draws_and_states_are_those_of_reading_in_order():
    def draws(gpu):
        with reproducible(3, "cpu"):
            ahead = ReadAhead(Reader(), last=4, gpu=gpu)
            found = [(ahead.batch(step), ahead.random_state()) for step in range(4)]
            ahead.close()
            return found, random_state()

    in_order, read_ahead = draws(None), draws(GPU)
    assert read_ahead == in_order


def test_an_error_comes_with_its_step():
    def read(step):
        if step == 1:
            raise OSError("cannot be read")
        return step

    ahead = ReadAhead(read, last=3, gpu=GPU)
    assert ahead.batch(0) == 0
    with pytest.raises(OSError, match="cannot be read"):
        ahead.batch(1)
    ahead.close()
