"""Ctrl-C and SIGTERM ask a run to finish its step, save and stop."""

import signal
import threading
from types import FrameType, TracebackType

SIGNALS = ("SIGINT", "SIGTERM")


class StopRequest:
    """Turns the first SIGINT or SIGTERM into a wish that the loop looks at; a second Ctrl-C stops at once.

    Outside the main thread Python allows no handlers: there it never asks to stop.

    Example:
        >>> import os
        >>> with StopRequest() as stop:
        ...     os.kill(os.getpid(), signal.SIGTERM)
        ...     stop.received
        'SIGTERM'
    """

    _SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.received: str | None = None
        self._before: dict[int, object] = {}

    def __enter__(self) -> "StopRequest":
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._ask) for number in self._SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _ask(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the shape of a handler
        if self.received is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.received = signal.Signals(number).name
