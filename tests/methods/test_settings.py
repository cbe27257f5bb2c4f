import json

import pytest

from sohot.methods import FitSettings


def test_settings_survive_json():
    settings = FitSettings(method="so+to", sigma1=(0.1, 0.2), orders=(2, 3), loggers="tensorboard", clip_norm=1.0)
    assert FitSettings.from_json(json.loads(json.dumps(settings.as_json()))) == settings


def test_bookkeeping_does_not_decide_the_result():
    assert FitSettings(checkpoint_every=7, keep_checkpoints=9).decisive() == FitSettings().decisive()
    assert FitSettings(lr=0.5).decisive() != FitSettings().decisive()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"steps": 0}, "steps must be an integer of at least 1"),
        ({"seed": -1}, "seed must be an integer of at least 0"),
        ({"lr": 0.0}, "lr must be above 0"),
        ({"lr": float("nan")}, "lr must be a finite number"),
        ({"momentum": 1.5}, "momentum must be between 0 and 1"),
        ({"target_weight": 2.0}, "target_weight must be between 0 and 1"),
        ({"clip_norm": 0.0}, "clip_norm must be above 0"),
        ({"optimizer": "adam"}, "optimizer must be one of"),
        ({"schedule": "step"}, "schedule must be one of"),
        ({"precision": "8"}, "precision must be one of"),
        ({"device": "tpu"}, "device must be one of"),
        ({"estimator": "best"}, "estimator must be one of"),
        ({"feature_scale": "mean"}, "feature_scale must be one of"),
        ({"loggers": "paper"}, "loggers must be one of"),
        ({"method": "so", "sigma1": (0.1, 0.2)}, r"one number for each of the orders \(2,\)"),
        ({"orders": (2, 3)}, r"needs a method that aligns scatters, such as 'so'; 'means' does not"),
        ({"method": "best"}, "method must be one of"),
    ],
)
def test_a_wrong_setting_is_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        FitSettings(**wrong)


def test_an_unknown_setting_is_named():
    with pytest.raises(ValueError, match="unknown settings: 'learning_rate'; known settings: alpha1, "):
        FitSettings.from_json({"learning_rate": 1})
