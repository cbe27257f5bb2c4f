"""How far the confidence of a run can be trusted: reliability, and how many answers are wrong among the surest."""

from pathlib import Path

import numpy as np

from ...selection.answers import BINS, ROWS_PER_BIN, Answers, RiskCoverage
from ...selection.calibration import Calibration
from ...selection.held_out import HeldOut
from ..figures.canvas import save_figure
from ..figures.confidence import confidence_figure
from .blocks import Chart, Section, Words
from .run_images import stored_images
from .words import count, join, percent

TITLE = "Confidence"
BEFORE, AFTER, AS_IS = "before calibration", "calibrated", "not calibrated"
_SHARES = (0.5, 0.8, 0.9)


def confidence_sections(folder: Path, calibration: Calibration | None, figures: Path | None = None) -> list[Section]:
    """Show the confidence in the answers to the test images, before and after calibration; nothing if none is stored.

    Args:
        folder: The run's folder.
        calibration: Its calibration; None if it has none.
        figures: Folder for the figure; None to write none.
    """
    try:
        stored = stored_images(folder)
    except (OSError, ValueError) as error:
        return [Section(TITLE, [Words(f"The confidence in the answers cannot be shown: {error}.")])]
    if stored is None or stored.outputs.logits is None:
        return []
    tested = HeldOut(stored.outputs.logits.numpy(), np.array(stored.images["test"].labels))
    stages = {AS_IS: Answers.of(tested)}
    if calibration is not None:
        stages = {AFTER: Answers.of(tested, calibration.temperature), BEFORE: stages[AS_IS]}
    final = next(iter(stages.values()))
    bins, curve = {name: answers.reliability() for name, answers in stages.items()}, final.risk_coverage()
    figure = confidence_figure(bins, curve)
    if figures is not None:
        save_figure(figure, figures, "confidence")
    told = (
        "Reliability: on the dotted line confidence and accuracy are equal; below it the model is too sure of itself, "
        f"above it too modest; larger marks stand for more images. Risk and coverage: {_risk_in_words(curve)}."
    )
    return [
        Section(TITLE, [*map(Words, _in_words(stages, calibration)), Chart(figure, "How sure, and how right", told)])
    ]


def _risk_in_words(curve: RiskCoverage) -> str:
    risks = [f"{percent(curve.at(share))} of the surest {100 * share:.0f} %" for share in _SHARES]
    whole = f"{percent(float(curve.risk[-1]))} of all"
    mean = f"The mean over all shares, the area under the curve, is {percent(curve.area)}"
    return f"wrong are {join([*risks, whole])}. {mean}"


def _in_words(stages: dict[str, Answers], calibration: Calibration | None) -> list[str]:
    final = next(iter(stages.values()))
    few = len(final) < BINS * ROWS_PER_BIN
    how = f"bins of about {ROWS_PER_BIN} images" if few else f"{BINS} bins of equal width"
    error = percent(final.calibration_error())
    told = f"Of answers that are 80 % sure, 80 % should be right. On {count(len(final), 'test image')}, "
    if calibration is None:
        told += (
            f"confidence and accuracy differ by {error} on average (expected calibration error, {how}). The run has no "
            "held-out target images to calibrate its confidence by."
        )
    else:
        before = percent(stages[BEFORE].calibration_error())
        told += (
            f"confidence and accuracy differed by {before} on average before calibration, and differ by {error} after "
            f"it (expected calibration error, {how})."
        )
    chance = percent(final.chance_error())
    caution = f"With {len(final):,} images, chance alone would give a perfectly calibrated model about {chance}."
    return [told, caution] if calibration is None else [told, f"{caution} {_origin(calibration)}"]


def _origin(calibration: Calibration) -> str:
    right = int(calibration.answers.right.sum())
    return (
        f"The logits are divided by {calibration.temperature:.2f}, which changes no answer. This temperature is from "
        f"{count(calibration.rows, 'labelled target image')}, held out in turn, {right:,} of which were classified "
        "correctly; so few tell it only roughly, and no test image had a part in it."
    )
