"""What came out of a comparison, in words, with chance weighed."""

from collections.abc import Mapping
from typing import Any

from .words import difference_in_words


def differences_in_words(
    means: Mapping[str, float], baseline: str, differences: Mapping[str, Mapping[str, Any] | None]
) -> str:
    """Say which method has the highest mean, whether that is more than chance, and how many were compared.

    Args:
        means: Mean accuracy in per cent, by method.
        baseline: What the methods are compared with.
        differences: Paired differences to the baseline as JSON, by method.

    Example:
        >>> gain = {"mean": 2.0, "low": 1.1, "high": 2.9, "p_t": 0.004, "pairs": 5}
        >>> print(differences_in_words({"s+t": 80.0, "so": 82.0}, "s+t", {"so": gain}))
        Highest is so with 82.0 %. so is better than s+t: +2.0 points over 5 splits, 95 % interval +1.1 to +2.9
        (p = 0.004).
    """
    if not means:
        return "Nothing can be compared yet: no method has a result on every shift."
    best = max(means, key=lambda name: means[name])
    told = f"Highest is {best} with {means[best]:.1f} %."
    if baseline not in means:
        return f"{told} Without {baseline} there is nothing to compare it with."
    if best == baseline:
        return f"{told} No method that aligns is ahead of it."
    told += f" {difference_in_words(best, baseline, differences.get(best))}"
    if len(differences) > 1:
        told += (
            f" It is the best of {len(differences)} that were compared, and the more are compared, the further ahead "
            "the best is by chance alone: no interval or p here is corrected for that."
        )
    return told
