"""Runs: from folders of images to a trained model in a folder, and from that folder back to a model to use."""

from typing import TYPE_CHECKING

from .._lazy import lazy_parts

if TYPE_CHECKING:
    from .classifying import Prediction, classify, find_images
    from .config import RunConfig
    from .config_file import read_config
    from .gathering import RunData, gather
    from .labels_csv import predictions_csv, write_predictions
    from .loading import LoadedRun, images_for, open_run
    from .onnx import export_run
    from .pipeline import Watcher, fit_run
    from .reporting import read_report
    from .testing import accuracy_on
else:
    __getattr__, __dir__ = lazy_parts(
        __name__,
        {
            "classifying": ("Prediction", "classify", "find_images"),
            "config": ("RunConfig",),
            "config_file": ("read_config",),
            "gathering": ("RunData", "gather"),
            "labels_csv": ("predictions_csv", "write_predictions"),
            "loading": ("LoadedRun", "images_for", "open_run"),
            "onnx": ("export_run",),
            "pipeline": ("Watcher", "fit_run"),
            "reporting": ("read_report",),
            "testing": ("accuracy_on",),
        },
    )

__all__ = [
    "LoadedRun",
    "Prediction",
    "RunConfig",
    "RunData",
    "Watcher",
    "accuracy_on",
    "classify",
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
