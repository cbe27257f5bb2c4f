"""Two passes: the mean of two networks that differ in the statistics of batch normalisation alone."""

from copy import deepcopy

import pytest
import torch
from torch import fx, nn

from sohot.data import InputSpec
from sohot.networks import Backbone, TwoStreams, create_backbone
from sohot.networks.fusion import fuse_layers
from sohot.networks.inference import run_batches
from sohot.networks.two_passes import (
    TwoPasses,
    copy_second,
    estimate_statistics,
    in_two_copies,
    passes_of,
    statistics_of,
)
from sohot.training import export_onnx

SPEC = InputSpec(8, (0.5,) * 3, (0.5,) * 3, 8)
CPU = torch.device("cpu")


def backbone() -> Backbone:
    torch.manual_seed(0)
    stages = [
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()),
        nn.Sequential(nn.Conv2d(4, 5, 3), nn.BatchNorm2d(5), nn.ReLU()),
        nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(5, 6), nn.BatchNorm1d(6)),
    ]
    return Backbone("tiny", stages, SPEC, paper=1, pretrained=True)


def model_of(batch_norm: str, trains: str = "paper", **more) -> TwoStreams:
    torch.manual_seed(1)
    return TwoStreams(backbone(), 3, trains=trains, batch_norm=batch_norm, **more).eval()


def passes(model: TwoStreams, domain: str = "target") -> list[TwoPasses]:
    return [*passes_of(model.trunk(domain), model.tails.of(domain))]


def adapted(trains: str = "paper", **more) -> TwoStreams:
    """Return a model whose second passes have statistics of their own."""
    model = model_of("both", trains, **more)
    random = torch.Generator().manual_seed(2)
    for domain in ("source", "target"):
        for one in passes(model, domain):
            one.set_second({name: torch.rand(old.shape, generator=random) + 0.5 for name, old in one.second().items()})
    return model


def images(count: int = 5) -> torch.Tensor:
    return torch.randn(count, 3, 8, 8, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("trains", ["paper", "head", "all"])
@pytest.mark.parametrize("streams", ["shared", "separate"])
def test_equal_statistics_change_nothing(trains, streams):
    given, both = (model_of(kind, trains, streams=streams)(images(), images(4)) for kind in ("fixed", "both"))
    for one, other in zip(given[:4], both[:4], strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("trains", ["paper", "head", "all"])
def test_features_are_the_mean_over_two_networks(trains):
    model = adapted(trains)
    networks = [nn.Sequential(*(deepcopy(one.stages) for one in passes(model))) for _ in range(2)]
    for stages, one in zip(networks[1], passes(model), strict=True):
        stages.load_state_dict(one.second(), strict=False)
    expected = torch.stack([network.eval()(images()) for network in networks]).mean(0)
    torch.testing.assert_close(model(None, images()).target_features, expected)
    torch.testing.assert_close(model.target_only()(images()), model.predict(images()))


def test_gradients_are_those_of_both_passes():
    model = adapted().double()
    rows = model.trunk("target")(images(3).double())
    weight = next(model.tails.of("target").parameters())

    def features(value):
        return torch.func.functional_call(model.tails.of("target"), {"stages.0.stages.0.0.weight": value}, (rows,))

    assert torch.autograd.gradcheck(features, [weight.detach().requires_grad_()])


def test_training_moves_the_weights_and_no_statistics():
    model = adapted().train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    optimiser = torch.optim.SGD(model.parameter_groups(lr=0.1))
    model(images(), images(4)).source_logits.square().mean().backward()
    optimiser.step()
    changed = {name for name, value in model.state_dict().items() if not value.equal(before[name])}
    assert changed
    assert changed <= {name for name, _ in model.named_parameters()}


def test_weights_are_stored_once_and_load_into_another():
    model, other = adapted(), model_of("both")
    tensors = model.state_dict()
    assert len({value.data_ptr() for value in tensors.values() if value.numel() > 1}) == sum(
        value.numel() > 1 for value in tensors.values()
    )
    other.load_state_dict(tensors)
    torch.testing.assert_close(other.predict(images()), model.predict(images()))
    copy_second(model, fresh := model_of("both"))
    torch.testing.assert_close(fresh.predict(images()), model.predict(images()))


def test_copies_of_their_own_compute_the_same_and_can_be_fused_run_by_threads_and_exported(tmp_path):
    model = adapted()
    network, expected = model.target_only(), model.predict(images(20))
    copies = in_two_copies(network)
    torch.testing.assert_close(copies(images(20)), expected)
    assert in_two_copies(plain := model_of("fixed")) is plain
    assert not list(passes_of(copies))
    fused = fuse_layers(copies, images(1))
    assert fused is not copies
    torch.testing.assert_close(fused(images(20)), expected, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(torch.cat([*run_batches(network, [images(20)], CPU)]), expected, atol=1e-5, rtol=1e-4)
    outputs = model.trunk("target")(images(20))
    tail = model.tails.of("target")
    torch.testing.assert_close(torch.cat([*run_batches(tail, [outputs], CPU)]), tail(outputs), atol=1e-5, rtol=1e-4)
    assert export_onnx(network, SPEC, tmp_path / "model.onnx") < 1e-4


def test_a_tracer_would_lose_the_second_pass_and_is_refused():
    model = adapted()
    with pytest.raises(TypeError, match="two passes"):
        fx.Tracer().trace(passes(model)[0])


def test_estimated_statistics_are_those_of_the_images_by_layers_that_use_them():
    model = model_of("both")
    found = estimate_statistics(passes(model), [images(20)], CPU)
    first, second = passes(model)
    outputs = first.stages[0][0](images(20))
    torch.testing.assert_close(found[0]["0.1.running_mean"], outputs.mean((0, 2, 3)))
    torch.testing.assert_close(found[0]["0.1.running_var"], outputs.transpose(0, 1).flatten(1).var(1))
    norm = first.stages[0][1]
    normalised = nn.functional.batch_norm(outputs, None, None, norm.weight, norm.bias, training=True).relu()
    torch.testing.assert_close(found[1]["0.1.running_mean"], second.stages[0][0](normalised).mean((0, 2, 3)))
    own = statistics_of(first.stages)
    assert all(value.equal(own[name]) for name, value in first.second().items())  # nothing was set


def test_statistics_are_means_over_batches():
    model = model_of("both")
    parts = [estimate_statistics(passes(model), [batch], CPU) for batch in images(20).chunk(2)]
    whole = estimate_statistics(passes(model), images(20).chunk(2), CPU)
    for name, value in whole[0].items():
        torch.testing.assert_close(value, (parts[0][0][name] + parts[1][0][name]) / 2)


def test_networks_without_batch_normalisation_or_of_one_domain_are_refused():
    with pytest.raises(ValueError, match="needs a network with batch normalisation"):
        TwoStreams(create_backbone("small-cnn", size=16), 3, batch_norm="both")
    with pytest.raises(ValueError, match="needs one network for both domains"):
        TwoStreams(backbone(), 3, source=backbone(), streams="separate", batch_norm="both")
