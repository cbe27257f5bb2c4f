from types import SimpleNamespace

import onnxruntime
import pytest
import torch
from torch import nn

from sohot.training import ExportError, export_onnx
from sohot.training import export as export_module

SPEC = SimpleNamespace(size=8, channels=1)


@pytest.fixture
def network():
    torch.manual_seed(0)
    layers = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dropout(0.5), nn.Linear(144, 3)
    return nn.Sequential(*layers)


@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_the_file_does_what_the_network_does(network, tmp_path, temperature):
    file = tmp_path / "model.onnx"
    network.train()
    assert export_onnx(network, SPEC, file, metadata={"classes": "a,b,c"}, temperature=temperature) <= 1e-4
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]
    assert network.training
    session = onnxruntime.InferenceSession(str(file))
    assert session.get_modelmeta().custom_metadata_map["classes"] == "a,b,c"
    for rows in (1, 2, 7):
        images = torch.randn(rows, 1, 8, 8)
        (logits,) = session.run(["logits"], {"images": images.numpy()})
        expected = network.eval()(images).detach() / temperature
        torch.testing.assert_close(torch.as_tensor(logits), expected, atol=1e-4, rtol=0)


def test_a_file_that_disagrees_is_not_written(network, tmp_path, monkeypatch):
    monkeypatch.setattr(export_module, "_difference", lambda *_: 0.5)
    (tmp_path / "model.onnx").write_text("the one before")
    with pytest.raises(ExportError, match=r"differs from PyTorch by 0.5, more than 0.0001"):
        export_onnx(network, SPEC, tmp_path / "model.onnx")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["the one before"]


def test_a_network_that_cannot_be_exported_is_named(tmp_path):
    class Odd(nn.Module):
        def forward(self, x):
            return x.flatten(1) if x.sum() > 0 else -x.flatten(1)

    with pytest.raises(ExportError, match="cannot be exported to ONNX"):
        export_onnx(Odd(), SPEC, tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


def test_bad_files_are_named(network, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"the folder of .* does not exist"):
        export_onnx(network, SPEC, tmp_path / "missing" / "model.onnx")
    with pytest.raises(ValueError, match="is a folder"):
        export_onnx(network, SPEC, tmp_path)
