"""Batch normalisation over ranks: what is replaced for a time, and what is refused."""

import pytest
import torch
from torch import nn

from sohot.training.batch_norm import synchronised_batch_norm
from sohot.training.ranks import Ranks

CPU, GPU = torch.device("cpu"), torch.device("cuda")
TWO = Ranks(count=2)


def network():
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Sequential(nn.BatchNorm2d(2)))


def test_layers_are_replaced_for_a_time_and_keep_their_tensors():
    model = network()
    before, names = list(model.modules()), list(model.state_dict())
    with synchronised_batch_norm(model, TWO, GPU):
        assert all(type(layer) is nn.SyncBatchNorm for layer in (model[1], model[2][0]))
        assert model[1].weight is before[2].weight
        assert list(model.state_dict()) == names
        model.double()
        model[1].running_mean.fill_(3.0)
    assert list(model.modules()) == before
    assert model[1].running_mean.tolist() == [3.0, 3.0]
    assert model[1].running_mean.dtype == torch.float64


def test_one_rank_and_statistics_that_stand_still_are_left_alone():
    model = network()
    with synchronised_batch_norm(model, Ranks(), CPU):
        assert type(model[1]) is nn.BatchNorm2d

    class Fixed(nn.Sequential):
        def train(self, mode=True):
            super().train(mode)
            return super().train(False)

    fixed = Fixed(nn.BatchNorm2d(2))
    for device in (CPU, GPU):
        with synchronised_batch_norm(fixed, TWO, device):
            assert type(fixed[0]) is nn.BatchNorm2d


def test_in_evaluation_it_is_the_layer_it_replaces():
    model = network().eval()
    x = torch.randn(3, 1, 8, 8)
    wanted = model(x)
    with synchronised_batch_norm(model, TWO, GPU):
        assert not model[1].training
        torch.testing.assert_close(model(x), wanted)


def test_processes_without_a_gpu_are_refused():
    message = "on several processes only on NVIDIA GPUs: use one process, or fix their statistics .* --batch-norm fixed"
    with pytest.raises(ValueError, match=message), synchronised_batch_norm(network(), TWO, CPU):
        pass


def test_layers_of_another_kind_are_named():
    class WithActivation(nn.BatchNorm2d):
        pass

    message = "WithActivation cannot use batch statistics on several devices: fix their statistics"
    with pytest.raises(ValueError, match=message), synchronised_batch_norm(nn.Sequential(WithActivation(2)), TWO, GPU):
        pass
