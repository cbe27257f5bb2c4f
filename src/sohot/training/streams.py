"""What training requires of a model. `sohot.networks.TwoStreams` provides it; so can your own."""

from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn


class Output(Protocol):
    """Features and logits of a batch; None for a domain that was not given."""

    @property
    def source_features(self) -> Tensor | None: ...  # noqa: D102
    @property
    def target_features(self) -> Tensor | None: ...  # noqa: D102
    @property
    def source_logits(self) -> Tensor | None: ...  # noqa: D102
    @property
    def target_logits(self) -> Tensor | None: ...  # noqa: D102
    @property
    def clip_rate(self) -> Any: ...  # noqa: D102


class Streams(Protocol):
    """A source stream, a target stream and their classifier; also an `nn.Module`."""

    num_classes: int

    def __call__(self, source: Tensor | None, target: Tensor | None, *, from_trunk: bool = False) -> Output:
        """Run both streams; with `from_trunk` the inputs are outputs of the frozen trunk."""

    def parameter_groups(self, lr: float, head_factor: float = 10.0) -> list[dict[str, Any]]:
        """Return the parameters to train, in named groups, each with a learning rate."""

    def head_penalty(self, weight_decay: float, coupling: float) -> Tensor:
        """λ‖W‖², for two classifiers with β'‖W − W*‖²."""


def as_streams(model: nn.Module) -> Streams:
    """Require a model with the interface above."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module such as TwoStreams, got {type(model).__name__}")
    if missing := [name for name in ("num_classes", "parameter_groups", "head_penalty") if not hasattr(model, name)]:
        raise TypeError(f"model must be like TwoStreams, but {type(model).__name__} has no {' and no '.join(missing)}")
    return cast(Streams, model)


def full_precision(x: Tensor) -> Tensor:
    """Convert half precision to float32 and leave the rest."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def require_one_input(model: nn.Module, from_trunk: bool) -> None:
    """Require that source rows can go through the target stream, as learning only from the source needs."""
    specs = getattr(model, "inputs", None)
    if isinstance(specs, dict) and specs.get("source") != specs.get("target"):
        raise ValueError("the method 's' trains the target stream on source images, but the streams take other images")
    trunk = getattr(model, "trunk", None)
    if from_trunk and callable(trunk) and trunk("source") is not trunk("target"):
        raise ValueError(
            "the method 's' trains the target stream on source images, but from_trunk gives another trunk's"
        )


def tail_of(model: nn.Module) -> tuple[nn.Parameter, ...]:
    """Return the parameters that are fine-tuned below the classifier."""
    groups = as_streams(model).parameter_groups(1.0)
    return tuple(
        parameter
        for group in groups
        if group.get("name") == "tail"
        for parameter in group["params"]
        if parameter.requires_grad
    )
