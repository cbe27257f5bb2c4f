"""The terminal: no name of a file, class or run can control it."""

from collections.abc import Iterable
from typing import Any

import rich.console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

from ..data.names import visible


class Console(rich.console.Console):
    """A console that shows control characters in what it prints, and takes no name such as :dog: for an emoji."""

    def __init__(self, **options: Any) -> None:
        super().__init__(emoji=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the text that a renderable consists of; rich's own control codes are segments of another kind."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)
