"""Settings for all tests."""

import os

import hypothesis
import pytest
import torch

# The same examples on every run in CI, new ones at a developer's desk.
hypothesis.settings.register_profile("ci", derandomize=True, deadline=None, max_examples=50)
hypothesis.settings.register_profile("desk", deadline=None, max_examples=50)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "desk")

torch.set_num_threads(1)  # tests run side by side in processes


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)
