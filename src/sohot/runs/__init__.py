"""Runs: from folders of images to a trained model in a folder, and from that folder back to a model to use."""

from typing import TYPE_CHECKING

from .._lazy import lazy_parts

if TYPE_CHECKING:
    from .config import RunConfig as RunConfig
    from .description import read_config as read_config
    from .description import read_report as read_report
    from .loaded_head import LoadedHead as LoadedHead
    from .loaded_head import open_head as open_head
    from .loaded_run import LoadedModel as LoadedModel
    from .loaded_run import LoadedRun as LoadedRun
    from .loaded_run import export_run as export_run
    from .loaded_run import images_for as images_for
    from .loaded_run import open_model as open_model
    from .loaded_run import open_run as open_run
    from .package import write_package as write_package
    from .pipeline import Watcher as Watcher
    from .pipeline import fit_run as fit_run
    from .predictions import Prediction as Prediction
    from .predictions import classify as classify
    from .predictions import find_images as find_images
    from .predictions import predictions_csv as predictions_csv
    from .predictions import read_predictions as read_predictions
    from .predictions import write_predictions as write_predictions
    from .run_data import RunData as RunData
    from .run_data import gather as gather
    from .run_outputs import RunOutputs as RunOutputs
    from .run_outputs import evaluate_on as evaluate_on
    from .run_outputs import logits_of as logits_of
    from .run_outputs import read_outputs as read_outputs
    from .stored_head import StoredHead as StoredHead
    from .stored_head import read_head as read_head
else:
    __getattr__, __dir__, __all__ = lazy_parts(__name__)
