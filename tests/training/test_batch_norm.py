"""Batch normalisation over ranks; that it gives what one rank gives is seen in test_ddp.py."""

import pytest
import torch
from torch import nn

from sohot.training.batch_norm import batch_norm_over_ranks
from sohot.training.ranks import Ranks

CPU = torch.device("cpu")
TWO = Ranks(count=2)


def network():
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Sequential(nn.BatchNorm2d(2)))


def test_layers_are_replaced_for_a_time_and_keep_their_tensors():
    model = network()
    before, names = list(model.modules()), list(model.state_dict())
    with batch_norm_over_ranks(model, TWO, CPU):
        assert type(model[1]) is not nn.BatchNorm2d
        assert model[1].weight is before[2].weight
        assert list(model.state_dict()) == names
        model.double()
        model[1].running_mean.fill_(3.0)
    assert list(model.modules()) == before
    assert model[1].running_mean.tolist() == [3.0, 3.0]
    assert model[1].running_mean.dtype == torch.float64


def test_one_rank_and_statistics_that_stand_still_are_left_alone():
    model = network()
    with batch_norm_over_ranks(model, Ranks(), CPU):
        assert type(model[1]) is nn.BatchNorm2d

    class Fixed(nn.Sequential):
        def train(self, mode=True):
            super().train(mode)
            return super().train(False)

    fixed = Fixed(nn.BatchNorm2d(2))
    with batch_norm_over_ranks(fixed, TWO, CPU):
        assert type(fixed[0]) is nn.BatchNorm2d


def test_in_evaluation_it_is_the_layer_it_replaces():
    model = network().eval()
    x = torch.randn(3, 1, 8, 8)
    wanted = model(x)
    with batch_norm_over_ranks(model, TWO, CPU):
        assert not model[1].training
        torch.testing.assert_close(model(x), wanted)


def test_layers_of_another_kind_are_named():
    class WithActivation(nn.BatchNorm2d):
        pass

    message = "WithActivation cannot use batch statistics on several devices: fix its statistics"
    with pytest.raises(ValueError, match=message), batch_norm_over_ranks(nn.Sequential(WithActivation(2)), TWO, CPU):
        pass
