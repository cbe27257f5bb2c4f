"""Input checks: each rejects bad input with one sentence that names the argument.

Shapes and types are free to check and always checked. Checking values (labels out of range, NaN) costs a pass over the
data and, on a GPU, a synchronisation; callers may switch it off.
"""

import torch
from torch import Tensor

INTEGER_TYPES = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def check_features(x: Tensor, name: str) -> None:
    """Require a floating-point tensor of shape (rows, features) with at least one of each."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, got {type(x).__name__}")
    if x.dim() != 2:
        raise ValueError(f"{name} must have the shape (rows, features), got {tuple(x.shape)}")
    if x.layout != torch.strided:
        raise TypeError(f"{name} must be a dense tensor, got {x.layout}: call .to_dense()")
    if not x.is_floating_point():
        raise TypeError(f"{name} must hold floating-point numbers, got {x.dtype}")
    if x.shape[0] == 0 or x.shape[1] == 0:
        raise ValueError(f"{name} is empty: its shape is {tuple(x.shape)}")


def check_pair(x: Tensor, y: Tensor, names: tuple[str, str]) -> None:
    """Require two comparable feature tensors: the same feature size, on the same device."""
    check_features(x, names[0])
    check_features(y, names[1])
    if x.shape[1] != y.shape[1]:
        raise ValueError(
            f"{names[0]} and {names[1]} must have the same number of features, got {x.shape[1]} and {y.shape[1]}"
        )
    if x.device != y.device:
        raise ValueError(f"{names[0]} is on {x.device} but {names[1]} is on {y.device}: move them to one device")


def check_labels(labels: Tensor, features: Tensor, names: tuple[str, str]) -> None:
    """Require one integer label per row of the features; `names` are the names of the labels and of the features."""
    if not isinstance(labels, Tensor):
        raise TypeError(f"{names[0]} must be a torch.Tensor, got {type(labels).__name__}")
    if labels.dtype not in INTEGER_TYPES:
        raise TypeError(f"{names[0]} must hold integers, got {labels.dtype}")
    if labels.dim() != 1 or labels.shape[0] != features.shape[0]:
        raise ValueError(
            f"{names[0]} must hold one label per row of {names[1]}: expected the shape ({features.shape[0]},), "
            f"got {tuple(labels.shape)}"
        )
    if labels.device != features.device:
        raise ValueError(f"{names[0]} is on {labels.device} but {names[1]} is on {features.device}")


def check_label_range(labels: Tensor, num_classes: int, name: str) -> None:
    """Require labels in 0 … num_classes − 1 (reads the values)."""
    lowest, highest = (int(bound) for bound in labels.aminmax())
    if lowest < 0 or highest >= num_classes:
        wrong = lowest if lowest < 0 else highest
        raise ValueError(f"{name} must lie in 0 … {num_classes - 1} (num_classes={num_classes}), got {wrong}")


def check_finite(x: Tensor, name: str) -> None:
    """Require features without NaN and infinity (reads the values; one sum detects any of them)."""
    if not torch.isfinite(x.detach().sum(dtype=torch.promote_types(x.dtype, torch.float32))):
        bad_rows = (~torch.isfinite(x.detach())).any(dim=1).nonzero().flatten()
        if bad_rows.numel():
            raise ValueError(
                f"{name} holds NaN or infinite values in {bad_rows.numel()} of its {x.shape[0]} rows, "
                f"first in row {int(bad_rows[0])}"
            )


def check_scale(scale: Tensor | None) -> None:
    """Require a tensor of one real number, or None."""
    if scale is None:
        return
    if not isinstance(scale, Tensor):
        raise TypeError(f"scale must be a tensor of one number such as torch.tensor(2.0), got {scale!r}")
    if scale.numel() != 1 or not scale.is_floating_point():
        raise ValueError(
            f"scale must hold one floating-point number, got the shape {tuple(scale.shape)} of {scale.dtype}"
        )


def check_numbers(weights: Tensor | None, scale: Tensor | None) -> None:
    """Require finite weights and a finite scale of at least 0, if given (reads the values)."""
    if weights is not None and not torch.isfinite(weights).all():
        raise ValueError("weights must hold finite numbers, got NaN or infinite ones")
    if scale is not None and not 0 <= float(scale) < float("inf"):
        raise ValueError(f"scale must be a finite number of at least 0 (0: that of this batch), got {float(scale)}")


def check_alignment_input(
    source: Tensor,
    source_labels: Tensor,
    target: Tensor,
    target_labels: Tensor,
    source_name: str = "source",
    target_name: str = "target",
) -> None:
    """Require two compatible sets of labelled features."""
    check_pair(source, target, (source_name, target_name))
    check_labels(source_labels, source, (f"{source_name}_labels", source_name))
    check_labels(target_labels, target, (f"{target_name}_labels", target_name))


def check_rows(
    source: Tensor,
    source_labels: Tensor,
    target: Tensor,
    target_labels: Tensor,
    *,
    num_classes: int,
) -> None:
    """Require labels in range and finite features (reads the values)."""
    check_label_range(source_labels, num_classes, "source_labels")
    check_label_range(target_labels, num_classes, "target_labels")
    check_finite(source, "source")
    check_finite(target, "target")
