"""Jobs side by side: all of them once, lazily, with one thread each, and an error comes out."""

import threading

import pytest
import torch

from sohot._device import side_by_side

CPU = torch.device("cpu")


@pytest.fixture(params=[1, 3])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("count", [0, 1, 2, 20])
def test_every_job_is_done_once(threads, count):
    jobs = [lambda number=number: number for number in range(count)]
    assert sorted(side_by_side(jobs, CPU)) == list(range(count))
    assert torch.get_num_threads() == threads


def test_each_job_has_one_thread_and_a_lone_one_has_all(threads):
    assert set(side_by_side([torch.get_num_threads] * 9, CPU)) == {1}
    assert list(side_by_side([torch.get_num_threads], CPU)) == [threads]


def test_jobs_are_asked_for_when_there_is_room(threads):
    asked = []

    def jobs():
        for number in range(50):
            asked.append(number)
            yield lambda: None

    next(side_by_side(jobs(), CPU))
    assert len(asked) <= 2 * threads + 2


def test_an_error_comes_out_and_nothing_is_left(threads):
    def fail():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        list(side_by_side([lambda: 1, fail, *[lambda: 1] * 5], CPU))
    assert torch.get_num_threads() == threads
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("stack")]
