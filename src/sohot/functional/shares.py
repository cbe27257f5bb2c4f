"""Confidence intervals and standard errors of shares."""

import math

Interval = tuple[float, float]
_Z95 = 1.959963984540054  # the normal distribution's 97.5 % point


def wilson_interval(successes: int, trials: int) -> Interval:
    """Return Wilson's 95 % interval of a share, which unlike the usual one holds for few trials and near 0 and 1.

    >>> low, high = wilson_interval(9, 10)
    >>> round(low, 3), round(high, 3)
    (0.596, 0.982)
    """
    if not 0 <= successes <= trials or trials < 1:
        raise ValueError(f"successes must lie in 0 … trials, with at least 1 trial, got {successes} of {trials}")
    share, z2 = successes / trials, _Z95**2
    centre = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = _Z95 / (1 + z2 / trials) * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials**2))
    return max(0.0, centre - half), min(1.0, centre + half)


def share_error(successes: float, trials: int) -> float:
    """Return the standard error of a share with one success and one failure added (Laplace).

    Without them, nine of nine would make a share certain.

    >>> round(share_error(9, 9), 3)
    0.096
    """
    likely = (successes + 1) / (trials + 2)
    return math.sqrt(likely * (1 - likely) / trials)
