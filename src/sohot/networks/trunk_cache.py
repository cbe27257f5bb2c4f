"""Outputs of the frozen trunk, computed once.

Without augmentation, the trunk's output for an image never changes. The cache holds it in memory, or in a memory-mapped
safetensors file: a short header and the raw numbers, so that it is written in batches and read in place.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from .._files import replacing
from .._reading import require_regular
from ..data.input_spec import InputSpec
from .inference import run_each_view

TENSOR = "trunk"
_DTYPES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.float64: "F64"}


def cache_trunk(
    trunk: nn.Module,
    batches: Iterable[Tensor],
    rows: int,
    *,
    file: Path | None = None,
    device: torch.device | str | None = None,
    key: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    views: int | None = None,
) -> Tensor:
    """Run a trunk over all images once and keep its outputs.

    Args:
        trunk: The frozen part of a network; it is run in evaluation mode and without gradients.
        batches: Batches of images, in the order of the rows; with a second dimension for `views`.
        rows: Number of images over all batches.
        file: Where to keep the outputs; None for memory. The file appears only when it is complete.
        device: Where to run the trunk (it is moved there); the outputs go to the CPU. None: where the trunk is.
        key: What the outputs depend on (`trunk_key`). If the file already exists and was made with the same key, it
            is used as it is and `batches` is not read. None: always compute.
        progress: Called with the number of images that have passed the trunk, and the total.
        views: Views of each image, if there are several; layers are then fused on a CPU, which is faster.

    Returns:
        The outputs, one row per image, with a second dimension for views. A memory-mapped result can be indexed like
        any tensor; writing to it does not change the file.

    Example:
        >>> cache_trunk(nn.Flatten(), [torch.ones(2, 1, 2), torch.zeros(1, 1, 2)], rows=3)
        tensor([[1., 1.],
                [1., 1.],
                [0., 0.]])
    """
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
        raise ValueError(f"rows must be an integer of at least 1, got {rows!r}")
    if file is not None and key is not None and (found := open_cache(file, rows, key)) is not None:
        return found
    device = next((one.device for one in trunk.parameters()), torch.device("cpu")) if device is None else device
    trunk.to(device).eval()
    run = _run if views is None else partial(run_each_view, views=views)
    outputs = told(run(trunk, batches, device=torch.device(device)), rows, progress)
    return _in_memory(outputs, rows) if file is None else _in_file(outputs, rows, Path(file), key)


def trunk_key(trunk: nn.Module, images: Iterable[str]) -> str:
    """Return a hash of what a cache depends on: the trunk's layers and weights, and the images.

    Args:
        trunk: The frozen part of a network.
        images: One text per image that changes when the image does (such as its path, size and time of change), in
            order, and anything else that affects what the trunk sees.

    Example:
        >>> key = trunk_key(nn.Flatten(), ["cup/1.jpg 5120 1700000000"])
        >>> len(key), key == trunk_key(nn.Flatten(), ["cup/1.jpg 5121 1700000000"])
        (64, False)
    """
    digest = hashlib.sha256(repr(trunk).encode())
    for name, tensor in trunk.state_dict().items():
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        digest.update(_raw(tensor.detach().cpu()))
    for image in images:
        digest.update(json.dumps(image).encode())
    return digest.hexdigest()


def output_bytes(trunk: nn.Module, spec: InputSpec) -> int:
    """Return the size of a trunk's output for one image, in bytes.

    >>> output_bytes(nn.Flatten(), InputSpec(2, mean=(0.5,), std=(0.5,), resize=2))
    16
    """
    like = next(trunk.parameters(), torch.empty(0))
    with torch.no_grad():
        output: Tensor = trunk(torch.zeros(1, spec.channels, spec.size, spec.size, device=like.device))
    return output.numel() * output.element_size()


def open_cache(file: Path, rows: int, key: str) -> Tensor | None:
    """Memory-map a cache, or return None if the file is missing, damaged or made for something else."""
    try:
        require_regular(file)
        with safe_open(file, framework="pt") as handle:
            if (handle.metadata() or {}).get("key") != key:
                return None
            found: Tensor = handle.get_tensor(TENSOR)
    except (OSError, SafetensorError):
        return None
    return found if found.shape[0] == rows else None


def _run(trunk: nn.Module, batches: Iterable[Tensor], device: torch.device) -> Iterator[Tensor]:
    for images in batches:
        # A generator body runs in the caller's grad mode, so the mode is set again around each batch.
        with torch.no_grad():
            yield trunk(images.to(device)).cpu().contiguous()


def told(outputs: Iterable[Tensor], rows: int, progress: Callable[[int, int], None] | None) -> Iterator[Tensor]:
    """Yield batches; tell how many of their rows are done."""
    done = 0
    for batch in outputs:
        yield batch
        done += len(batch)
        if progress is not None:
            progress(done, rows)


def _in_memory(outputs: Iterator[Tensor], rows: int) -> Tensor:
    whole: Tensor | None = None
    done = 0
    for batch in outputs:
        if whole is None:
            whole = torch.empty(rows, *batch.shape[1:], dtype=batch.dtype)
        _check_fits(done + len(batch), rows)
        whole[done : done + len(batch)] = batch
        done += len(batch)
    return _check_whole(whole, done, rows)


def _in_file(outputs: Iterator[Tensor], rows: int, file: Path, key: str | None) -> Tensor:
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacing(file) as stream:
        _write(outputs, rows, stream, key)
    with safe_open(file, framework="pt") as handle:
        result: Tensor = handle.get_tensor(TENSOR)
    return result


def _write(outputs: Iterator[Tensor], rows: int, stream: BinaryIO, key: str | None) -> None:
    done = 0
    first: Tensor | None = None
    for batch in outputs:
        if first is None:
            first = batch[:1].clone()
            stream.write(_header(rows, batch, key))
        _check_fits(done + len(batch), rows)
        stream.write(_raw(batch))
        done += len(batch)
    _check_whole(first, done, rows)


def _raw(tensor: Tensor) -> memoryview:
    """The bytes of a tensor, without a copy if it is contiguous."""
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data


def _header(rows: int, batch: Tensor, key: str | None) -> bytes:
    """The header of a safetensors file with one tensor: length of the JSON, the JSON, blanks up to a multiple of 8."""
    entry = {
        "dtype": _DTYPES[batch.dtype],
        "shape": [rows, *batch.shape[1:]],
        "data_offsets": [0, rows * batch[0].numel() * batch.element_size()],
    }
    text = json.dumps({"__metadata__": {} if key is None else {"key": key}, TENSOR: entry}).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _check_fits(done: int, rows: int) -> None:
    if done > rows:
        raise ValueError(f"batches have more images than rows={rows}")


def _check_whole(whole: Tensor | None, done: int, rows: int) -> Tensor:
    if whole is None or done < rows:
        raise ValueError(f"batches have {done} images, fewer than rows={rows}")
    return whole
