"""Tables, figures and pages of runs, demos and experiments."""

from typing import TYPE_CHECKING

from .._lazy import lazy_parts

if TYPE_CHECKING:
    from .outputs import write_outputs
else:
    __getattr__, __dir__ = lazy_parts(
        __name__,
        {
            "outputs": ("write_outputs",),
        },
    )

__all__ = [
    "write_outputs",
]
