"""Images as training inputs, decoded once, and shown as new random views in each step."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from threading import Lock
from typing import Generic, TypeVar

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from .crops import send
from .decode import default_workers
from .image_batches import check_rows, empty_batch
from .input_spec import InputSpec
from .labelled import LabelledImages
from .random_views import Strength, draw_views, to_view, to_view_batch
from .readers import read_item

Thing = TypeVar("Thing")
Room = Callable[[], float]


class Kept(Generic[Thing]):
    """A cache by row that keeps items while there is room; threads may share it.

    Args:
        room: Returns how many bytes all items together may take; called for each item, as free memory changes.

    Example:
        >>> kept = Kept[str](lambda: 10)
        >>> kept.put(7, "seven", 6), kept.put(8, "eight", 6)
        (True, False)
        >>> kept.get(7), kept.get(8)
        ('seven', None)
    """

    def __init__(self, room: Room) -> None:
        self._room = room
        self._things: dict[int, Thing] = {}
        self._bytes = 0
        self._lock = Lock()

    def get(self, row: int) -> Thing | None:
        """Return what is kept for a row."""
        return self._things.get(row)

    def put(self, row: int, thing: Thing, size: int) -> bool:
        """Keep an item of this many bytes if there is room; return whether it is kept."""
        with self._lock:
            if row not in self._things and self._bytes + size <= self._room():
                self._things[row] = thing
                self._bytes += size
            return row in self._things


class DecodedImages:
    """The images of a list as pictures, read from file once if there is room, else on every request.

    A picture is a file decoded for the network, 8 bits per channel, so no result depends on whether it was kept. Its
    shorter side is below four times the network's `resize`: JPEG decodes to that size directly, other formats are
    shrunk by a whole factor. Both sides stay at least twice `resize` if the file is that large, so that shrinking a
    crop to the network's size is left to the network's filter.

    Args:
        images: The images.
        spec: Input format of the network.
        room: Returns how many bytes of memory all pictures together may take.
    """

    def __init__(self, images: LabelledImages, spec: InputSpec, room: Room) -> None:
        self.images = images
        self.spec = spec
        self._kept: Kept[Image.Image] = Kept(room)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, row: int) -> Image.Image:
        """Return a picture and keep it.

        Raises:
            UnreadableImage: The image cannot be read; the message names it.
        """
        picture = self.look(row)
        self.keep(row, picture)
        return picture

    def look(self, row: int) -> Image.Image:
        """Return a picture without keeping it."""
        kept = self._kept.get(row)
        if kept is not None:
            return kept
        enough = 2 * self.spec.resize
        picture = read_item(self.images, row, self.spec.channels, at_least=enough)
        times = min(picture.size) // enough
        return picture.reduce(times) if times > 1 else picture

    def keep(self, row: int, picture: Image.Image) -> bool:
        """Keep a picture if there is room; return whether it is kept."""
        # Pillow stores a pixel of three channels in four bytes.
        return self._kept.put(row, picture, picture.width * picture.height * (4 if self.spec.channels == 3 else 1))


CHUNK = 32
"""Pictures that a GPU transforms at once, few enough to need little memory beyond the batch."""


class AugmentedImages:
    """Random views of images, drawn by torch's global generator, whose state a checkpoint keeps.

    Weak views are cropped and mirrored; strong ones are recoloured as well, and a square of them is blanked. Each image
    is decoded once if there is room to keep it. On a CPU, Pillow makes the views in threads; a GPU makes many at once,
    with numbers still from the CPU's generator. Both give the same pixels up to rounding.

    Args:
        images: The images.
        spec: Input format of the network.
        room: Returns how many bytes of memory the pictures may take.
        workers: Number of threads; None for one per processor, at most 8; 0 to work in the calling thread.
        gpu: The GPU to compute on; None for the CPU.
        gpu_room: Returns how many bytes of its memory the pictures may take; the rest are sent in each step.
    """

    def __init__(
        self,
        images: LabelledImages,
        spec: InputSpec,
        room: Room,
        workers: int | None = None,
        gpu: torch.device | None = None,
        gpu_room: Room = lambda: 0,
    ) -> None:
        self.spec = spec
        self.gpu = gpu
        self.strength: Strength | None = None
        self.rows: Sequence[int] = range(len(images))
        self._pictures = DecodedImages(images, spec, room)
        self._on_gpu: Kept[Tensor] = Kept(gpu_room)
        count = default_workers() if workers is None else workers
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="sohot-load") if count else None

    def views(self, strength: Strength | None, rows: Sequence[int] | None = None) -> "AugmentedImages":
        """Return inputs that share the decoded pictures.

        Args:
            strength: Strength of their views; None for weak ones.
            rows: Rows of the images; None for all.
        """
        other = copy(self)
        other.strength = strength
        other.rows = range(len(self._pictures)) if rows is None else check_rows(rows, len(self._pictures))
        return other

    def __len__(self) -> int:
        return len(self.rows)

    def draw(self, rows: int) -> Tensor:
        """Draw the random numbers for some rows, from torch's global generator."""
        return draw_views(rows, self.strength)

    def batch(self, rows: Tensor, drawn: Tensor | None = None) -> Tensor:
        """Return views of some images, made with the numbers drawn for them, or with new ones.

        Returns:
            float32 tensor of shape (rows, channels, size, size), on the GPU if there is one.

        Raises:
            UnreadableImage: An image cannot be read; the message names it.
        """
        wanted = [self.rows[row] for row in check_rows(rows, len(self))]
        numbers = (self.draw(len(wanted)) if drawn is None else drawn).tolist()
        if self.gpu is None:
            return self._by_pillow(wanted, numbers)
        chunks = [slice(start, start + CHUNK) for start in range(0, len(wanted), CHUNK)]
        return torch.cat([self._by_gpu(self.gpu, wanted[chunk], numbers[chunk]) for chunk in chunks])

    def _by_pillow(self, rows: Sequence[int], numbers: Sequence[Sequence[float]]) -> Tensor:
        batch = empty_batch(len(rows), self.spec)

        def load(index: int) -> None:
            to_view(self._pictures[rows[index]], self.spec, numbers[index], self.strength, batch[index])

        for _ in map(load, range(len(rows))) if self._pool is None else self._pool.map(load, range(len(rows))):
            pass  # an image that cannot be read ends it here
        return batch

    def _by_gpu(self, gpu: torch.device, rows: Sequence[int], numbers: Sequence[Sequence[float]]) -> Tensor:
        on_gpu = {row: pixels for row in rows if (pixels := self._on_gpu.get(row)) is not None}
        missing = [row for row in dict.fromkeys(rows) if row not in on_gpu]
        for row, picture in zip(missing, self._decode(missing), strict=True):
            # In this thread, which has selected its GPU. Three channels become three planes there, once.
            values = np.array(picture).reshape(picture.height, picture.width, self.spec.channels)
            on_gpu[row] = send(torch.from_numpy(values), gpu).permute(2, 0, 1).contiguous()
            if not self._on_gpu.put(row, on_gpu[row], values.size):
                self._pictures.keep(row, picture)
        return to_view_batch([on_gpu[row] for row in rows], self.spec, numbers, gpu, self.strength)

    def _decode(self, rows: Sequence[int]) -> Iterable[Image.Image]:
        look = self._pictures.look
        return map(look, rows) if self._pool is None else self._pool.map(look, rows)
