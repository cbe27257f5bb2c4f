"""Whether a run keeps what unlabelled images taught it: held-out target images, which join them meanwhile, decide."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from ..heads.pool_choice import choose_pool
from ..selection.choice import CandidateScore, Choice
from ..selection.held_out import Logits
from ..selection.spaces import HEAD
from .config import RunConfig
from .run_data import RunData
from .train_and_test import train_and_test
from .trunk_store import TrunkStore

LOOKED_AT = 256
"""Images of a pool that show whether it shows something else."""

Scores = Callable[[str], CandidateScore]


def select_with_pool(
    configs: Mapping[str, RunConfig], data: RunData, store: TrunkStore, folds: int, score: Scores
) -> Choice:
    """Choose between the classifier on frozen features, which sees no pool, and training with the pool.

    The pool counts, unless it looks like something else (then nothing is trained), or held-out images speak clearly
    against it.

    Args:
        configs: The candidates by name, the classifier on frozen features first.
        data: The images that train, and the pool.
        store: Keeps the trunk's outputs.
        folds: Number of folds; 0 if no image can be held out.
        score: Scores a candidate on all folds.
    """
    trained = next(name for name in configs if name != HEAD)
    nothing = CandidateScore(trained, ())
    if not folds:
        verdict = choose_pool([], unit="images")
        return Choice(1, (CandidateScore(HEAD, ()), nothing), default=1, leader=1, because=verdict.reason)
    alone = score(HEAD)
    pool = _answers(configs[HEAD], data, store)
    if alone.held_out is not None:
        verdict = choose_pool([pool, pool], [alone.held_out] * 2, unit="images")
        if not verdict.kept:
            return Choice(0, (alone,), default=0, leader=0, because=verdict.reason)
    both = alone, score(trained)
    if both[1].failure is not None or alone.held_out is None or both[1].held_out is None:
        kept, why = both[1].failure is None, both[1].failure or both[0].failure
        return Choice(int(kept), both, default=1, leader=int(kept), because=f"the other one failed: {why}")
    verdict = choose_pool([pool, pool], [both[1].held_out, alone.held_out], unit="images")
    place = int(verdict.kept)
    return Choice(place, both, default=1, leader=place, because=verdict.reason)


def for_fold(config: RunConfig, data: RunData) -> RunConfig:
    """Return how to train without held-out images: with a pool in a third of the steps.

    What three labels per class can show is harm, not a gain of a point or two, and harm shows soon.
    """
    if data.pool is None or config.steps is None or config.trains == "head":
        return config
    return replace(config, steps=-(-config.steps // 3))


def _answers(head: RunConfig, data: RunData, store: TrunkStore) -> Logits:
    """Return what the classifier on frozen features says about the pool, or about some of its images."""
    assert data.pool is not None
    some = data.pool.subset(range(0, len(data.pool), -(-len(data.pool) // LOOKED_AT)))
    known = replace(some, classes=data.classes)  # as if to be tested: their labels are not looked at
    logits = train_and_test(head, replace(data, test=known), store).logits
    assert logits is not None  # there is something to test
    found: Logits = logits.double().numpy()
    return found
