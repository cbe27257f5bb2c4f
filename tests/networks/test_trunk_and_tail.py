import pytest
import torch

from sohot.networks import TwoStreams, create_backbone


def buffers(module):
    return {name: tensor.clone() for name, tensor in module.named_buffers()}


def equal(left, right):
    return all(torch.equal(left[name], right[name]) for name in left)


def step(model, size):
    """One step of training on both domains, with weight decay, which would move whatever it is given."""
    optimiser = torch.optim.SGD(model.parameter_groups(lr=0.1), weight_decay=0.1)
    output = model.train()(torch.randn(4, 3, size, size), torch.randn(3, 3, size, size))
    (output.source_logits.square().mean() + output.target_features.square().mean()).backward()
    optimiser.step()


@pytest.mark.parametrize("trains", ["paper", "head"])
@pytest.mark.parametrize("streams", ["shared", "separate"])
def test_the_frozen_part_does_not_change_in_training(trains, streams):
    model = TwoStreams(create_backbone("lite0", size=64), 3, trains=trains, streams=streams)
    trunk = model.trunk("source")
    before = {name: tensor.clone() for name, tensor in trunk.state_dict().items()}
    step(model, 64)
    assert before
    assert equal(before, trunk.state_dict())
    assert all(parameter.grad is None and not parameter.requires_grad for parameter in trunk.parameters())
    assert not any(module.training for module in trunk.modules())


def test_the_rest_does_change():
    model = TwoStreams(create_backbone("lite0", size=64), 3, trains="paper")
    before = {name: tensor.clone() for name, tensor in model.named_parameters() if tensor.requires_grad}
    step(model, 64)
    after = dict(model.named_parameters())
    assert before.keys() == {name for name in after if not name.startswith("trunks.")}
    assert not any(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize(
    ("batch_norm", "pretrained", "fixed"),
    [("auto", True, True), ("auto", False, False), ("fixed", False, True), ("moving", True, False)],
)
def test_statistics_of_the_tail_move_unless_fixed(batch_norm, pretrained, fixed):
    backbone = create_backbone("lite0", size=64, pretrained=pretrained)
    model = TwoStreams(backbone, 3, trains="paper", batch_norm=batch_norm)
    before = buffers(model.tails)
    step(model, 64)
    assert before
    assert equal(before, buffers(model.tails)) is fixed


def test_fixed_statistics_need_no_call_of_train():
    model = TwoStreams(create_backbone("lite0", size=64), 3)
    before = buffers(model.tails)
    model(None, torch.randn(2, 3, 64, 64))
    assert equal(before, buffers(model.tails))


def test_trains_all_freezes_nothing_and_head_everything():
    everything = TwoStreams(create_backbone("small-cnn"), 3, trains="all")
    assert len(everything.trunk("target")) == 0
    assert all(parameter.requires_grad for parameter in everything.parameters())
    head = TwoStreams(create_backbone("small-cnn"), 3, trains="head")
    assert [group["name"] for group in head.parameter_groups(1.0)] == ["head"]
    assert {name for name, p in head.named_parameters() if p.requires_grad} == {"heads.both.weight", "heads.both.bias"}
