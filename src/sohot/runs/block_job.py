"""A job of many images, cut into blocks: which shards it has, and how those that are missing come to be."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._outputs import is_stream
from ..data.labelled import Progress
from ..training.run_files import remove_folder
from .predictions import require_writable
from .ray_blocks import BlockWork, RayBlocks
from .shards import Shards, open_shards


@dataclass(frozen=True)
class BlockJob:
    """What is to be computed.

    Attributes:
        stage: What is done to the images, in words, for progress.
        about: All that the shards depend on, as JSON values.
        sizes: The number of images in each block.
        block: Returns the content of a block, by its number.
        work: What is done with a block.
    """

    stage: str
    about: dict[str, Any]
    sizes: Sequence[int]
    block: Callable[[int], Any]
    work: BlockWork

    def complete(self, shards: Shards, cluster: RayBlocks, progress: Progress | None = None) -> int:
        """Compute the shards that are missing.

        Returns:
            How many blocks were begun more than once, because their worker or its machine was lost.
        """
        missing = shards.missing()
        total, done = sum(self.sizes), sum(self.sizes) - sum(self.sizes[number] for number in missing)
        again = 0
        for found in cluster.run(((number, self.block(number)) for number in missing), self.work):
            shards.add(found.number, found.content)
            done += self.sizes[found.number]
            again += found.tries > 1
            if progress is not None:
                progress(self.stage, done, total)
        return again

    @contextmanager
    def shards(self, out: Path, suffix: str) -> Iterator[tuple[Shards, Path | None]]:
        """Open the folder of the shards, and name the file that is to be made of them, if any.

        Args:
            out: What the user wants: a file that ends in `suffix`, whose shards then lie beside it until it is written,
                or the folder of the shards.
            suffix: How the name of a file ends.
        """
        if is_stream(out) and not out.is_dir():
            raise ValueError(f"--engine ray keeps what is done: give --out a {suffix} file, or a folder for the shards")
        file = out if out.suffix.lower() == suffix else None
        if file is not None:
            require_writable(file)
        folder = out if file is None else out.with_name(f"{out.name}.shards")
        with open_shards(folder, self.about, len(self.sizes)) as shards:
            yield shards, file
        if file is not None:
            remove_folder(folder)
