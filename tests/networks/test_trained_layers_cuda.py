"""Layers that train together, on a GPU, against their parts. Skipped without one."""

from copy import deepcopy

import pytest
import torch

from sohot.networks.trained_layers import trained_layers

from .trained_layers_cases import CASES, error, made, with_gradients

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("half", [False, True])
def test_outputs_and_gradients_are_those_of_the_parts(name, half):
    model = made(CASES[name]())
    exact_model = deepcopy(model).double()
    model.cuda()
    images = torch.randn(5, 3, 9, 8, device="cuda", requires_grad=True)
    exact = with_gradients(exact_model, images.detach().cpu().double().requires_grad_())
    with trained_layers(model, images.device), torch.autocast("cuda", torch.bfloat16, enabled=half):
        assert "forward" in model.__dict__
        together = with_gradients(model, images)
    for one, other in zip(exact, together, strict=True):
        assert error(one, other.cpu().double()) < (4e-2 if half else 2e-3)  # convolutions use tf32
