"""The rows of a training run: inputs by row number, and the rows of each step."""

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor

from ..functional.checks import INTEGER_TYPES, check_label_range
from ..functional.grouping import largest_class
from .randomness import random_state
from .ranks import Ranks

_HASHED_BYTES = 1 << 26  # larger tensors are hashed by a sample of rows: fast, and enough to tell data sets apart


@runtime_checkable
class Inputs(Protocol):
    """Images (or outputs of the frozen trunk) by row.

    `batch` may use randomness as long as it draws from the global generators of torch, numpy or Python: their state is
    part of a checkpoint. An optional `fingerprint() -> str` tells one data set from another.

    If several ranks share a batch, each reads its own rows and draws its own numbers. With an optional `draw(rows) ->
    Tensor`, every rank draws the same numbers for the whole batch instead, and calls `batch(rows, drawn)` with its rows
    and their numbers: then the numbers do not depend on how many ranks there are.
    """

    def __len__(self) -> int:
        """Count the rows."""

    def batch(self, rows: Tensor) -> Tensor:
        """Return these rows, stacked."""


class Batches(Protocol):
    """Which rows a step uses. A pure function of the step, so that a killed run resumes exactly.

    An optional `most_rows: int` tells how many rows a class has at most in a step: the alignment need not count then.
    """

    def batch(self, step: int) -> tuple[Any, Any]:
        """Return the source rows and the target rows of a step."""


