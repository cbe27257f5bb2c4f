"""Images decoded once: the pictures stay in memory as long as there is room."""

from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

from PIL import Image

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
