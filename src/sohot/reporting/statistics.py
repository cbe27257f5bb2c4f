"""Means, standard deviations and paired differences over splits: gains here are small, so chance matters."""

import math
import statistics
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

Unit = TypeVar("Unit", bound=Hashable)
ShiftSplit = tuple[str, int]

_DECIMALS = 9  # accuracies in per cent: smaller differences are float rounding


@dataclass(frozen=True)
class Summary:
    """A summary of some numbers.

    Attributes:
        count: How many there are.
        mean: Their mean.
        std: Their population standard deviation (divided by the count), as the paper prints it.
        sample_std: Their sample standard deviation (divided by the count minus one); None for a single number.
    """

    count: int
    mean: float
    std: float
    sample_std: float | None

    def as_json(self) -> dict[str, Any]:
        """Return plain numbers by name."""
        return asdict(self)


@dataclass(frozen=True)
class PairedDifference:
    """A method minus its baseline, both on the same units (splits, or pairs of shift and split).

    Attributes:
        pairs: Units that both have.
        unpaired: Units that only one of them has; they are ignored.
        mean: Mean difference.
        std: Sample standard deviation of the differences; None for a single pair.
        low: Lower end of the 95 % interval of the mean by Student's t; None for a single pair, and if all pairs
            differ by the same amount, because there is then no spread.
        high: Its upper end.
        p_t: Two-sided p of the paired t-test; 1 if no pair differs, otherwise None if there is no interval.
        p_wilcoxon: Two-sided p of Wilcoxon's signed-rank test, exact even with tied ranks. Pairs that do not
            differ are left out; 1 if none differs, None for a single pair.
        wins: Pairs in which the method is better.
        ties: Pairs in which they are equal.
        losses: Pairs in which the baseline is better.
    """

    pairs: int
    unpaired: int
    mean: float
    std: float | None
    low: float | None
    high: float | None
    p_t: float | None
    p_wilcoxon: float | None
    wins: int
    ties: int
    losses: int

    def as_json(self) -> dict[str, Any]:
        """Return plain numbers by name."""
        return asdict(self)


def summarise(values: Sequence[float]) -> Summary | None:
    """Return the mean and the standard deviations; None if there are no values.

    >>> summarise([80.0, 82.0])
    Summary(count=2, mean=81.0, std=1.0, sample_std=1.4142135623730951)
    """
    if not values:
        return None
    sample = statistics.stdev(values) if len(values) > 1 else None
    return Summary(len(values), statistics.fmean(values), statistics.pstdev(values), sample)


def paired_difference(values: Mapping[Unit, float], baseline: Mapping[Unit, float]) -> PairedDifference | None:
    """Compare a method with a baseline unit by unit.

    Args:
        values: The method's accuracy by unit.
        baseline: The baseline's.

    Returns:
        The difference over the units that both have; None if there are none.

    Example:
        >>> found = paired_difference({1: 85.0, 2: 84.0, 3: 88.0, 4: 80.0}, {1: 82.0, 2: 83.0, 3: 86.0})
        >>> found.pairs, found.unpaired, found.mean, found.wins
        (3, 1, 2.0, 3)
        >>> round(found.low, 2), round(found.high, 2), round(found.p_t, 3), found.p_wilcoxon
        (-0.48, 4.48, 0.074, 0.25)
    """
    both = values.keys() & baseline.keys()
    unpaired = len(values.keys() | baseline.keys()) - len(both)
    differences = sorted(round(values[unit] - baseline[unit], _DECIMALS) for unit in both)
    if not differences:
        return None
    mean = statistics.fmean(differences)
    std = statistics.stdev(differences) if len(differences) > 1 else None
    half, p_t = _student(mean, std, len(differences))
    return PairedDifference(
        pairs=len(differences),
        unpaired=unpaired,
        mean=mean,
        std=std,
        low=None if half is None else mean - half,
        high=None if half is None else mean + half,
        p_t=p_t,
        p_wilcoxon=_wilcoxon(differences) if len(differences) > 1 else None,
        wins=sum(one > 0 for one in differences),
        ties=sum(one == 0 for one in differences),
        losses=sum(one < 0 for one in differences),
    )


def overall_difference(
    values: Mapping[ShiftSplit, float], baseline: Mapping[ShiftSplit, float], shifts: Sequence[str]
) -> PairedDifference | None:
    """Compare the averages over the shifts, split by split.

    Shifts of one split share their target and source images, so pairs of shift and split are not independent.
    Therefore the shifts are averaged first, and the units compared are the splits.

    Args:
        values: The method's accuracy by (shift, split).
        baseline: The baseline's.
        shifts: The shifts to average over. A split counts if both methods have all of them.

    Returns:
        The difference over the splits that count; None if there are none.
    """
    return paired_difference(split_averages(values, shifts), split_averages(baseline, shifts))


def split_averages(values: Mapping[ShiftSplit, float], shifts: Sequence[str]) -> dict[int, float]:
    """Average over the shifts, for each split that has all of them.

    >>> split_averages({("A-W", 1): 80.0, ("W-A", 1): 60.0, ("A-W", 2): 82.0}, ["A-W", "W-A"])
    {1: 70.0}
    """
    splits = sorted({split for _, split in values})
    whole = [split for split in splits if shifts and all((shift, split) in values for shift in shifts)]
    return {split: statistics.fmean(values[shift, split] for shift in shifts) for split in whole}


def _student(mean: float, std: float | None, count: int) -> tuple[float | None, float | None]:
    """Return half the width of the 95 % interval, and the two-sided p of a mean of 0."""
    if std is None:
        return None, None
    if std == 0:
        return None, 1.0 if mean == 0 else None
    from scipy.stats import t  # type: ignore[import-untyped]

    error = std / math.sqrt(count)
    return float(t.ppf(0.975, count - 1)) * error, float(2 * t.sf(abs(mean) / error, count - 1))


def _wilcoxon(differences: Sequence[float]) -> float:
    """Return the exact two-sided p of the signed-rank test.

    SciPy's exact distribution does not handle tied ranks, which are common in accuracies of a few hundred images. So
    this counts the sums of ranks over all choices of signs: twice each rank is an integer, ties or not.
    """
    import numpy as np
    from scipy.stats import rankdata

    signed = np.asarray([one for one in differences if one != 0])
    if not len(signed):
        return 1.0
    ranks = np.rint(2 * rankdata(np.abs(signed))).astype(int)
    share = np.zeros(ranks.sum() + 1)  # by twice the sum of the positive ranks: the share of all choices of signs
    share[0] = 1.0
    for rank in ranks:
        moved = np.zeros_like(share)
        moved[rank:] = share[: len(share) - rank]
        share = (share + moved) / 2
    positive = int(ranks[signed > 0].sum())
    nearer_end = min(positive, len(share) - 1 - positive)
    return float(min(1.0, 2 * share[: nearer_end + 1].sum()))
