"""`torch.compile` of the streams, and a clear sentence where it cannot be had."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


@contextmanager
def compiled(model: nn.Module, wanted: bool, device: torch.device) -> Iterator[None]:
    """Let a model's forward pass be compiled inside. It stays the same object, and its tensors keep their names."""
    if wanted and (reason := _no_compiler(device)) is None:
        model.compile(dynamic=None)
    elif wanted:
        warnings.warn(f"compile: no compiler works here ({reason}), so training goes on without it", stacklevel=2)
    try:
        yield
    finally:
        stop_compiling(model)


def stop_compiling(model: nn.Module) -> bool:
    """Go on without the compiler; tell whether it was in use."""
    was = getattr(model, "_compiled_call_impl", None) is not None
    model._compiled_call_impl = None
    return was


def not_compiled(error: BaseException) -> bool:
    """Tell whether an error is about compiling."""
    from torch._dynamo.exc import TorchDynamoException  # slow to import

    return isinstance(error, TorchDynamoException)


def _no_compiler(device: torch.device) -> str | None:
    """Compile a line: say why that fails, None if it works."""

    def line(x: Tensor) -> Tensor:
        return x.sin() + 1

    try:
        torch.compile(line)(torch.ones(2, device=device))
    except Exception as error:  # a missing C++ compiler or Triton has many faces
        return " ".join(str(error).split())[:200] or type(error).__name__
    return None
