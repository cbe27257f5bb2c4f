"""Training: methods by name, the fit loop with its checkpoints and logs, evaluation and export."""

from typing import TYPE_CHECKING

from .._lazy import lazy_parts

if TYPE_CHECKING:
    from .checkpoint import Checkpoint
    from .errors import ChangedRun, CheckpointError, Diverged, ExportError, Interrupted, RankLost, TrainingError
    from .evaluation import Evaluation, evaluate
    from .export import export_onnx
    from .fitting import FitResult, fit
    from .inputs import Batches, Inputs, TensorInputs
    from .methods import METHOD_NAMES, RIVAL_NAMES, Method, method
    from .objective import Objective
    from .prediction import predict_logits
    from .progress import RichProgress
    from .run_folder import load_run
    from .settings import FitSettings
    from .shares import wilson_interval
else:
    __getattr__, __dir__ = lazy_parts(
        __name__,
        {
            "checkpoint": ("Checkpoint",),
            "errors": (
                "ChangedRun",
                "CheckpointError",
                "Diverged",
                "ExportError",
                "Interrupted",
                "RankLost",
                "TrainingError",
            ),
            "evaluation": ("Evaluation", "evaluate"),
            "export": ("export_onnx",),
            "fitting": ("FitResult", "fit"),
            "inputs": ("Batches", "Inputs", "TensorInputs"),
            "methods": ("METHOD_NAMES", "RIVAL_NAMES", "Method", "method"),
            "objective": ("Objective",),
            "prediction": ("predict_logits",),
            "progress": ("RichProgress",),
            "run_folder": ("load_run",),
            "settings": ("FitSettings",),
            "shares": ("wilson_interval",),
        },
    )

__all__ = [
    "METHOD_NAMES",
    "RIVAL_NAMES",
    "Batches",
    "ChangedRun",
    "Checkpoint",
    "CheckpointError",
    "Diverged",
    "Evaluation",
    "ExportError",
    "FitResult",
    "FitSettings",
    "Inputs",
    "Interrupted",
    "Method",
    "Objective",
    "RankLost",
    "RichProgress",
    "TensorInputs",
    "TrainingError",
    "evaluate",
    "export_onnx",
    "fit",
    "load_run",
    "method",
    "predict_logits",
    "wilson_interval",
]
