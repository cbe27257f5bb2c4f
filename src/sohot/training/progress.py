"""Live progress on the terminal: loss parts, accuracy and time left."""

from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # training without a terminal does not need rich
    from rich.console import Console
    from rich.progress import Progress

_PARTS = ("cross_entropy", "head_penalty", "pool", "means", "weight_penalty")


def live_line(console: "Console", *, transient: bool = False, average_over: float = 30.0) -> "Progress":
    """Make a line with a bar, numbers, times and a description, which is cut where the terminal ends.

    Args:
        console: Where to show it.
        transient: Whether it disappears at the end.
        average_over: The time left follows from the speed in this many last seconds.
    """
    from rich import progress
    from rich.table import Column

    rest = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    return progress.Progress(
        progress.BarColumn(bar_width=20),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("left"),
        progress.TimeRemainingColumn(),
        progress.TextColumn("{task.description}", markup=False, table_column=rest),
        console=console,
        transient=transient,
        expand=True,
        speed_estimate_period=average_over,
    )


class RichProgress:
    """Shows a training run; give it to `fit` as `on_step`.

    On a terminal it shows one live line, elsewhere a plain line at every tenth of the run. Everything goes to standard
    error; standard output stays free for results.

    Args:
        steps: Number of steps in the run.
        console: Where to print; None for standard error.

    Example:
        >>> import sys
        >>> from rich.console import Console
        >>> with RichProgress(2, Console(file=sys.stdout, width=100)) as progress:
        ...     progress({"step": 2, "loss": 0.5, "cross_entropy": 0.5, "accuracy_target": 1.0})
        step 2/2 loss 0.5 = cross-entropy 0.5, accuracy target 100.0 %
    """

    def __init__(self, steps: int, console: "Console | None" = None) -> None:
        from rich import console as consoles

        self.steps = steps
        self.console = consoles.Console(stderr=True) if console is None else console
        self._progress = live_line(self.console)
        self._task = self._progress.add_task("", total=steps)
        self._next_line = 1

    def __enter__(self) -> "RichProgress":
        if self.console.is_terminal:
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.console.is_terminal:
            self._progress.stop()

    def __call__(self, record: dict[str, float]) -> None:
        """Show the numbers of a step."""
        step = int(record["step"])
        if self.console.is_terminal:
            if not self._progress.tasks[0].completed:  # a resumed run: earlier steps say nothing about the speed
                self._progress.reset(self._task, completed=step - 1)
            self._progress.update(self._task, completed=step, description=describe(record))
        elif step * 10 >= self._next_line * self.steps:
            self._next_line = step * 10 // self.steps + 1
            self.console.print(
                f"step {step}/{self.steps} {describe(record)}", highlight=False, markup=False, soft_wrap=True
            )


def describe(record: dict[str, float]) -> str:
    """Describe the numbers of a step in one line.

    >>> describe({"loss": 0.75, "cross_entropy": 0.5, "means": 0.05, "order2": 0.2, "accuracy_source": 0.9})
    'loss 0.75 = cross-entropy 0.5 + means 0.05 + order 2 0.2, accuracy source 90.0 %'
    >>> describe({"loss": 0.7, "cross_entropy": 0.5, "pool": 0.2, "pseudo_labels": 0.2, "mask_rate": 0.4})
    'loss 0.7 = cross-entropy 0.5 + pool 0.2, 40.0 % of pseudo-labels kept'
    """
    orders = [name for name in record if name.startswith("order")]
    whole = [] if orders else ["alignment"]  # losses of other methods have one part
    shown = [name for name in (*_PARTS[:4], *orders, *whole, _PARTS[4]) if record.get(name)]
    parts = " + ".join(f"{_title(name)} {record[name]:.3g}" for name in shown)
    accuracies = [
        f"{domain} {record[key]:.1%}" for domain in ("source", "target") if (key := f"accuracy_{domain}") in record
    ]
    accuracy = f", accuracy {', '.join(accuracies)}".replace("%", " %") if accuracies else ""
    kept = f", {record['mask_rate']:.1%} of pseudo-labels kept".replace("%", " %") if "pseudo_labels" in record else ""
    return f"loss {record['loss']:.3g} = {parts}{accuracy}{kept}"


def _title(name: str) -> str:
    return name.replace("order", "order ") if name.startswith("order") else name.replace("_", "-")
