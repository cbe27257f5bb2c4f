"""The pool: target images without labels that training may see, and how they relate to the images that test."""

from dataclasses import replace

from .labelled import LabelledImages

SUPERVISED, TRANSDUCTIVE, INDUCTIVE = "supervised", "transductive", "inductive"
POOLS = {
    SUPERVISED: "no unlabelled target images",
    TRANSDUCTIVE: "tested on the unlabelled target images that training sees",
    INDUCTIVE: "half of the other target images is seen without labels, the other half tests",
}
"""What the unlabelled target images of an experiment are, and what that means."""

POOL = "target_pool"
"""The side of a split."""


def add_to_pool(pool: LabelledImages, images: LabelledImages) -> LabelledImages:
    """Add images of the same domain to a pool, without their labels.

    >>> from pathlib import Path
    >>> mug, pen = (LabelledImages([Path(f"{name}/1.png")], [0], [name]) for name in ("mug", "pen"))
    >>> [file.as_posix() for file in add_to_pool(mug.without_labels(), pen).files]
    ['mug/1.png', 'pen/1.png']
    """
    return replace(
        pool,
        files=(*pool.files, *images.files),
        labels=(0,) * (len(pool) + len(images)),
        parts=(*pool.parts, *images.parts),
        groups=(*pool.groups, *images.groups),
    )
