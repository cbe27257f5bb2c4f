"""What made features: described, stored, built again, and told apart."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from sohot.runs.feature_network import FeatureNetwork, create_feature_backbone, differing

BACKBONE = create_feature_backbone("small-cnn", weights=None, channels=3, tap=None, size=16)


@pytest.mark.parametrize("views", [1, 4])
def test_a_description_comes_back_and_builds_the_network_again(views: int) -> None:
    described = FeatureNetwork.of(BACKBONE, views)
    stored = described.as_json()
    assert FeatureNetwork.from_json(stored) == described
    assert ("views" in stored) == (views > 1)  # files of one view are those of before
    images = torch.randn(2, 3, 16, 16)
    torch.testing.assert_close(described.build()(images), BACKBONE(images), atol=0, rtol=0)


def test_other_weights_are_refused_until_their_file_is_given(tmp_path: Path) -> None:
    state = {name: 2 * tensor for name, tensor in BACKBONE.state_dict().items()}
    save_file(state, tmp_path / "w.safetensors")
    other = create_feature_backbone(
        "small-cnn", weights=tmp_path / "w.safetensors", channels=3, tap="after-relu", size=16
    )
    described = FeatureNetwork.of(other)
    with pytest.raises(ValueError, match=r"by small-cnn with other weights .* give their file with --weights FILE"):
        described.build()
    assert FeatureNetwork.of(described.build(tmp_path / "w.safetensors")) == described
    with pytest.raises(ValueError, match=r"than those in .*w.safetensors"):
        FeatureNetwork.of(BACKBONE).build(tmp_path / "w.safetensors")


def test_damaged_descriptions_end_in_a_sentence() -> None:
    whole = FeatureNetwork.of(BACKBONE).as_json()
    for odd in ({}, {"backbone": "small-cnn"}, {**whole, "input": 3}, {**whole, "input": {"size": 8}}):
        with pytest.raises(ValueError, match="the network is not described in full"):
            FeatureNetwork.from_json(odd)
    with pytest.raises(ValueError, match="size must be"):
        FeatureNetwork.from_json({**whole, "input": {**whole["input"], "size": 10**9, "resize": 10**9}})
    with pytest.raises(ValueError, match="views must be"):
        FeatureNetwork.from_json({**whole, "views": "many"})


def test_the_first_difference_is_named() -> None:
    whole = FeatureNetwork.of(BACKBONE).as_json()
    assert differing(whole, dict(whole)) is None
    assert differing(whole, {**whole, "views": 1}) is None
    assert differing(whole, {**whole, "views": 2}) == "views 1 and 2"
    assert differing(whole, {**whole, "backbone": "lite0", "views": 2}) == "backbone 'small-cnn' and 'lite0'"
