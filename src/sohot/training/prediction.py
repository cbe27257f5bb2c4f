"""Logits of the target stream over many rows, batch by batch."""

import torch
from torch import Tensor, nn

from .inputs import Inputs


@torch.inference_mode()
def predict_logits(model: nn.Module, inputs: Inputs, *, batch_size: int = 256, from_trunk: bool = False) -> Tensor:
    """Classify rows by the target stream and its classifier alone.

    Args:
        model: Two streams; put into evaluation mode while it works.
        inputs: The rows.
        batch_size: Rows at a time.
        from_trunk: The inputs are outputs of the frozen trunk, not images.

    Returns:
        Logits of shape (rows, classes), float32 on the CPU.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    like = next(model.parameters(), torch.empty(0))  # the precision "64-true" leaves a model in float64
    training = model.training
    model.eval()
    try:
        logits = []
        for first in range(0, len(inputs), batch_size):
            batch = inputs.batch(torch.arange(first, min(first + batch_size, len(inputs)))).to(like.device, like.dtype)
            found = model(None, batch, from_trunk=from_trunk).target_logits
            logits.append(found.float().cpu())
    finally:
        model.train(training)
    if not logits:
        raise ValueError("inputs is empty: there is nothing to classify")
    return torch.cat(logits)
