"""The learning rate as a pure function of the step."""

import math

_START = 1 / 25  # share of the highest rate; this and the last one are as in torch's OneCycleLR
_END = _START / 1e4


def learning_rate_factor(step: int, steps: int, schedule: str, warmup: float) -> float:
    """Return the share of the highest learning rate that a step uses.

    Args:
        step: The step, from 0.
        steps: Number of steps in the run.
        schedule: "one-cycle" rises and falls along cosines like torch's OneCycleLR; "cosine" rises linearly and falls
            along a cosine; "constant" is 1.
        warmup: Share of the steps in which the rate rises.

    Example:
        >>> [round(learning_rate_factor(step, 5, "cosine", 0.4), 2) for step in range(5)]
        [0.5, 1.0, 0.75, 0.25, 0.0]
    """
    if schedule == "constant":
        return 1.0
    rising = warmup * steps - 1  # the last step of the rise
    if schedule == "cosine":
        if step < rising:
            return (step + 1) / (rising + 1)
        return _cosine(1.0, 0.0, _share(step - max(rising, 0), steps - 1 - max(rising, 0)))
    if step < rising:
        return _cosine(_START, 1.0, _share(step, rising))
    return _cosine(1.0, _END, _share(step - max(rising, 0), steps - 1 - max(rising, 0)))


def _share(done: float, all_of_it: float) -> float:
    return done / all_of_it if all_of_it > 0 else 0.0


def _cosine(start: float, end: float, share: float) -> float:
    return end + (start - end) / 2 * (1 + math.cos(math.pi * share))
