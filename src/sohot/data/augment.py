"""Images as inputs of training, decoded once, and cropped and mirrored anew in each step."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Generic, TypeVar

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from .crops import draw_crops, random_crop, resample, send, to_tensor
from .decode import default_workers
from .image_batches import check_rows, empty_batch
from .input_spec import InputSpec
from .labelled import LabelledImages
from .readers import read_item

Thing = TypeVar("Thing")
Room = Callable[[], float]


class Kept(Generic[Thing]):
    """Things by row, kept as long as there is room; threads may share it.

    Args:
        room: Says how many bytes all of them together may take, asked anew for each: others take memory meanwhile.

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
        """Give what is kept of a row."""
        return self._things.get(row)

    def put(self, row: int, thing: Thing, size: int) -> bool:
        """Keep something of so many bytes; tell whether it is kept."""
        with self._lock:
            if row not in self._things and self._bytes + size <= self._room():
                self._things[row] = thing
                self._bytes += size
            return row in self._things


class DecodedImages:
    """Images of a list as pictures, read from their files once if there is room, else each time they are asked for.

    A picture is what decoding a file for the network gives, 8 bits per channel, so nothing depends on whether it was
    kept. Its shorter side is below four times the network's `resize`: JPEG decodes to that size by itself, others are
    halved, divided by three … to it. Both sides stay at least twice `resize` where the file has as much, so that
    shrinking a crop to the network's size is left to the filter of the network.

    Args:
        images: The images.
        spec: What the network wants.
        room: Says how many bytes of memory all pictures together may take.
    """

    def __init__(self, images: LabelledImages, spec: InputSpec, room: Room) -> None:
        self.images = images
        self.spec = spec
        self._kept: Kept[Image.Image] = Kept(room)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, row: int) -> Image.Image:
        """Give a picture, and keep it.

        Raises:
            UnreadableImage: The image cannot be read; the sentence names it.
        """
        picture = self.look(row)
        self.keep(row, picture)
        return picture

    def look(self, row: int) -> Image.Image:
        """Give a picture without keeping it."""
        kept = self._kept.get(row)
        if kept is not None:
            return kept
        enough = 2 * self.spec.resize
        picture = read_item(self.images, row, self.spec.channels, at_least=enough)
        times = min(picture.size) // enough
        return picture.reduce(times) if times > 1 else picture

    def keep(self, row: int, picture: Image.Image) -> bool:
        """Keep a picture if there is room; tell whether it is kept."""
        # Pillow gives a pixel of three channels four bytes.
        return self._kept.put(row, picture, picture.width * picture.height * (4 if self.spec.channels == 3 else 1))


CHUNK = 32
"""Pictures that a GPU transforms together: what lies beside the batch stays small."""


class AugmentedImages:
    """Images cropped and mirrored at random, by numbers of torch's own generator, whose state a checkpoint keeps.

    Each image is decoded once if there is room to keep it. On a processor Pillow crops and resizes, in threads; a GPU
    does it for many images together, and the numbers still come from the processor's generator. Both give the same
    pixels but for rounding.

    Args:
        images: The images.
        spec: What the network wants.
        room: Says how many bytes of memory the pictures may take.
        workers: Number of threads; None for one per processor, at most 8; 0 to work in the calling thread.
        gpu: The GPU to compute on; None for the processor.
        gpu_room: Says how many bytes of its memory the pictures may take; those beyond are sent in each step.
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
        self._pictures = DecodedImages(images, spec, room)
        self._on_gpu: Kept[Tensor] = Kept(gpu_room)
        count = default_workers() if workers is None else workers
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="sohot-load") if count else None

    def __len__(self) -> int:
        return len(self._pictures)

    def draw(self, rows: int) -> Tensor:
        """Draw the random numbers of some rows, from torch's own generator."""
        return draw_crops(rows)

    def batch(self, rows: Tensor, drawn: Tensor | None = None) -> Tensor:
        """Give some images, augmented by what was drawn for them, or by numbers drawn now.

        Returns:
            float32 tensor of shape (rows, channels, size, size), on the GPU if there is one.

        Raises:
            UnreadableImage: An image cannot be read; the sentence names it.
        """
        wanted = check_rows(rows, len(self))
        numbers = (self.draw(len(wanted)) if drawn is None else drawn).tolist()
        if self.gpu is None:
            return self._by_pillow(wanted, numbers)
        chunks = [slice(start, start + CHUNK) for start in range(0, len(wanted), CHUNK)]
        return torch.cat([self._by_gpu(self.gpu, wanted[chunk], numbers[chunk]) for chunk in chunks])

    def _by_pillow(self, rows: Sequence[int], numbers: Sequence[Sequence[float]]) -> Tensor:
        batch = empty_batch(len(rows), self.spec)

        def load(index: int) -> None:
            picture = self._pictures[rows[index]]
            to_tensor(picture, self.spec, random_crop(*picture.size, numbers[index]), batch[index])

        for _ in map(load, range(len(rows))) if self._pool is None else self._pool.map(load, range(len(rows))):
            pass  # an image that cannot be read ends it here
        return batch

    def _by_gpu(self, gpu: torch.device, rows: Sequence[int], numbers: Sequence[Sequence[float]]) -> Tensor:
        on_gpu = {row: pixels for row in rows if (pixels := self._on_gpu.get(row)) is not None}
        missing = [row for row in dict.fromkeys(rows) if row not in on_gpu]
        for row, picture in zip(missing, self._decode(missing), strict=True):
            # In this thread, for it has chosen its GPU. Three channels become three planes there, once.
            values = np.array(picture).reshape(picture.height, picture.width, self.spec.channels)
            on_gpu[row] = send(torch.from_numpy(values), gpu).permute(2, 0, 1).contiguous()
            if not self._on_gpu.put(row, on_gpu[row], values.size):
                self._pictures.keep(row, picture)
        crops = [
            random_crop(on_gpu[row].shape[2], on_gpu[row].shape[1], of) for row, of in zip(rows, numbers, strict=True)
        ]
        return resample([on_gpu[row] for row in rows], crops, self.spec, gpu)

    def _decode(self, rows: Sequence[int]) -> Iterable[Image.Image]:
        look = self._pictures.look
        return map(look, rows) if self._pool is None else self._pool.map(look, rows)
