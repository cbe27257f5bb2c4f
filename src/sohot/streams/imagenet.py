"""What torchvision's ImageNet networks have in common."""

from .._torchvision import import_torchvision
from ..data.input_spec import InputSpec
from .weights import State

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def imagenet_spec(size: int | None = None) -> InputSpec:
    """Describe the usual input: 224 pixels out of 256, unless another size is asked for.

    >>> imagenet_spec().size, imagenet_spec(112).resize
    (224, 128)
    """
    side = size or 224
    return InputSpec(side, MEAN, STD, resize=round(side * 256 / 224), interpolation="bilinear")


def torchvision_weights(enum: str) -> State:
    """Download weights of torchvision (it keeps them in its cache); they are read without unpickling objects."""
    entry = getattr(import_torchvision().models, enum).IMAGENET1K_V1
    state: State = entry.get_state_dict(progress=False, check_hash=True, weights_only=True)
    return state
