"""A vision transformer from training to labels, without and with published weights, and without the hub."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from command_line import Domains, Ended, newest, weights
from real_data import WEIGHTS
from safetensors.torch import load_file, save_file

from sohot._torchvision import import_torchvision
from sohot.networks import create_backbone

Call = Callable[..., Ended]
DINO = WEIGHTS / "dinov2_vits14_fp16.safetensors"
needs_dino = pytest.mark.skipif(
    not DINO.is_file(), reason=f"needs {DINO.name}: set SOHOT_WEIGHTS to the folder that holds it"
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Weights of a transformer with six small blocks, for images of 160 x 160."""
    import_torchvision()
    timm = pytest.importorskip("timm")
    torch.manual_seed(3)
    save_file(timm.create_model("test_vit", num_classes=0).state_dict(), tmp_path / "vit.safetensors")
    return tmp_path / "vit.safetensors"


def test_a_run_needs_neither_its_file_of_weights_nor_the_hub(
    sohot: Call, domains: Domains, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, network = tmp_path / "run", ("--backbone", "timm:test_vit", "--image-size", "32")
    options = (*domains.options(), *network, "--weights", file, "--shots", "2", "--keep", "layers", "--quiet")
    assert sohot("fit", *options, "--steps", "3", "--checkpoint-every", "2", "--out", run).code == 0
    before = weights(run)
    shutil.rmtree(newest(run))
    assert sohot("fit", "--resume", "--out", run, "--quiet").code == 0
    assert weights(run) == before
    file.unlink()
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("a connection was tried"))
    labelled = sohot("predict", run, domains.test, "--json")
    assert (labelled.code, labelled.json["labelled"]) == (0, 12)
    packed = sohot("export", run, "--package", tmp_path / "package", "--json")
    assert packed.code == 0
    assert packed.json["network"] == {"name": "timm:test_vit"}
    assert packed.json["largest_difference"] < 1e-3


def test_the_two_ways_to_features_agree(sohot: Call, domains: Domains, file: Path, tmp_path: Path) -> None:
    options = ("--backbone", "timm:test_vit", "--image-size", "32", "--weights", file, "--quiet")
    assert sohot("features", domains.test, *options, "--out", tmp_path / "f.npz").code == 0
    assert np.load(tmp_path / "f.npz")["features"].shape == (12, 2 * 64)
    refused = sohot("features", domains.test, *options[:3], "40", *options[4:], "--out", tmp_path / "g.npz")
    assert refused.code == 2
    assert "whose patches are 16 pixels wide: choose 32 or 48" in refused.last


def test_a_truncated_file_and_one_of_another_network_end_in_a_sentence(
    sohot: Call, domains: Domains, file: Path, tmp_path: Path
) -> None:
    options = (*domains.options(), "--shots", "2", "--image-size", "28", "--weights", file, "--out", tmp_path / "run")
    other = sohot("fit", *options, "--backbone", "dinov2-small")
    assert other.code == 2
    assert "do not fit the backbone dinov2-small" in other.last
    assert other.last.endswith("make the file by `sohot weights NAME --out FILE`, or copy it again")
    file.write_bytes(file.read_bytes()[:100_000])
    truncated = sohot("fit", *options, "--backbone", "dinov2-small")
    assert truncated.code == 2
    assert "damaged" in truncated.last
    assert truncated.last.endswith("make the file by `sohot weights NAME --out FILE`, or copy it again")


@needs_dino
def test_published_weights_give_what_timm_computes() -> None:
    timm = pytest.importorskip("timm")
    with torch.device("meta"):
        whole = timm.create_model("vit_small_patch14_dinov2.lvd142m", dynamic_img_size=True).eval()
    whole.load_state_dict({key: tensor.float() for key, tensor in load_file(DINO).items()}, assign=True)
    backbone = create_backbone("dinov2-small", weights=DINO, size=28).eval()
    assert (backbone.feature_size, len(backbone.stages), backbone.first_trainable["paper"]) == (768, 13, 11)
    images = torch.randn(2, 3, 28, 28)
    with torch.no_grad():
        tokens = whole.forward_features(images)
        expected = torch.cat([tokens[:, 0], tokens[:, 1:].mean(1)], dim=1)
        torch.testing.assert_close(backbone(images), expected, rtol=1e-4, atol=1e-4)
