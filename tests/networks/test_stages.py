import pytest
import torch
from torch import nn

from sohot.networks.stages import first_of_last_two_blocks, group_stages, split_in_stages


class Residual(nn.Module):
    """Adds in place, so that by its tensors alone it looks like a chain."""

    def __init__(self, width=4, skip=True):
        super().__init__()
        self.one, self.act, self.two = nn.Conv2d(width, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 1)
        self.skip = skip

    def forward(self, x):
        y = self.two(self.act(self.one(x)))
        if self.skip:
            y += x
        return y


class Net(nn.Module):
    def __init__(self, between=None):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True))
        self.layers = nn.Sequential(Residual(), nn.Sequential(Residual(), Residual(skip=False)))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.between = between

    def forward(self, x):
        x = self.layers(self.stem(x))
        if self.between is not None:
            x = self.between(x)
        return torch.flatten(self.pool(x), 1)


IMAGES = torch.randn(2, 3, 12, 12, generator=torch.Generator().manual_seed(0))


def test_stages_in_a_row_compute_what_the_network_does():
    torch.manual_seed(0)
    network = Net().eval()
    stages = split_in_stages(network, IMAGES)
    assert len(stages) == 4
    other = torch.randn(3, 3, 20, 20)
    torch.testing.assert_close(nn.Sequential(*stages)(other), network(other))


def test_the_modes_of_the_network_stay():
    network = Net().train()
    network.stem.eval()
    split_in_stages(network, IMAGES)
    assert network.layers[0].training
    assert not network.stem[1].training
    assert network.stem[1].num_batches_tracked == 0


@pytest.mark.parametrize("between", [lambda x: 2 * x, lambda x: x.mul_(2), torch.relu])
def test_a_step_between_modules_is_noticed(between):
    network = Net(between)
    assert split_in_stages(network, IMAGES) == [network]


def test_a_module_that_runs_twice_or_has_parameters_of_its_own_stays_whole():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Conv2d(3, 3, 1)

        def forward(self, x):
            return self.layer(self.layer(x)).flatten(1)

    class Scaled(nn.Sequential):
        def __init__(self):
            super().__init__(nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1))
            self.scale = nn.Parameter(torch.ones(1))

    for network in (Twice(), Scaled()):
        assert split_in_stages(network, IMAGES) == [network]


def test_plain_layers_count_where_there_are_no_blocks():
    stages = group_stages([nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)])
    assert first_of_last_two_blocks(stages) == 1
    assert first_of_last_two_blocks([nn.Linear(2, 2)]) is None
