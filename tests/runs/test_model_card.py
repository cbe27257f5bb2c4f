"""The model card tells what the files of a run or a head say, and nothing that they do not."""

import json
from pathlib import Path

import numpy as np
import pytest

from sohot import SoHoTClassifier
from sohot.data import InputSpec
from sohot.runs import model_card as cards
from sohot.runs.model_card import describe_model, model_card, plain

SPEC = InputSpec(size=16, mean=(0.5,), std=(0.5,), resize=20)
FACTS = {
    "state": "trained, 40 steps, but not tested; continue: sohot fit --out /home/me/run --resume",
    "method": "so",
    "network": {"backbone": "/home/me/mine.py:net"},
    "data": None,
    "protocol": None,
    "classes": ["a|b", "<img src=x>\n# big", "_c_"],
    "selection": None,
    "accuracy": None,
    "calibration": None,
}
ACCURACY = {
    "micro": 0.75,
    "macro": 0.7,
    "rows": 8,
    "interval95": [0.4, 0.93],
    "per_class": {"a|b": 1.0, "<img src=x>\n# big": 0.5, "_c_": None},
}


def card_of(monkeypatch: pytest.MonkeyPatch, **facts: object) -> str:
    monkeypatch.setattr(cards, "describe_model", lambda _: {**FACTS, **facts})
    return model_card(Path("run"), SPEC, "made by sohot 1 on 2030-01-02")


def test_what_is_unknown_is_said_to_be_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    card = card_of(monkeypatch)
    for told in ("do not say which images", "Unknown: it was not tested", "Probabilities are not calibrated", "grey"):
        assert told in card
    assert "/home/me" not in card
    assert "mine.py:net" in card


@pytest.mark.parametrize("name", ["dinov2-small", "timm:vit_small_patch14_dinov2.lvd142m"])
def test_a_network_that_we_know_is_named_with_publisher_and_licence(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    whose = ", published by Meta AI under Apache-2.0"
    assert f"{plain(name)}{whose}" in card_of(monkeypatch, network={"backbone": name})
    assert whose not in card_of(monkeypatch, network={"backbone": name, "from_scratch": True})


def test_names_are_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    part = {"folder": "/home/me/photos", "images": 6, "per_class": [1, 2, 3]}
    data = {"source": part, "target": part, "test": None, "pool": {"folder": "/home/me/more", "images": 9}}
    card = card_of(monkeypatch, data=data, accuracy=ACCURACY, protocol="transductive")
    lines = card.splitlines()
    assert "| a\\|b | 1 | 1 | 100.0 % |" in lines
    assert "| \\<img src=x\\>\\\\u000a\\# big | 2 | 2 | 50.0 % |" in lines
    assert "| \\_c\\_ | 3 | 3 | – |" in lines
    assert "- 9 target images without labels" in lines
    assert "Transductive accuracy 75.0 % of 8 test images" in card
    assert "training saw the test images without their labels" in card
    assert "/home/me" not in card


def test_a_head_has_a_card(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(24, 5))
    labels, domain = np.array(["mug", "pen"])[np.arange(24) % 2], np.repeat([1, -1], [16, 8])
    model = SoHoTClassifier(calibrate=True).fit(rows, labels, sample_domain=domain)
    model.save(tmp_path / "model.safetensors", network={"backbone": "lite0"})
    data = {"source": {"rows": 16}, "target": {"rows": 8}, "pool": None, "test": None}
    (tmp_path / "report.json").write_text(json.dumps({"data": data, "protocol": "supervised", "accuracy": None}))
    card = model_card(tmp_path, SPEC, "now")
    for told in ("mug, pen; now", "- Backbone: lite0", "- 16 labelled source images", "- 8 labelled target images"):
        assert told in card
    assert f"calibrated (temperature {describe_model(tmp_path)['calibration']['temperature']:.2f})" in card


def test_a_report_of_something_else_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="run holds a run that is damaged or was not made by `sohot fit`"):
        card_of(monkeypatch, accuracy={"micro": 1})
