import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from sohot.networks import TwoStreams, create_backbone

SOURCE, TARGET = (torch.randn(n, 1, 32, 32, generator=torch.Generator().manual_seed(n)) for n in (5, 3))


def build(**options):
    torch.manual_seed(0)
    return TwoStreams(create_backbone("small-cnn", channels=1), 4, **options)


def train(model, steps=3):
    optimiser = torch.optim.SGD(model.parameter_groups(lr=0.05))
    for _ in range(steps):
        optimiser.zero_grad()
        output = model.train()(SOURCE, TARGET)
        labels = torch.arange(5) % 4
        (nn.functional.cross_entropy(output.source_logits, labels) + output.target_logits.square().mean()).backward()
        optimiser.step()
    return model


ALL_KINDS = [
    {"streams": streams, "heads": heads, "trains": trains}
    for streams in ("shared", "separate")
    for heads in ("shared", "coupled")
    for trains in ("paper", "all", "head")
]


@pytest.mark.parametrize("options", ALL_KINDS, ids=lambda options: "-".join(options.values()))
def test_streams_are_tied_at_the_start(options):
    output = build(**options).eval()(SOURCE, SOURCE)
    assert torch.equal(output.source_features, output.target_features)
    assert torch.equal(output.source_logits, output.target_logits)
    assert output.clip_rate is None


def test_separate_streams_and_coupled_heads_part_in_training():
    model = train(build(streams="separate", heads="coupled")).eval()
    output = model(SOURCE, SOURCE)
    assert not torch.allclose(output.source_features, output.target_features)
    assert not torch.allclose(output.source_logits, output.target_logits)
    shared = train(build()).eval()(SOURCE, SOURCE)
    torch.testing.assert_close(shared.source_logits, shared.target_logits)


@pytest.mark.parametrize("streams", ["shared", "separate"])
def test_domains_do_not_see_each_other(streams):
    model = build(streams=streams).eval()
    both, alone = model(SOURCE, TARGET), model(SOURCE, None)
    torch.testing.assert_close(both.source_features, alone.source_features)
    torch.testing.assert_close(both.target_logits, model(None, TARGET).target_logits)
    assert alone.target_features is None
    assert alone.target_logits is None


def test_prediction_needs_the_target_stream_alone():
    model = train(build(streams="separate", heads="coupled", norm_bound=2.0))
    before = model.predict(TARGET)
    assert model.training
    assert not before.requires_grad
    torch.testing.assert_close(model.target_only()(TARGET), before)
    torch.testing.assert_close(model.predict(model.trunk("target")(TARGET), from_trunk=True), before)
    with torch.no_grad():
        for part in (model.tails["source"], model.heads["source"]):
            for parameter in part.parameters():
                parameter.fill_(float("nan"))
    assert torch.equal(model.predict(TARGET), before)


def test_what_is_exported_is_a_copy_in_evaluation_mode():
    model = build(streams="separate").train()
    alone = model.target_only()
    assert not any(module.training for module in alone.modules())
    assert sum(p.numel() for p in alone.parameters()) < sum(p.numel() for p in model.parameters())
    train(model, steps=1)
    assert not torch.allclose(alone(TARGET), model.predict(TARGET))


@pytest.mark.parametrize("options", ALL_KINDS, ids=lambda options: "-".join(options.values()))
def test_weights_survive_a_file_without_shared_tensors(options, tmp_path):
    model = train(build(**options), steps=1)
    save_file(model.state_dict(), tmp_path / "model.safetensors")  # refuses tensors that share memory
    other = build(**options)
    other.load_state_dict(load_file(tmp_path / "model.safetensors"))
    assert torch.equal(other.predict(TARGET), model.predict(TARGET))


def test_the_bound_holds_and_its_clip_rate_counts_both_domains():
    with torch.no_grad():
        free = build().eval()(SOURCE, TARGET)
    energies = torch.cat([free.source_features, free.target_features]).square().sum(1).sort().values
    bound = float(energies[1:3].mean())
    model = build(norm_bound=bound).eval()
    output = model(SOURCE, TARGET)
    assert output.clip_rate == torch.tensor(6 / 8)
    assert not output.clip_rate.requires_grad
    assert torch.cat([output.source_features, output.target_features]).square().sum(1).max() <= bound * 1.0001


