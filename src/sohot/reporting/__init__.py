"""Tables, figures and pages of runs, demos and experiments."""

from typing import TYPE_CHECKING

from .._lazy import lazy_parts

if TYPE_CHECKING:
    from .outputs import write_outputs as write_outputs
    from .pages import write_report as write_report
else:
    __getattr__, __dir__, __all__ = lazy_parts(__name__)
