"""Model selection on the few labelled target images themselves: no test label is seen."""

from ...selection.folds import Fold, TooFewShots, deal
from ..contents import content_keys
from ..labelled import LabelledImages
from ..pools import POOL, TRANSDUCTIVE, add_to_pool
from .drawing import Pictures, seed_of
from .split import Split

__all__ = ["TooFewShots", "few_shot_folds", "few_shot_rows", "hold_out"]


def few_shot_folds(
    target_train: LabelledImages, *, folds: int | None = None, seed: int = 0
) -> list[tuple[LabelledImages, LabelledImages]]:
    """Split the labelled target images into folds, each with images that train and images that validate.

    With 3 images per class there are 3 folds, and each leaves one image of every class out: choose settings by the mean
    over the folds, then fit once more on all images. Copies of a picture and views of one object stay together; a class
    that has one picture trains in every fold and validates in none.

    Args:
        target_train: The labelled target images of a split.
        folds: Number of folds; None for the number of pictures in the largest class.
        seed: Any integer; another seed deals the images differently.

    Returns:
        For each fold, the images that train and those that validate; every image validates once, except classes of one.

    Raises:
        TooFewShots: No class has two pictures.
        ValueError: `folds` is below 2.
    """
    rows = few_shot_rows(target_train, folds=folds, seed=seed)
    return [(target_train.subset(rest), target_train.subset(held)) for rest, held in rows]


def few_shot_rows(target_train: LabelledImages, *, folds: int | None = None, seed: int = 0) -> list[Fold]:
    """Return the folds of `few_shot_folds` as row numbers, for callers that hold other data by row.

    Args:
        target_train: The labelled target images of a split.
        folds: Number of folds; None for the number of pictures in the largest class.
        seed: Any integer; another seed deals the images differently.
    """
    clusters = Pictures(target_train, content_keys([target_train])[0]).clusters()
    first = {row: cluster[0] for cluster in clusters for row in cluster}
    rows = range(len(target_train))
    return deal(
        [target_train.labels[first[row]] for row in rows],
        [first[row] for row in rows],
        folds=folds,
        order=lambda shot: seed_of("few-shot", seed, min(map(target_train.name, shot))),
        unit="images",
    )


def hold_out(split: Split, train: LabelledImages, held: LabelledImages) -> dict[str, LabelledImages]:
    """Return the sides of a split on which settings are tried: `train` instead of all labelled target images.

    The held-out images are the side "validation". They are to the pool what the test images are: a transductive split
    shows them to training without their labels, an inductive one does not show them.

    Args:
        split: The split.
        train: Labelled target images that train.
        held: Those that are held out.
    """
    sides = {**split.sides, "target_train": train, "validation": held}
    if split.pool == TRANSDUCTIVE:
        sides[POOL] = add_to_pool(split.sides[POOL], held)
    return sides