class TensorInputs:
    """Inputs held in one tensor.

    Example:
        >>> inputs = TensorInputs(torch.arange(6.0).reshape(3, 2))
        >>> inputs.batch(torch.tensor([2, 0]))
        tensor([[4., 5.],
                [0., 1.]])
    """

    def __init__(self, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor) or tensor.dim() < 2 or not tensor.is_floating_point():
            raise TypeError("TensorInputs takes a floating-point tensor whose first dimension counts the rows")
        self.tensor = tensor

    def __len__(self) -> int:
        return self.tensor.shape[0]

    def batch(self, rows: Tensor) -> Tensor:
        """Return these rows, stacked."""
        return self.tensor[rows.to(self.tensor.device, non_blocking=True)]

    def fingerprint(self) -> str:
        """Return a short hash that changes with the data."""
        size = self.tensor.numel() * self.tensor.element_size()
        sample = self.tensor[:: max(1, -(-size // _HASHED_BYTES))].detach().contiguous().cpu()
        digest = hashlib.sha256(repr((tuple(self.tensor.shape), str(self.tensor.dtype))).encode())
        digest.update(sample.view(torch.uint8).numpy().data)
        return digest.hexdigest()[:16]


class WholeSet:
    """Every row of both domains in every step.

    >>> WholeSet(3, 2).batch(7)
    (tensor([0, 1, 2]), tensor([0, 1]))
    """

    def __init__(self, source_rows: int, target_rows: int) -> None:
        self._rows = torch.arange(source_rows), torch.arange(target_rows)

    def batch(self, step: int) -> tuple[Tensor, Tensor]:  # noqa: ARG002 - the same rows whatever the step
        """Return all rows."""
        return self._rows


class Rows(NamedTuple):
    """Numbers of rows whose inputs are on the device already, so that only these travel."""

    numbers: Tensor


class Shown(NamedTuple):
    """What a step sees of a domain: the inputs of this rank's rows, and the labels of all rows of the batch."""

    inputs: Tensor
    labels: Tensor


class StepBatch(NamedTuple):
    """The rows of a step on their device: of each domain, and of the pool in both views."""

    source: Shown | Rows | None
    target: Shown | Rows | None
    weak: Shown | Rows | None
    strong: Shown | Rows | None
    source_rows: Tensor | None  # numbers of the source rows; only with a pool

    def tensors(self) -> list[Tensor]:
        """Return all tensors, in a fixed order."""
        parts = *self[:4], (self.source_rows,)
        return [tensor for part in parts if part is not None for tensor in part if tensor is not None]


class Domain:
    """The inputs and labels of one domain, checked, and moved to a device batch by batch.

    Args:
        name: "source" or "target", for messages.
        inputs: Its inputs.
        labels: One integer for each row.
        num_classes: Number of classes.
    """

    def __init__(self, name: str, inputs: Inputs | None, labels: Any, num_classes: int) -> None:
        if not isinstance(inputs, Inputs):
            raise TypeError(
                f"{name} must have len() and batch(rows), such as TensorInputs, got {type(inputs).__name__}"
            )
        self.name = name
        self.inputs = inputs
        self.labels = _as_labels(labels, f"{name}_labels")
        if len(inputs) == 0:
            raise ValueError(f"{name} is empty")
        if len(self.labels) != len(inputs):
            raise ValueError(
                f"{name}_labels must hold one label for each of {len(inputs)} rows, got {len(self.labels)}"
            )
        check_label_range(self.labels, num_classes, f"{name}_labels")
        self._last: tuple[Tensor, Shown | Rows] | None = None
        self._labels_there = self.labels

    @property
    def on_gpu(self) -> bool:
        """Whether the inputs are already on a GPU, so that there is nothing to read."""
        return type(self.inputs) is TensorInputs and self.inputs.tensor.is_cuda  # a subclass may read more

    def labels_on(self, device: torch.device) -> Tensor:
        """Return all labels on a device, moved there once."""
        if self._labels_there.device != device:
            self._labels_there = self.labels.to(device)
        return self._labels_there

    def draw(self, rows: Any) -> Tensor | None:
        """Draw the random numbers that the inputs need for all rows of a batch; None if they have no `draw`."""
        draw = getattr(self.inputs, "draw", None)
        drawn: Tensor | None = draw(len(rows)) if callable(draw) else None
        return drawn

    def read(self, rows: Any, device: torch.device, ranks: Ranks, drawn: Tensor | None = None) -> Shown | Rows | None:
        """Read this rank's rows of a batch, ready to be moved to a device; None if this step has no rows."""
        if self._last is not None and self._last[0] is rows:
            return self._last[1]
        index = torch.as_tensor(rows, dtype=torch.int64)
        if len(index) == 0:
            return None
        if self.on_gpu and not ranks.several:
            return Rows(index.pin_memory())
        more = () if drawn is None else (ranks.share(drawn),)
        inputs = self.inputs.batch(ranks.share(index), *more)
        if device.type == "cuda" and inputs.device.type == "cpu":
            inputs = inputs.pin_memory()  # only pinned memory is copied asynchronously
        return Shown(inputs, self.labels[index])

    def bring(self, rows: Any, read: Shown | Rows | None, device: torch.device) -> Shown | Rows | None:
        """Move the result of `read` to a device, without waiting for it to arrive."""
        if read is None:
            return None
        if self._last is not None and self._last[0] is rows:  # perhaps read ahead before the last was moved
            return self._last[1]
        brought: Shown | Rows
        if isinstance(read, Rows):
            brought = Rows(read.numbers.to(device, non_blocking=True))
        else:
            inputs = self.arrange(read.inputs.to(device, non_blocking=True))
            brought = Shown(inputs, read.labels.to(device, non_blocking=True))
        if type(self.inputs) is TensorInputs and isinstance(rows, Tensor):  # a subclass may be random
            self._last = rows, brought  # the whole set: the same rows again in the next step
        return brought

    def show(self, brought: Shown | Rows | None) -> Shown | None:
        """Return what a step sees; of rows on the device, it gathers the inputs there."""
        if not isinstance(brought, Rows):
            return brought
        assert isinstance(self.inputs, TensorInputs)
        whole, numbers = self.inputs.tensor, brought.numbers
        if whole.dim() == 4 and whole.is_contiguous(memory_format=torch.channels_last):  # copied as memory holds them
            inputs = whole.permute(0, 2, 3, 1).index_select(0, numbers).permute(0, 3, 1, 2)
        else:
            inputs = whole.index_select(0, numbers)
        return Shown(self.arrange(inputs), self.labels_on(numbers.device).index_select(0, numbers))

    def arrange(self, inputs: Tensor) -> Tensor:
        """Put the channels of a pixel side by side, as a GPU's convolutions prefer."""
        if inputs.device.type != "cuda" or inputs.dim() != 4:
            return inputs
        return inputs.contiguous(memory_format=torch.channels_last)

    def fingerprint(self) -> dict[str, Any]:
        """Describe the data so that another data set is recognised."""
        own = getattr(self.inputs, "fingerprint", None)
        return {
            "rows": len(self.inputs),
            "labels": hashlib.sha256(self.labels.numpy().tobytes()).hexdigest()[:16],
            "inputs": own() if callable(own) else None,
        }


def most_rows(batches: Batches, source: Domain, target: Domain, num_classes: int) -> int | None:
    """Return how many rows a class has at most in a step, in both domains together; None if that is not known."""
    if isinstance(batches, WholeSet):
        return largest_class(source.labels, target.labels, num_classes)
    return getattr(batches, "most_rows", None)


def fingerprint_batches(batches: Batches, steps: int) -> str:
    """Return a short hash that changes with the rows of the first and the last step."""
    digest = hashlib.sha256()
    for step in (0, steps - 1):
        for rows in batches.batch(step):
            digest.update(torch.as_tensor(rows, dtype=torch.int64).numpy().tobytes() + b"|")
    return digest.hexdigest()[:16]


def _as_labels(labels: Sequence[int] | Tensor, name: str) -> Tensor:
    tensor = torch.as_tensor(labels).cpu()
    if tensor.dtype not in INTEGER_TYPES or tensor.dim() != 1:
        raise TypeError(f"{name} must be a list of integers, got {tensor.dtype} of shape {tuple(tensor.shape)}")
    return tensor.to(torch.int64)


Batch = TypeVar("Batch")


class ReadAhead(Generic[Batch]):
    """Reads batches by step number, one ahead in its own thread.

    Reading may draw from the processor's random generators. What is drawn ahead belongs to a later step, so a
    checkpoint needs the state from before: `random_state` returns it. GPU work started by reading queues behind the
    current step (both threads use one stream), so only the processor's part runs in parallel.

    Args:
        read: Returns the batch of a step.
        last: Number of steps; nothing is read beyond them.
        gpu: The GPU to read ahead for; None to read in the calling thread, in order.
    """

    def __init__(self, read: Callable[[int], Batch], last: int, gpu: torch.device | None) -> None:
        self._read, self._last, self._gpu = read, last, gpu
        self._pool = None
        if gpu is not None:  # pinned memory belongs to the current device, which each thread selects for itself
            self._pool = ThreadPoolExecutor(1, "sohot-ahead", initializer=torch.cuda.set_device, initargs=(gpu,))
        self._next: tuple[int, Future[Batch]] | None = None
        self._before: dict[str, Any] | None = None

    def batch(self, step: int) -> Batch:
        """Return the batch of a step and start to read the next one."""
        if self._pool is None:
            return self._read(step)
        waiting, self._next = self._next, None
        batch = waiting[1].result() if waiting is not None and waiting[0] == step else self._read(step)
        if step + 1 < self._last:
            self._before = random_state()
            stream = torch.cuda.current_stream(self._gpu) if torch.cuda.is_available() else None
            self._next = step + 1, self._pool.submit(self._read_on, stream, step + 1)
        return batch

    def _read_on(self, stream: torch.cuda.Stream | None, step: int) -> Batch:
        """Read a batch in the thread, with GPU work on the stream of the caller."""
        with torch.cuda.stream(stream):
            return self._read(step)

    def random_state(self) -> dict[str, Any]:
        """Return the state of all generators as if nothing had been read ahead."""
        now = random_state()
        if self._next is None or self._before is None:
            return now
        return {**self._before, "cuda": now["cuda"]}  # the step itself draws only on the GPU

    def close(self) -> None:
        """End the thread."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
