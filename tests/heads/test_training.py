"""Training on another device, without one: tensors of the device "meta" have a place but no numbers.

A number asked for by the host, or a tensor left behind on the CPU, is an error there. Only the logistic regression at
the start may ask for numbers, to see when it is done; another start takes its place here.
"""

import pytest
from made_up_problems import problem
from torch import Tensor

from sohot.heads import objective
from sohot.heads.fit import train
from sohot.heads.logistic import LogisticHeads
from sohot.heads.network import Shape
from sohot.heads.preparation import PreparedRows, prepare
from sohot.methods import METHOD_NAMES, OTHER_NAMES, HeadSettings

PROBLEMS = [problem(seed, (5, 1, 17), (3, 1, 2)) for seed in range(2)]


def start_at_zero(
    rows: Tensor, classes: Tensor, row_weights: Tensor, decay: Tensor, num_classes: int, *, tolerance: float | None
) -> LogisticHeads:
    assert tolerance is None  # without a pool
    assert {x.device for x in (rows, classes, row_weights, decay)} == {rows.device}
    fits, _, size = rows.shape
    return LogisticHeads(rows.new_zeros(fits, size, num_classes), rows.new_zeros(fits, num_classes))


@pytest.mark.parametrize("name", [*METHOD_NAMES, *OTHER_NAMES])
@pytest.mark.parametrize(
    "options",
    [
        {"streams": "separate", "heads": "coupled", "hidden": 4, "norm_bound": 2.0},
        {"estimator": "unbiased", "feature_scale": "unit", "weight_decay": 0.1, "optimizer": "sgd"},
    ],
    ids=str,
)
def test_nothing_waits_for_the_host_and_nothing_stays_behind(name, options, monkeypatch):
    monkeypatch.setattr(objective, "fit_logistic", start_at_zero)
    settings = HeadSettings(method=name, steps=2, **options)
    two = name not in ("s", "t")
    fits = [
        PreparedRows(
            one.source.to("meta") if two else None,
            one.target.to("meta"),
            (one.source_labels if two else one.source_labels[:0], one.target_labels),
            {},
        )
        for one in PROBLEMS
    ]
    shape = Shape(5, 3, settings.streams, settings.heads, settings.hidden, two_domains=two)
    for trained in train(fits, [settings] * len(fits), shape):
        everything = [*trained.parameters.values(), *trained.history.values(), trained.scale]
        assert {x.device.type for x in everything} == {"meta"}


@pytest.mark.parametrize("components", [None, 3])
def test_rows_are_prepared_where_they_lie(components):
    for preparation in prepare([one.source.to("meta") for one in PROBLEMS], components):
        assert {x.device.type for x in preparation} == {"meta"}


def test_a_fit_does_not_keep_the_stack_alive():
    fits = [PreparedRows(one.source, one.target, (one.source_labels, one.target_labels), {}) for one in PROBLEMS]
    shape = Shape(5, 3, "shared", "shared", None, two_domains=True)
    for trained in train(fits, [HeadSettings(steps=2)] * 2, shape):
        for x in trained.parameters.values():
            assert x.untyped_storage().nbytes() == x.numel() * x.element_size()
            assert not x.requires_grad
