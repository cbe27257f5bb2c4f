"""Sentences that reports share: what a method does, what an accuracy means, and whether a gain beats chance."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...data.pools import TRANSDUCTIVE
from ...methods.registry import method
from ...training.evaluation import Evaluation
from ..statistics import PairedDifference


def percent(share: float | None, digits: int = 1) -> str:
    """Write a share in per cent.

    >>> percent(0.9123), percent(None)
    ('91.2 %', '–')
    """
    return "–" if share is None else f"{100 * share:.{digits}f} %"


def count(number: int, thing: str, things: str | None = None) -> str:
    """Count things.

    >>> count(1, "image"), count(1234, "image"), count(2, "class", "classes")
    ('1 image', '1,234 images', '2 classes')
    """
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def join(words: Sequence[str]) -> str:
    """Join words with commas and a last "and".

    >>> join(["a"]), join(["a", "b"]), join(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def method_in_words(name: str) -> str:
    """Say what a method does.

    >>> method_in_words("so+to+zeta")
    'trained on both domains, class scatters of orders 2 and 3 aligned, with a learned weight for each class'
    """
    try:
        return method(name).sentence
    except ValueError:
        return ""


def accuracy_in_words(accuracy: Evaluation, classes: int, protocol: str | None = None) -> list[str]:
    """Say what an accuracy is and what it means.

    Args:
        accuracy: The accuracy.
        classes: Number of classes.
        protocol: What unlabelled images are to the test; None or "supervised" if there are none.
    """
    low, high = accuracy.interval95
    seen = protocol == TRANSDUCTIVE
    tested = count(accuracy.rows, "target image" if seen else "unseen target image")
    first = (
        f"It classifies {percent(accuracy.micro)} of {tested} correctly "
        f"(95 % interval {100 * low:.1f} to {100 * high:.1f} %); chance would give about {percent(1 / classes)}. "
        f"The mean over the classes is {percent(accuracy.macro)}."
    )
    caution = "This accuracy is transductive: training has seen test images, without their labels."
    second = (
        "The interval shows how much the accuracy may vary with other test images of the same kind. It does not cover "
        "another choice of labelled images: to see its effect, train again with another --seed."
    )
    return [first + _hardest(accuracy), *([caution] if seen else []), second]


def _hardest(accuracy: Evaluation) -> str:
    shares = {name: share for name, share in accuracy.per_class.items() if share is not None}
    worst = sorted(shares.items(), key=lambda item: item[1])[:3]
    weak = [f"{name} ({percent(share, 0)})" for name, share in worst if share < 1]
    if not weak:
        return " It made no mistakes."
    return f" The hardest classes are {join(weak)}. It {'; it '.join(accuracy.mistakes(most=2))}."


def difference_in_words(name: str, baseline: str, difference: PairedDifference | None) -> str:
    """Say how a method compares with its baseline, and whether that is more than chance.

    Args:
        name: The method.
        baseline: What it is compared with.
        difference: In percentage points; None if nothing can be compared.

    Example:
        >>> from sohot.reporting.statistics import paired_difference
        >>> gain = paired_difference({1: 80.5, 2: 82.0, 3: 81.0}, {1: 80.0, 2: 82.5, 3: 80.0})
        >>> difference_in_words("so", "s+t", gain)
        'so is not distinguishable from s+t: +0.3 points over 3 splits, 95 % interval −1.6 to +2.2 (p = 0.53).'
    """
    if difference is None:
        return f"{name} cannot be compared with {baseline}: they share no split yet."
    mean, low, high = difference.mean, difference.low, difference.high
    over = f"{points(mean)} points over {count(difference.pairs, 'split')}"
    if low is None or high is None:
        return f"{name} against {baseline}: {over}; not enough to rule out chance."
    interval = f"95 % interval {points(low)} to {points(high)}"
    p = "" if difference.p_t is None else f" ({p_value(difference.p_t)})"
    if low <= 0 <= high:
        return f"{name} is not distinguishable from {baseline}: {over}, {interval}{p}."
    return f"{name} is {'better' if mean > 0 else 'worse'} than {baseline}: {over}, {interval}{p}."


def duration(seconds: float) -> str:
    """Write a duration in a readable unit.

    >>> duration(42), duration(1260), duration(9000)
    ('42 s', '21 min', '2.5 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def points(value: float) -> str:
    """Write a difference in percentage points.

    >>> points(-1.25)
    '−1.2'
    """
    return f"{value:+.1f}".replace("-", "−")


def p_value(p: float) -> str:
    """Write a p-value.

    >>> p_value(0.0312), p_value(0.00001)
    ('p = 0.031', 'p < 0.001')
    """
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def pairs_of(values: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    """Write names and values for readers, leaving out what is not set.

    >>> pairs_of({"lr": 0.1, "tap": None, "orders": [2, 3], "augment": False})
    [('lr', '0.1'), ('orders', '2, 3'), ('augment', 'no')]
    """
    return [(name.replace("_", " "), _spell(value)) for name, value in values.items() if value is not None]


def _spell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_spell, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def differences_in_words(
    means: Mapping[str, float],
    baseline: str,
    differences: Mapping[str, PairedDifference | None],
    accuracy: str = "accuracy",
) -> str:
    """Say which method has the highest mean, whether that is more than chance, and how many were compared.

    Args:
        means: Mean accuracy in per cent, by method.
        baseline: What the methods are compared with.
        differences: Paired differences from the baseline, by method.
        accuracy: What it is called.

    Example:
        >>> print(differences_in_words({"s+t": 80.0, "so": 82.0}, "s+t", {"so": None}))
        The highest accuracy is 82.0 %, reached by so. so cannot be compared with s+t: they share no split yet.
    """
    if not means:
        return "Nothing can be compared yet: no method has a result on every shift."
    best = max(means, key=lambda name: means[name])
    told = f"The highest {accuracy} is {means[best]:.1f} %, reached by {best}."
    if baseline not in means:
        return f"{told} There is no {baseline} to compare it with."
    if best == baseline:
        return f"{told} No other method is ahead of it."
    told += f" {difference_in_words(best, baseline, differences.get(best))}"
    if len(differences) > 1:
        told += (
            f" It is the best of {len(differences)} compared methods. The more are compared, the further ahead the "
            "best is by chance alone; no interval or p here is corrected for that."
        )
    return told
