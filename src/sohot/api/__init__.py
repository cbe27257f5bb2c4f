"""Python in three lines: `fit` trains a run as `sohot fit` does, `load` opens a finished one."""

from typing import TYPE_CHECKING

from .._lazy import lazy_parts

if TYPE_CHECKING:
    from .fit_call import fit as fit
    from .prediction_table import Predicted as Predicted
    from .prediction_table import Predictions as Predictions
    from .tested_images import Tested as Tested
    from .usable_run import Run as Run
    from .usable_run import load as load
else:
    __getattr__, __dir__, __all__ = lazy_parts(__name__)
