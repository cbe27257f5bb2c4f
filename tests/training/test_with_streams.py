"""Training against the real streams and batches, which the stand-in model may not be like."""

import pytest
import torch

from sohot import networks as streams
from sohot.data import batches
from sohot.methods import FitSettings
from sohot.training import TensorInputs, export_onnx, fit, predict_logits

SOURCE, TARGET = torch.randn(12, 1, 16, 16), torch.randn(6, 1, 16, 16)
SOURCE_LABELS, TARGET_LABELS = torch.arange(12) % 3, torch.arange(6) % 3


def build(**options):
    torch.manual_seed(0)
    backbone = streams.create_backbone("small-cnn", channels=1, pretrained=False, size=16)
    return streams.TwoStreams(backbone, num_classes=3, **options)


def train(model, source=SOURCE, target=TARGET, on_step=None, run_dir=None, resume=False, balanced=True, **options):
    settings = FitSettings(**{"steps": 6, "checkpoint_every": 2, "device": "cpu", "loggers": "none", **options})
    data = TensorInputs(source), SOURCE_LABELS, TensorInputs(target), TARGET_LABELS
    rows = batches.BalancedBatches(SOURCE_LABELS, TARGET_LABELS, 3, source_per_class=2) if balanced else None
    return fit(model, *data, settings, batches=rows, run_dir=run_dir, resume=resume, on_step=on_step)


@pytest.mark.parametrize("kind", [("shared", "shared"), ("separate", "shared"), ("separate", "coupled")])
@pytest.mark.parametrize("method", ["s", "t", "s+t", "m", "means", "so+to+fo+zeta"])
def test_every_kind_of_streams_trains(kind, method):
    model = build(streams=kind[0], heads=kind[1], norm_bound=100.0, trains="paper")
    before = predict_logits(model, TensorInputs(TARGET))
    result = train(model, method=method, steps=3, schedule="constant")
    assert result.history[-1]["clip_rate"] == 0
    assert not predict_logits(model, TensorInputs(TARGET)).allclose(before)  # what is tested is what has learned


def test_training_on_the_trunks_output_is_training_on_images():
    on_images, on_trunk = build(trains="paper"), build(trains="paper")
    trunk = on_trunk.trunk("target")
    with torch.no_grad():
        source, target = trunk(SOURCE), trunk(TARGET)
    train(on_images, method="so")
    train(on_trunk, source, target, method="so", from_trunk=True)
    found = predict_logits(on_trunk, TensorInputs(target), from_trunk=True)
    torch.testing.assert_close(found, predict_logits(on_images, TensorInputs(TARGET)), atol=1e-5, rtol=1e-5)


def test_what_is_exported_is_the_target_stream(tmp_path):
    model = build(streams="separate", heads="coupled", norm_bound=1.0)
    train(model, method="s+t", steps=2)
    assert export_onnx(model.target_only(), model.inputs["target"], tmp_path / "model.onnx") <= 1e-4