def test_the_penalty_is_the_one_of_the_paper():
    model = train(build(heads="coupled"))
    ours, theirs = model.heads["source"].weight, model.heads["target"].weight
    expected = 0.1 * (ours.square().sum() + theirs.square().sum()) + 3 * (ours - theirs).square().sum()
    torch.testing.assert_close(model.head_penalty(0.1, 3.0), expected)
    assert build(heads="coupled").head_penalty(0.0, 1.0) == 0
    single = build()
    torch.testing.assert_close(single.head_penalty(0.1, 3.0), 0.1 * single.heads["both"].weight.square().sum())
    assert model.head_penalty(0.1, 3.0).requires_grad


def test_groups_hold_every_trained_parameter_once():
    model = build(streams="separate", heads="coupled", projection=8)
    groups = model.parameter_groups(0.01, head_factor=5.0)
    assert {group["name"]: group["lr"] for group in groups} == {"tail": 0.01, "projection": 0.05, "head": 0.05}
    grouped = [id(parameter) for group in groups for parameter in group["params"]]
    assert sorted(grouped) == sorted(id(p) for p in model.parameters() if p.requires_grad)


def test_domains_may_have_their_own_channels():
    model = TwoStreams(
        create_backbone("small-cnn", channels=1), 4, source=create_backbone("small-cnn", channels=3), streams="separate"
    )
    output = model(torch.randn(2, 3, 32, 32), TARGET)
    assert output.source_features.shape == (2, 128)
    assert model.inputs["source"].channels == 3
    assert model.inputs["target"].channels == 1
    for ours, theirs in zip(model.tails["source"].parameters(), model.tails["target"].parameters(), strict=True):
        assert torch.equal(ours, theirs)  # tied as far as the layers have one shape


def test_a_grey_and_a_colour_network_are_tied_completely():
    grey, colour = (create_backbone("timm:resnet18", pretrained=False, size=64, channels=n) for n in (1, 3))
    model = TwoStreams(grey, 4, source=colour, streams="separate").eval()
    rows = torch.randn(2, 3, 64, 64)
    shown = model.trunk("target")[0][0](rows[:, :1])  # the grey image in colour
    torch.testing.assert_close(model(shown, None).source_features, model(None, rows[:, :1]).target_features)


def test_features_of_two_sizes_need_a_projection():
    def parts():
        return create_backbone("small-cnn"), create_backbone("timm:resnet18", pretrained=False, size=64)

    target, source = parts()
    with pytest.raises(ValueError, match=r"small-cnn: 128\) differ in size: pass projection=SIZE"):
        TwoStreams(target, 4, source=source, streams="separate")
    target, source = parts()
    model = TwoStreams(target, 4, source=source, streams="separate", projection=16, norm_bound=1.0)
    output = model(torch.randn(2, 3, 64, 64), torch.randn(3, 3, 32, 32))
    assert output.source_features.shape == (2, 16)
    assert output.target_features.shape == (3, 16)
    images = TARGET.expand(-1, 3, -1, -1)
    torch.testing.assert_close(model.target_only()(images), model.predict(images))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"streams": "two"}, "streams must be one of 'shared', 'separate', got 'two'"),
        ({"heads": "two"}, "heads must be one of 'shared', 'coupled'"),
        ({"trains": "some"}, "trains must be one of 'paper', 'all', 'head'"),
        ({"batch_norm": "on"}, "batch_norm must be one of"),
        ({"norm_bound": 0}, "norm_bound must be above 0"),
        ({"norm_bound": -1.0}, "norm_bound must be a finite number"),
        ({"projection": 0}, "projection must be an integer of at least 1, got 0"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        build(**options)


def test_bad_calls_are_named():
    model, backbone = build(), create_backbone("small-cnn", channels=1)
    with pytest.raises(ValueError, match="both are None"):
        model(None, None)
    with pytest.raises(ValueError, match=r"target images must have the shape \(rows, 1, .* got \(2, 3, 32, 32\)"):
        model(SOURCE, torch.zeros(2, 3, 32, 32))
    with pytest.raises(ValueError, match="domain must be one of 'source', 'target', got 'both'"):
        model.trunk("both")
    with pytest.raises(ValueError, match="num_classes must be an integer of at least 1, got 0"):
        TwoStreams(backbone, 0)
    with pytest.raises(ValueError, match="a source needs streams='separate'"):
        TwoStreams(backbone, 4, source=create_backbone("small-cnn", channels=1))
    with pytest.raises(ValueError, match="the same Backbone object"):
        TwoStreams(backbone, 4, source=backbone, streams="separate")
