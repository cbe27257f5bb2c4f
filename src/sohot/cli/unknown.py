"""Answers that are refused (`--unknown-below`, `--refuse-wrong`): by which limit, and what that gains and costs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..runs.loaded_run import LoadedModel
from ..runs.predictions import check_same_classes
from ..selection.answers import Refusal
from ..selection.calibration import Calibration
from .output import percent, say


def limit_of(
    folder: Path,
    calibration: Calibration | None,
    unknown_below: float | None,
    refuse_wrong: float | None,
    folded_temperature: float = 1.0,
) -> float | None:
    """Return the confidence below which answers are refused; None if none are. The user hears how it was chosen.

    Args:
        folder: The run's folder, or the head's.
        calibration: Its calibration; None if it keeps none.
        unknown_below: The limit, if the user gives it.
        refuse_wrong: The share of wrong answers to refuse, if held-out images are to choose the limit.
        folded_temperature: What its logits are divided by already; 1 if they are not calibrated.

    Raises:
        ValueError: Both are given, or held-out images cannot choose.
    """
    if unknown_below is not None and refuse_wrong is not None:
        raise ValueError("--unknown-below and --refuse-wrong both say which answers to refuse: give one of them")
    if refuse_wrong is None:
        if unknown_below is not None and calibration is None and folded_temperature == 1:
            say(f"note: {folder} keeps no held-out target images, so its probabilities are not calibrated")
        return unknown_below
    advice = "give a limit with --unknown-below instead"
    if calibration is None:
        raise ValueError(f"--refuse-wrong needs held-out target images, and {folder} keeps none: {advice}")
    if calibration.answers.right.all():
        raise ValueError(
            f"--refuse-wrong needs wrong answers, and the {calibration.rows} held-out target images of "
            f"{folder} were all answered correctly: {advice}"
        )
    found = calibration.answers.refuse_wrong(refuse_wrong)
    say(f"note: {_chosen_limit(found, refuse_wrong)}")
    return found.below


def limit_of_average(
    runs: Mapping[Path, LoadedModel], unknown_below: float | None, refuse_wrong: float | None
) -> float | None:
    """Return `limit_of` one run, or of several whose answers are averaged.

    Args:
        runs: The runs and heads by their folders, the first one first; all must know the same classes.
        unknown_below: The limit, if the user gives it.
        refuse_wrong: The share of wrong answers to refuse; held-out images of one run cannot choose for several.
    """
    first, *others = runs
    check_same_classes(runs[first], {folder: runs[folder] for folder in others})
    if others and refuse_wrong is not None:
        raise ValueError(
            "--refuse-wrong chooses by the held-out images of one run: with --with give a limit with --unknown-below"
        )
    limits = [
        limit_of(folder, run.calibration, unknown_below, refuse_wrong, run.folded_temperature)
        for folder, run in runs.items()
    ]
    return limits[0]


def _chosen_limit(found: Refusal, share: float) -> str:
    """Say how a limit was chosen, and how far that can be trusted.

    >>> _chosen_limit(Refusal(0.62, wrong=9, wrong_refused=8, right=54, right_refused=5), 0.8)
    'answers below 0.62 are refused: of 9 wrong held-out answers 8 lie below it, and 5 of 54 right ones too; expect it
    to refuse 80.0 % of new wrong answers'
    """
    few = found.expected_share < share
    return (
        f"answers below {found.below:.3g} are refused: of {found.wrong} wrong held-out answers {found.wrong_refused} "
        f"lie below it, and {found.right_refused} of {found.right} right ones too; expect it to refuse "
        f"{percent(found.expected_share)} % of new wrong answers" + (", as so few cannot promise more" if few else "")
    )


def refusal_as_json(refused: Refusal) -> dict[str, Any]:
    """Return what is refused as JSON values."""
    return {
        **refused._asdict(),
        "answered": refused.answered,
        "coverage": refused.coverage,
        "accuracy_of_answered": refused.accuracy,
        "share_of_wrong_refused": refused.share,
    }


def refusal_in_words(refused: Refusal) -> str:
    """Say how much is answered, how well, and how many wrong answers are refused.

    >>> refusal_in_words(Refusal(0.6, wrong=10, wrong_refused=8, right=90, right_refused=12))
    'answers 80 images (80.0 %), 97.5 % of them correctly; refuses 8 of 10 wrong answers (80.0 %)'
    """
    told = f"answers {refused.answered} images ({percent(refused.coverage)} %)"
    told += "" if refused.accuracy is None else f", {percent(refused.accuracy)} % of them correctly"
    if not refused.wrong:
        return told
    return f"{told}; refuses {refused.wrong_refused} of {refused.wrong} wrong answers ({percent(refused.share)} %)"
