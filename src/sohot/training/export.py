"""Export to ONNX, verified with onnxruntime."""

import copy
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from .._outputs import write_output
from ..networks.two_passes import in_two_copies
from .errors import ExportError

TOLERANCE = 1e-4
"""Largest difference from PyTorch, relative to the largest logit where that exceeds 1."""

_BATCHES = (1, 5)  # neither is the one the model is traced with
_LARGEST = 2**31 - 1  # the most protobuf allows in one file


class ImageSize(Protocol):
    """The part of an `InputSpec` that shapes the input."""

    @property
    def size(self) -> int:
        """Side of the square image."""

    @property
    def channels(self) -> int:
        """Channels of the image."""


class Tempered(nn.Module):
    """A classifier whose logits are divided by a temperature, so that their softmax is calibrated."""

    def __init__(self, module: nn.Module, temperature: float) -> None:
        super().__init__()
        self.module, self.temperature = module, temperature

    def forward(self, images: Tensor) -> Tensor:
        """Map images to logits."""
        logits: Tensor = self.module(images) / self.temperature
        return logits


def export_onnx(
    module: nn.Module,
    spec: ImageSize,
    file: str | Path,
    *,
    metadata: Mapping[str, str] | None = None,
    temperature: float = 1.0,
) -> float:
    """Write a model as one ONNX file that takes batches of any size.

    The file appears under its name only after onnxruntime has returned the same logits as PyTorch, to 1e-4, on random
    images in batches of two sizes.

    Args:
        module: Maps images to logits, such as `TwoStreams.target_only()`.
        spec: Size and channels of its images.
        file: The file to write.
        metadata: Text to store in the file, such as the names of the classes.
        temperature: What to divide the logits by, so that softmax makes calibrated probabilities of them.

    Returns:
        The largest difference seen.
    """
    file = Path(file)
    if not file.parent.is_dir():
        raise FileNotFoundError(f"the folder of {file} does not exist")
    if file.is_dir():
        raise ValueError(f"file {file} is a folder")
    module = in_two_copies(copy.deepcopy(module).cpu().float().eval())
    if temperature != 1:
        module = Tempered(module, temperature).eval()
    shape = (spec.channels, spec.size, spec.size)
    content = _to_onnx(module, shape, metadata or {})
    difference = max(_difference(module, shape, content, rows) for rows in _BATCHES)
    if not difference <= TOLERANCE:
        raise ExportError(
            f"{file} was not written: onnxruntime differs from PyTorch by {difference:.2g}, more than {TOLERANCE:g}"
        )
    try:
        write_output(file, content)
    except OSError as error:
        raise ExportError(f"{file} could not be written: {error.strerror or error}") from error
    return difference


def _to_onnx(module: nn.Module, shape: tuple[int, ...], metadata: Mapping[str, str]) -> bytes:
    size = sum(tensor.numel() * tensor.element_size() for tensor in module.state_dict().values())
    if size > _LARGEST:
        raise ExportError(f"the model has {size / 2**30:.1f} GiB of weights, but an ONNX file holds at most 2")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the exporter's own, about its internals
            program: Any = torch.onnx.export(
                module,
                (torch.randn(2, *shape, generator=torch.Generator().manual_seed(0)),),
                dynamo=True,
                input_names=["images"],
                output_names=["logits"],
                dynamic_shapes=({0: torch.export.Dim("batch", min=1)},),
                verbose=False,
            )
            program.model.metadata_props.update(metadata)
            content: bytes = program.model_proto.SerializeToString()
    except Exception as error:  # anything the exporter may meet in a user's network
        reason = " ".join(str(error).split())[:300]
        raise ExportError(f"the model cannot be exported to ONNX: {reason}") from error
    return content


def _difference(module: nn.Module, shape: tuple[int, ...], content: bytes, rows: int) -> float:
    """Run both on random images and return the largest difference of a logit."""
    import onnxruntime  # type: ignore[import-untyped]

    images = torch.randn(rows, *shape, generator=torch.Generator().manual_seed(rows))
    with torch.inference_mode():
        expected: Tensor = module(images)
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    (logits,) = session.run(["logits"], {"images": images.numpy()})
    logits = torch.as_tensor(logits)
    if logits.shape != expected.shape:
        raise ExportError(f"onnxruntime returns logits of shape {tuple(logits.shape)}, PyTorch {tuple(expected.shape)}")
    return float((logits - expected).abs().max() / expected.abs().max().clamp(min=1.0))
