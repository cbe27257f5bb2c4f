"""Images from disk to batches of tensors, decoded in threads (Pillow releases Python's lock while it decodes)."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor

from .decode import default_workers
from .input_spec import InputSpec
from .labelled import LabelledImages
from .readers import read_item
from .views import to_views

Rows = Sequence[int] | Tensor
Item = TypeVar("Item")
Result = TypeVar("Result")


def load_image(images: LabelledImages, row: int, spec: InputSpec, out: Tensor | None = None, views: int = 1) -> Tensor:
    """Read one image in the network's input format, into `out` if given; see `to_views` for the shape."""
    # Decoding at twice the needed size leaves the quality of the final resize to Pillow's own filter.
    image = read_item(images, row, spec.channels, at_least=2 * spec.resize)
    return to_views(image, spec, views, out)


def load_batch(
    images: LabelledImages, rows: Rows, spec: InputSpec, pool: Executor | None = None, *, views: int = 1
) -> Tensor:
    """Read some images.

    Args:
        images: The list they are in.
        rows: Which ones, in this order.
        spec: Input format of the network.
        pool: Threads that decode; None to decode here.
        views: Views of each image, see `sohot.data.views`.

    Returns:
        float32 tensor of shape (rows, channels, size, size); (rows, views, channels, size, size) for several views.

    Raises:
        UnreadableImage: An image cannot be read; the message names it.
    """
    wanted = check_rows(rows, len(images))
    batch = empty_batch(len(wanted), spec, views)

    def load(index: int) -> None:
        load_image(images, wanted[index], spec, batch[index], views)

    for _ in map(load, range(len(wanted))) if pool is None else pool.map(load, range(len(wanted))):
        pass  # an unreadable image raises here
    return batch


def empty_batch(rows: int, spec: InputSpec, views: int = 1) -> Tensor:
    """Allocate a batch. Images are decoded straight into it: stacking would copy all of them."""
    with torch.inference_mode(False):  # the mode is per thread: other threads could not write to its tensors
        return torch.empty(rows, *([views] if views > 1 else []), spec.channels, spec.size, spec.size)


def iter_batches(
    images: LabelledImages,
    spec: InputSpec,
    batch_size: int = 64,
    workers: int | None = None,
    prefetch: int = 2,
    *,
    views: int = 1,
) -> Iterator[Tensor]:
    """Read all images in order, the next batches while the current one is in use.

    Args:
        images: What to read.
        spec: Input format of the network.
        batch_size: Images per batch; the last one may be smaller.
        workers: Number of threads; None for one per processor, at most 8; 0 to read in this thread.
        prefetch: Number of batches to read ahead.
        views: Views of each image, see `sohot.data.views`.

    Yields:
        float32 tensors of shape (batch, channels, size, size); (batch, views, channels, size, size) for several views.
    """

    def load(row: int, out: Tensor) -> None:
        load_image(images, row, spec, out, views)

    return fill_batches(len(images), partial(empty_batch, spec=spec, views=views), load, batch_size, workers, prefetch)


def fill_batches(
    count: int,
    empty: Callable[[int], Tensor],
    load: Callable[[int, Tensor], None],
    batch_size: int,
    workers: int | None = None,
    prefetch: int = 2,
) -> Iterator[Tensor]:
    """Load rows 0 … count − 1 into batches, in order, the next batches while the current one is in use.

    Args:
        count: Number of rows.
        empty: Allocates a batch of this many rows.
        load: Loads one row into its place in a batch; called in threads.
        batch_size: Rows per batch; the last one may be smaller.
        workers: Number of threads; None for one per processor, at most 8; 0 to load in this thread.
        prefetch: Number of batches to load ahead.

    Example:
        >>> list(fill_batches(3, torch.empty, lambda row, out: out.fill_(row), 2, workers=0))
        [tensor([0., 1.]), tensor([2.])]
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    if workers is not None and workers < 0:
        raise ValueError(f"workers must be at least 0, got {workers}")
    batches = [range(start, min(start + batch_size, count)) for start in range(0, count, batch_size)]
    return _fill(batches, empty, load, default_workers() if workers is None else workers, prefetch)


def _fill(
    batches: list[range], empty: Callable[[int], Tensor], load: Callable[[int, Tensor], None], workers: int, ahead: int
) -> Iterator[Tensor]:
    begun: deque[Tensor] = deque()

    def places() -> Iterator[list[tuple[int, Tensor]]]:
        for rows in batches:
            begun.append(empty(len(rows)))
            yield list(zip(rows, begun[-1], strict=True))

    def fill(place: tuple[int, Tensor]) -> None:
        load(*place)

    here = (list(map(fill, chunk)) for chunk in places())
    for _ in read_ahead(places(), fill, workers, ahead) if workers else here:
        yield begun.popleft()


def read_ahead(
    chunks: Iterable[Iterable[Item]], read: Callable[[Item], Result], threads: int, prefetch: int = 2
) -> Iterator[list[Result]]:
    """Read items in threads, the next chunks while the current one is in use.

    Args:
        chunks: The items, in chunks.
        read: Reads one item; called in threads.
        threads: Number of threads.
        prefetch: Number of chunks to read ahead.

    Yields:
        What was read of each chunk, in order.

    Example:
        >>> list(read_ahead([[1, 2], [3]], str, threads=2))
        [['1', '2'], ['3']]
    """
    pool = ThreadPoolExecutor(threads, thread_name_prefix="sohot-load")
    waiting: deque[list[Future[Result]]] = deque()
    try:
        for chunk in chunks:
            waiting.append([pool.submit(read, item) for item in chunk])
            if len(waiting) > prefetch:
                yield [future.result() for future in waiting.popleft()]
        while waiting:
            yield [future.result() for future in waiting.popleft()]
    finally:
        pool.shutdown(cancel_futures=True)


class ImageInputs:
    """Images on disk as training inputs: read again for each batch, by a pool of threads that persists.

    Args:
        images: The images.
        spec: Input format of the network.
        workers: Number of threads; None for one per processor, at most 8; 0 to read in the calling thread.
    """

    def __init__(self, images: LabelledImages, spec: InputSpec, workers: int | None = None) -> None:
        self.images = images
        self.spec = spec
        count = default_workers() if workers is None else workers
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="sohot-load") if count else None

    def __len__(self) -> int:
        return len(self.images)

    def batch(self, rows: Tensor) -> Tensor:
        """Read some images: (rows, channels, size, size)."""
        return load_batch(self.images, rows, self.spec, self._pool)


def check_rows(rows: Rows, count: int) -> list[int]:
    """Return row numbers as integers; raise IndexError for one outside 0 … count − 1."""
    wanted = [int(row) for row in (rows.tolist() if isinstance(rows, Tensor) else rows)]
    wrong = [row for row in wanted if not 0 <= row < count]
    if wrong:
        raise IndexError(f"rows must lie in 0 … {count - 1}, got {wrong[0]}")
    return wanted
