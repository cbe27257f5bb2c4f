"""Training of one network in the demo: the small CNN from scratch, one budget for all methods, settings by method."""

from typing import Any, NamedTuple

from torch import Tensor

from ..data.batches import BalancedBatches
from ..data.digits import SIDE
from ..methods.registry import method
from ..methods.settings import FitSettings
from ..networks.two_streams import TwoStreams
from ..runs.config import RunConfig
from ..runs.run_model import build_model
from ..training.evaluation import evaluate, predict_logits
from ..training.inputs import TensorInputs
from ..training.training_run import FitResult, fit
from .digit_splits import NUM_CLASSES, DigitSplit

STEPS = 200
SOURCE_IN_BATCH = 5
"""Printed images of each digit in a batch; all three handwritten ones are used."""

# All methods have the same budget: steps, batches and optimiser.
_COMMON: dict[str, Any] = {
    "steps": STEPS,
    "optimizer": "adamw",
    "head_factor": 1.0,  # the whole network starts untrained, not only its classifier
    "device": "cpu",
    "loggers": "none",
}

# Chosen on the development half of the handwritten digits among nine candidates for each method. Each method that
# aligns no scatters has its own best; those that do share one setting, the best on the average of them.
_OWN: dict[str, dict[str, Any]] = {
    "s": {"lr": 1e-2},
    "t": {"lr": 3e-3},
    "s+t": {"lr": 1e-2, "weight_decay": 0.3, "head_decay": 2.5e-3},
    "means": {"lr": 1e-2, "sigma2": 1e-3},
    "variance": {"lr": 1e-2, "loss_weight": 0.01},
    "ccsa": {"lr": 1e-2, "loss_weight": 0.1, "feature_scale": "none"},
    "dsne": {"lr": 1e-3, "loss_weight": 1e-3},
    "dage": {"lr": 3e-3, "loss_weight": 0.01},
    "supcon": {"lr": 3e-3, "loss_weight": 1.0},
    "l2-sp": {"lr": 1e-2, "l2_sp": 0.01},
    "lp-ft": {"lr": 1e-2, "head_first": 0.1},
}
_UNTUNED: dict[str, Any] = {"lr": 3e-3}  # for a method that nobody has chosen settings for here
_ALIGNED: dict[str, Any] = {"lr": 3e-3, "feature_scale": "initial"}
SIGMA = 1e-3
"""Weight of the means and of the scatters of order 2.

The features of an untrained network hardly differ, so the scale measured in the first step is small and the features
outgrow it (after training, a class spreads over 4 times that scale with alignment, over 200 without): σ is far below
what suits a pre-trained network. The distance of order r grows with the power 2r, so each further order gets 1/100 of
the weight; 1 and 1/10 did worse on the development half.
"""


class DigitResult(NamedTuple):
    """Accuracy of a trained network, and the result of `fit`."""

    accuracy: float  # on the test images, in per cent
    result: FitResult


def settings_for(name: str, sigma: float = SIGMA, **changes: Any) -> FitSettings:
    """Return the demo's settings of a method, with changes.

    >>> settings_for("so+to").sigma1, settings_for("so", steps=7).steps
    ((0.001, 1e-05), 7)
    """
    known = method(name)
    if not known.aligns:
        return FitSettings(**{"method": name, **_COMMON, **_OWN.get(known.name, _UNTUNED), **changes})
    sigmas = {"sigma1": tuple(sigma / 100 ** (order - 2) for order in known.orders), "sigma2": sigma}
    return FitSettings(**{"method": name, **_COMMON, **_ALIGNED, **sigmas, **changes})


def fit_digits(data: DigitSplit, settings: FitSettings, model: TwoStreams | None = None) -> DigitResult:
    """Train a small network from scratch on a split and test it.

    Args:
        data: The split.
        settings: The settings; their seed also determines the initial weights and the batches.
        model: A network to train instead of the demo's.

    Returns:
        The accuracy on the test images in per cent, and the result of `fit`.
    """
    model = new_model(settings.seed) if model is None else model
    batches = BalancedBatches(
        data.source_labels, data.target_labels, NUM_CLASSES, source_per_class=SOURCE_IN_BATCH, seed=settings.seed
    )
    source, target, test = (TensorInputs(normalise(images)) for images in (data.source, data.target, data.test))
    result = fit(model, source, data.source_labels, target, data.target_labels, settings, batches=batches)
    logits = predict_logits(model, test)
    return DigitResult(100 * evaluate(logits, data.test_labels, NUM_CLASSES).micro, result)


def new_model(seed: int, *, tap: str | None = None, streams: str = "shared") -> TwoStreams:
    """Build an untrained network, the same for the same seed, without touching torch's random state.

    Args:
        seed: Determines the weights.
        tap: Which features to align, "before-relu" or "after-relu"; None for the network's default.
        streams: "shared" for one stream for both domains, as in the demo, or "separate".
    """
    config = RunConfig(
        backbone="small-cnn",
        from_scratch=True,
        channels=1,
        image_size=SIDE,
        tap=tap,
        streams=streams,
        trains="all",
        seed=seed,
    )
    return build_model(config, NUM_CLASSES)


def normalise(images: Tensor) -> Tensor:
    """Scale images from 0 … 1 to −1 … 1, as the small CNN expects."""
    return 2 * images - 1
