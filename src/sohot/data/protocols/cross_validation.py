"""Model selection among the few labelled target images themselves: no test label is seen."""

from ..contents import content_keys
from ..labelled import LabelledImages
from .drawing import Pictures, check_count, seed_of


class TooFewShots(ValueError):  # noqa: N818 - it names what is the matter
    """No class has a labelled target image to spare."""


def few_shot_folds(
    target_train: LabelledImages, *, folds: int | None = None, seed: int = 0
) -> list[tuple[LabelledImages, LabelledImages]]:
    """Divide the labelled target images, in turn, into some that train and some that validate.

    With 3 images per class there are 3 folds, and each leaves one image of every class out: choose settings by the mean
    over the folds, then fit once more on all images. Copies of a picture and views of one object stay together; a class
    that has one picture trains in every fold and validates in none.

    Args:
        target_train: The labelled target images of a split.
        folds: How many; None for as many as the largest class has pictures.
        seed: Any integer; another one deals the images out differently.

    Returns:
        For each fold the images that train and those that validate; every image validates once, but for classes of one.

    Raises:
        TooFewShots: No class has two pictures.
        ValueError: Fewer than two folds are asked for.
    """
    rows = few_shot_rows(target_train, folds=folds, seed=seed)
    return [(target_train.subset(rest), target_train.subset(held)) for rest, held in rows]


def few_shot_rows(
    target_train: LabelledImages, *, folds: int | None = None, seed: int = 0
) -> list[tuple[list[int], list[int]]]:
    """Give the folds of `few_shot_folds` as numbers of rows, for those who hold something else by row as well.

    Args:
        target_train: The labelled target images of a split.
        folds: How many; None for as many as the largest class has pictures.
        seed: Any integer; another one deals the images out differently.
    """
    pictures = Pictures(target_train, content_keys([target_train])[0])
    by_class: dict[int, list[list[int]]] = {}
    for cluster in pictures.clusters():
        by_class.setdefault(target_train.labels[cluster[0]], []).append(cluster)
    most = max(map(len, by_class.values()), default=0)
    if most < 2:
        raise TooFewShots("no class has two labelled target images: one to train and one to validate are needed")
    number = most if folds is None else check_count(folds, "folds", 2)
    validates: list[set[int]] = [set() for _ in range(min(number, most))]
    for clusters in by_class.values():
        if len(clusters) > 1:
            names = {min(target_train.name(row) for row in rows): rows for rows in clusters}
            for place, name in enumerate(sorted(names, key=lambda name: seed_of("few-shot", seed, name))):
                validates[place % len(validates)].update(names[name])
    everyone = range(len(target_train))
    return [([row for row in everyone if row not in held], sorted(held)) for held in validates]
