"""A fit as a module of torch computes what the fit computes."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from two_domains import two_domains

from sohot import SoHoTClassifier
from sohot.heads.folding import fold

DATA = two_domains()


@pytest.mark.parametrize("hidden", [None, 5])
@pytest.mark.parametrize("norm_bound", [None, 0.5])
@pytest.mark.parametrize("components", [None, 4])
@pytest.mark.parametrize("streams", ["shared", "separate"])
def test_the_module_equals_the_fit(
    hidden: int | None, norm_bound: float | None, components: int | None, streams: str
) -> None:
    settings = {"hidden": hidden, "norm_bound": norm_bound, "components": components, "streams": streams}
    model = SoHoTClassifier(**settings, heads="coupled", steps=20, lr=0.01, random_state=0)
    model.fit(DATA.X, DATA.y, sample_domain=DATA.sample_domain)
    rows = torch.from_numpy(DATA.test)
    module = fold(model.fit_)
    torch.testing.assert_close(module(rows.float()), model.fit_.predict_logits(rows).float(), atol=1e-4, rtol=1e-4)
    shares = module(rows.float()).softmax(1).numpy()
    np.testing.assert_allclose(shares, model.predict_proba(DATA.test), atol=1e-5)
    assert isinstance(module, torch.nn.Linear) == (hidden is None and norm_bound is None)
    assert not any(one.requires_grad for one in module.parameters())


@pytest.mark.parametrize("hidden", [None, 5])
def test_the_temperature_of_the_fit_is_in_the_module_once(hidden: int | None) -> None:
    model = SoHoTClassifier(hidden=hidden, steps=5, calibrate=False, random_state=0)
    plain = model.fit(DATA.X, DATA.y, sample_domain=DATA.sample_domain).fit_
    rows = torch.from_numpy(DATA.test).float()
    torch.testing.assert_close(fold(replace(plain, temperature=2.5))(rows), fold(plain)(rows) / 2.5)
