"""Runs: from folders of images to a trained model in a folder, and from that folder back to a model to use."""

from typing import TYPE_CHECKING

from .._lazy import lazy_parts

if TYPE_CHECKING:
    from .config import RunConfig
    from .description import read_config, read_report
    from .loaded_run import LoadedRun, export_run, images_for, open_run
    from .pipeline import Watcher, fit_run
    from .predictions import Prediction, classify, find_images, predictions_csv, write_predictions
    from .run_data import RunData, gather
    from .train_and_test import evaluate_on
else:
    __getattr__, __dir__ = lazy_parts(
        __name__,
        {
            "config": ("RunConfig",),
            "description": ("read_config", "read_report"),
            "pipeline": ("Watcher", "fit_run"),
            "loaded_run": ("LoadedRun", "export_run", "images_for", "open_run"),
            "predictions": ("Prediction", "classify", "find_images", "predictions_csv", "write_predictions"),
            "run_data": ("RunData", "gather"),
            "train_and_test": ("evaluate_on",),
        },
    )

__all__ = [
    "LoadedRun",
    "Prediction",
    "RunConfig",
    "RunData",
    "Watcher",
    "classify",
    "evaluate_on",
    "export_run",
    "find_images",
    "fit_run",
    "gather",
    "images_for",
    "open_run",
    "predictions_csv",
    "read_config",
    "read_report",
    "write_predictions",
]
