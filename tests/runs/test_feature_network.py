"""What made features: described, stored, built again, and told apart."""

import pytest

from sohot.runs.feature_network import FeatureNetwork, create_feature_backbone, differing

BACKBONE = create_feature_backbone("small-cnn", weights=None, channels=3, tap=None, size=16)


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
