"""The stacked objective: value and gradient of the modules that train one model."""

import pytest
import torch
from made_up_problems import problem
from standin import Output
from torch import Tensor
from torch.testing import assert_close

from sohot.heads.layout import lay_out
from sohot.heads.network import Shape
from sohot.heads.objective import StackedObjective
from sohot.methods import METHOD_NAMES, OTHER_NAMES, FitSettings, HeadSettings
from sohot.training import Objective

EXACT = {"rtol": 1e-9, "atol": 1e-9}


@pytest.mark.parametrize("name", [name for name in (*METHOD_NAMES, *OTHER_NAMES) if name not in ("s", "t")])
@pytest.mark.parametrize(("target_weight", "estimator"), [(None, "plugin"), (0.7, "plugin"), (None, "unbiased")])
def test_loss_and_gradient_are_those_of_the_objective_of_one_model(name, target_weight, estimator):
    data = problem(0, (5, 1, 3), (3, 2, 0), size=4)
    common = {"method": name, "sigma1": 0.3, "sigma2": 0.2, "target_weight": target_weight, "coupling": 0.05}
    common["estimator"] = estimator
    settings = HeadSettings(**common, head_decay=0.01, streams="separate", heads="coupled")
    layout = lay_out([(data.source_labels, data.target_labels)], 3)
    shape = Shape(4, 3, "separate", "coupled", None, two_domains=True)
    objective = StackedObjective([settings], shape, layout, layout.fill([data.source], [data.target]))
    generator = torch.Generator().manual_seed(1)

    def draw(*size: int) -> Tensor:
        return torch.randn(*size, generator=generator, dtype=torch.float64).requires_grad_()

    parameters = {}
    for domain in ("source", "target"):
        parameters |= {f"{domain}.map": draw(1, 4, 4), f"{domain}.offset": draw(1, 4)}
        parameters |= {f"{domain}.classifier": draw(1, 4, 3), f"{domain}.bias": draw(1, 3)}
    learns = name.endswith("zeta")
    orders = settings.resolved_method().orders
    if learns:
        parameters["zeta"] = torch.rand(1, 1 + len(orders), 3, generator=generator).double().requires_grad_()
    objective.start(parameters)
    found = objective(parameters)

    model = {key: x[0] for key, x in parameters.items()}
    rows = {
        d: x + x @ model[f"{d}.map"] + model[f"{d}.offset"]
        for d, x in (("source", data.source), ("target", data.target))
    }
    logits = [rows[d] @ model[f"{d}.classifier"] + model[f"{d}.bias"] for d in rows]
    heads = [model[f"{d}.classifier"] for d in rows]
    penalty = 0.01 * sum(w.square().sum() for w in heads) + 0.05 * (heads[0] - heads[1]).square().sum()
    whole = Objective(settings.resolved_method(), 3, FitSettings(**common)).double()
    if learns:
        whole.alignment.weights.raw_zeta_bar = torch.nn.Parameter(model["zeta"][0].detach().clone())
        whole.alignment.weights.raw_zeta = torch.nn.Parameter(model["zeta"][1:].detach().clone())
    losses = whole(Output(*rows.values(), *logits, None), data.source_labels, data.target_labels, penalty)

    assert_close(found.loss[0], losses["loss"], **EXACT)
    assert_close(found.cross_entropy[0], losses["cross_entropy"], **EXACT)
    if "alignment" in losses:
        assert_close(found.alignment[0], losses["alignment"], **EXACT)
    leaves = {key: x for key, x in parameters.items() if key != "zeta"}
    ours = torch.autograd.grad(found.loss.sum(), list(leaves.values()), retain_graph=True)
    for key, own, other in zip(
        leaves, ours, torch.autograd.grad(losses["loss"], list(leaves.values()), retain_graph=True), strict=True
    ):
        assert_close(own, other, **EXACT, msg=lambda text, key=key: f"{key}: {text}")
    if learns:
        weights = whole.alignment.weights
        expected = torch.autograd.grad(losses["loss"], [weights.raw_zeta_bar, weights.raw_zeta])
        [own] = torch.autograd.grad(found.loss.sum(), [parameters["zeta"]])
        assert_close(own[0], torch.cat([expected[0].unsqueeze(0), expected[1]]), **EXACT)
