"""The bound ‖φ‖² ≤ τ on features."""

import torch
from torch import Tensor


def bound_norm(features: Tensor, bound: float) -> tuple[Tensor, Tensor]:
    """Project rows onto the ball ‖φ‖² ≤ bound, differentiably.

    Rows inside the ball stay as they are; a row outside keeps its direction, and its gradient loses the part along it.

    Args:
        features: Rows (n, d).
        bound: τ, above 0.

    Returns:
        The projected rows, and which rows were clipped (n,), as booleans.

    Example:
        >>> rows, clipped = bound_norm(torch.tensor([[3.0, 4.0], [0.3, 0.4]]), bound=1.0)
        >>> rows, clipped
        (tensor([[0.6000, 0.8000],
                 [0.3000, 0.4000]]), tensor([ True, False]))
    """
    # In float32 at least: the square of a half-precision norm overflows. The clamp keeps the gradient finite at 0.
    excess = features.to(torch.promote_types(features.dtype, torch.float32)).square().sum(dim=1) / bound
    scale = excess.clamp(min=1).rsqrt().to(features.dtype)
    return features * scale.unsqueeze(1), (excess > 1).detach()
