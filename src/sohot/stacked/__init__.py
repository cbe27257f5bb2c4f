"""Many small networks on features, trained at once: splits, folds and settings stacked along a leading dimension."""

from typing import TYPE_CHECKING

from .._lazy import lazy_parts

if TYPE_CHECKING:
    from .fit import fit_stack
    from .problem import FeatureProblem
    from .result import StackedFit
    from .settings import HeadSettings
else:
    __getattr__, __dir__ = lazy_parts(
        __name__,
        {
            "fit": ("fit_stack",),
            "problem": ("FeatureProblem",),
            "result": ("StackedFit",),
            "settings": ("HeadSettings",),
        },
    )

__all__ = ["FeatureProblem", "HeadSettings", "StackedFit", "fit_stack"]
