"""The networks that we recommend: what the table says is what timm and the models say."""

from pathlib import Path

import pytest
import torch

from sohot._torchvision import import_torchvision
from sohot.networks import RECOMMENDED, create_backbone, find_recommended
from sohot.networks.any_network import TokenFeatures, with_token_features
from sohot.networks.recommended import TOKENS

import_torchvision()
timm = pytest.importorskip("timm")
FROM_TIMM = [network for network in RECOMMENDED if network.timm is not None]
PERMISSIVE = {"Apache-2.0", "MIT", "BSD-3-Clause"}


@pytest.mark.parametrize("network", FROM_TIMM, ids=lambda network: network.name)
def test_the_table_says_what_timm_says(network):
    config = timm.get_pretrained_cfg(network.timm)
    assert config.license == network.licence.lower()
    assert config.hf_hub_id  # so that it can be downloaded
    with torch.device("meta"):  # no numbers, no time
        model = timm.create_model(network.timm)
        assert isinstance(with_token_features(model), TokenFeatures) == (network.features == TOKENS)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    assert network.megabytes == round(4 * parameters / 1e6)
    norms = [module for module in model.modules() if isinstance(module, torch.nn.modules.batchnorm._BatchNorm)]
    assert bool(norms) == network.batch_norm


def test_names_and_licences():
    assert {network.licence for network in RECOMMENDED} <= PERMISSIVE
    for network in RECOMMENDED:
        assert find_recommended(network.name) is network
        assert find_recommended(f"timm:{network.timm}") is (network if network.timm else None)
    assert find_recommended("timm:resnet18") is None


def test_a_short_name_is_timms_network_with_images_of_our_side():
    backbone = create_backbone("convnext-nano", pretrained=False)
    assert (backbone.name, backbone.input.size, backbone.feature_size) == ("convnext-nano", 224, 640)
    assert backbone.input.resize == find_recommended("convnext-nano").resize


@pytest.mark.parametrize("name", ["lite0", "dinov2-small"])
def test_the_centre_is_cut_out_of_a_larger_image(name):
    backbone = create_backbone(name, pretrained=False, size=56)
    assert (backbone.input.size, backbone.input.resize) == (56, 64)  # as 224 of 256


def test_the_documentation_has_the_table():
    page = (Path(__file__).parents[2] / "docs" / "networks.md").read_text(encoding="utf-8")
    for network in RECOMMENDED:
        values = (network.side, network.features, network.megabytes, f"{network.cost:g}", network.licence)
        row = next(line for line in page.splitlines() if line.startswith(f"| `{network.name}` |"))
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert cells[1:6] == [str(value) for value in values]
        assert cells[6:8] == [network.publisher, network.trained_on]
