"""The part of a run's report about the confidence in its answers."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from sohot.reporting.pages import run_confidence
from sohot.reporting.pages.blocks import Chart, Words
from sohot.reporting.pages.run_confidence import confidence_sections
from sohot.selection.answers import Answers
from sohot.selection.calibration import Calibration
from sohot.selection.held_out import HeldOut


def drawn(rows, seed=0):
    """Draw rows whose logits are three times as large as they should be."""
    random = np.random.default_rng(seed)
    logits = 2 * random.normal(size=(rows, 4))
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    return HeldOut(3 * logits, (random.random((rows, 1)) > shares.cumsum(1)).sum(1).clip(0, 3))


@pytest.fixture
def test_images(monkeypatch):
    def tested(rows):
        outputs, images = (
            SimpleNamespace(logits=torch.tensor(rows.logits)),
            SimpleNamespace(labels=rows.labels.tolist()),
        )
        found = SimpleNamespace(outputs=outputs, images={"test": images})
        monkeypatch.setattr(run_confidence, "stored_images", lambda _: found)

    return tested


def content(calibration):
    (section,) = confidence_sections(Path("run"), calibration)
    words = " ".join(block.text for block in section.blocks if isinstance(block, Words))
    (chart,) = (block for block in section.blocks if isinstance(block, Chart))
    return words, chart


def test_both_errors_are_told_and_drawn(test_images):
    tested, calibration = drawn(600), Calibration.of(drawn(60, seed=1))
    test_images(tested)
    words, chart = content(calibration)
    before, after = (Answers.of(tested, at) for at in (1, calibration.temperature))
    assert after.calibration_error() < before.calibration_error() / 2
    for answers in (before, after):
        assert f"{100 * answers.calibration_error():.1f} %" in words
    assert "15 bins of equal width" in words
    right = int(calibration.answers.right.sum())
    assert f"60 labelled target images, held out in turn, {right} of which were classified correctly" in words
    reliability, risk = chart.figure.axes
    assert [text.get_text() for text in reliability.get_legend().get_texts()] == ["calibrated", "before calibration"]
    across = reliability.lines[1].get_xdata()
    assert list(across) == pytest.approx([100 * one.confidence for one in after.reliability()])
    wrong = 1 - after.right.mean()
    assert risk.lines[0].get_ydata()[-1] == pytest.approx(100 * wrong)
    assert risk.lines[0].get_xdata()[-1] == 100
    assert len(risk.lines[0].get_xdata()) <= 400
    assert f"{100 * wrong:.1f} % of all" in chart.description


def test_a_run_that_is_not_calibrated_says_so(test_images):
    test_images(drawn(600))
    words, chart = content(None)
    assert "no held-out target images to calibrate its confidence by" in words
    assert [text.get_text() for text in chart.figure.axes[0].get_legend().get_texts()] == ["not calibrated"]
    assert "temperature" not in words


def test_few_test_images_share_bins_and_chance_is_told(test_images):
    test_images(drawn(40))
    words, _ = content(Calibration.of(drawn(12)))
    assert "bins of about 10 images" in words
    assert "With 40 images, chance alone would give" in words


def test_one_test_image_is_enough(test_images):
    test_images(drawn(1))
    assert "On 1 test image," in content(None)[0]


def test_a_run_without_stored_outputs_has_no_such_section(tmp_path):
    assert confidence_sections(tmp_path, None) == []


def test_a_damaged_run_says_why_in_its_place(tmp_path):
    (tmp_path / "test_outputs.safetensors").write_bytes(b"nothing")
    (section,) = confidence_sections(tmp_path, None)
    assert "cannot be shown" in section.blocks[0].text
