import json
from dataclasses import fields

import pytest

from sohot.methods import FitSettings, HeadSettings


def test_settings_survive_json():
    settings = FitSettings(method="so+to", sigma1=(0.1, 0.2), orders=(2, 3), loggers="tensorboard", clip_norm=1.0)
    assert FitSettings.from_json(json.loads(json.dumps(settings.as_json()))) == settings


def test_bookkeeping_does_not_decide_the_result():
    assert FitSettings(checkpoint_every=7, keep_checkpoints=9).decisive() == FitSettings().decisive()
    assert FitSettings(lr=0.5).decisive() != FitSettings().decisive()


WRONG = [
    ({"method": "best"}, "method must be one of s, t, "),
    ({"method": "s+t", "orders": (2,)}, "needs a method that aligns scatters, such as 'so'; 's\\+t' does not"),
    ({"method": "ccsa", "orders": (2, 3)}, "needs a method that aligns scatters"),
    ({"method": "so", "sigma1": (0.1, 0.2)}, r"sigma1 must hold one number for each of the orders \(2,\)"),
    ({"steps": 0}, "steps must be an integer of at least 1, got 0"),
    ({"seed": -1}, "seed must be an integer of at least 0, got -1"),
    ({"hidden": 0}, "hidden must be an integer of at least 1, got 0"),
    ({"components": 1.5}, "components must be an integer of at least 1, got 1.5"),
    ({"lr": 0.0}, "lr must be above 0, got 0"),
    ({"lr": float("nan")}, "lr must be a finite number"),
    ({"clip_norm": 0.0}, "clip_norm must be above 0"),
    ({"norm_bound": 0.0}, "norm_bound must be above 0"),
    ({"temperature": 0.0}, "temperature must be above 0"),
    ({"momentum": 1.5}, "momentum must be between 0 and 1"),
    ({"target_weight": 2.0}, "target_weight must be between 0 and 1, got 2.0"),
    ({"head_first": 1.5}, "head_first must be between 0 and 1"),
    *[({name: -1.0}, f"{name} must be a finite number of at least 0") for name in ("sigma1", "loss_weight", "l2_sp")],
    *[({name: "much"}, f"{name} must be a number, got 'much'") for name in ("head_decay", "loss_weight", "l2_sp")],
    ({"margin": None}, "margin must be a number"),
    ({"margin": -1.0}, "margin must be a finite number of at least 0"),
    ({"streams": "three"}, "streams must be one of 'shared', 'separate'"),
    ({"heads": "two"}, "heads must be one of 'shared', 'coupled'"),
    ({"optimizer": "lion"}, "optimizer must be one of 'sgd', 'adamw'"),
    ({"schedule": "step"}, "schedule must be one of"),
    ({"precision": "8"}, "precision must be one of"),
    ({"device": "tpu"}, "device must be one of"),
    ({"estimator": "best"}, "estimator must be one of"),
    ({"feature_scale": "mean"}, "feature_scale must be one of"),
    ({"loggers": "paper"}, "loggers must be one of"),
]


def test_a_method_that_aligns_means_alone_takes_no_orders():
    with pytest.raises(ValueError, match="'means' does not"):
        FitSettings(orders=(2, 3))


CASES = [
    (kind, *case)
    for kind in (FitSettings, HeadSettings)
    for case in WRONG
    if set(case[0]) <= {declared.name for declared in fields(kind)}
]


@pytest.mark.parametrize(("kind", "wrong", "message"), CASES)
def test_a_wrong_setting_is_named(kind, wrong, message):
    with pytest.raises((TypeError, ValueError), match=message):
        kind(**wrong)


def test_an_unknown_setting_is_named():
    with pytest.raises(ValueError, match="unknown settings: 'learning_rate'; known settings: alpha1, "):
        FitSettings.from_json({"learning_rate": 1})
