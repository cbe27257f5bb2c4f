"""A network is rebuilt from its description."""

import json

import pytest
import torch

from sohot.runs import RunConfig
from sohot.runs.run_model import build_model, describe_model, rebuild_model

SMALL = {"backbone": "small-cnn", "from_scratch": True, "image_size": 16}


@pytest.mark.parametrize("options", [{}, {"heads": "coupled", "projection": 8}])
def test_a_rebuilt_network_with_the_same_weights_gives_the_same_answers(options: dict[str, object]) -> None:
    config = RunConfig(**SMALL, **options)
    model = build_model(config, 3)
    again = rebuild_model(json.loads(json.dumps(describe_model(config, model))), 3)
    again.load_state_dict(model.state_dict())
    images = torch.rand(4, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(again.predict(images), model.predict(images))
