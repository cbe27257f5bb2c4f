"""A network is rebuilt from its description."""

import json

import pytest
import torch

from sohot.runs import RunConfig
from sohot.runs.run_model import build_model, describe_model, rebuild_model

SMALL = {"backbone": "small-cnn", "from_scratch": True, "image_size": 16}


@pytest.mark.parametrize("options", [{}, {"cosine": 0.05}, {"cosine": 0.1, "heads": "coupled", "projection": 8}])
def test_a_rebuilt_network_with_the_same_weights_gives_the_same_answers(options: dict[str, object]) -> None:
    config = RunConfig(**SMALL, **options)
    model = build_model(config, 3)
    again = rebuild_model(json.loads(json.dumps(describe_model(config, model))), 3)
    again.load_state_dict(model.state_dict())
    images = torch.rand(4, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(again.predict(images), model.predict(images))


def test_descriptions_of_versions_without_this_option_have_a_linear_classifier() -> None:
    config = RunConfig(**SMALL)
    described = describe_model(config, build_model(config, 3))
    assert described.pop("cosine") is None
    assert rebuild_model(described, 3).cosine is None
