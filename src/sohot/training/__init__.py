"""Training: the fit loop with its checkpoints and logs, evaluation and export."""

from typing import TYPE_CHECKING

from .._lazy import lazy_parts

if TYPE_CHECKING:
    from .checkpoint import Checkpoint
    from .errors import ChangedRun, CheckpointError, Diverged, ExportError, Interrupted, RankLost, TrainingError
    from .evaluation import Evaluation, evaluate, predict_logits
    from .export import export_onnx
    from .inputs import Batches, Inputs, TensorInputs
    from .objective import Objective
    from .progress import RichProgress
    from .run_folder import load_run
    from .training_run import FitResult, fit
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
            "evaluation": ("Evaluation", "evaluate", "predict_logits"),
            "export": ("export_onnx",),
            "training_run": ("FitResult", "fit"),
            "inputs": ("Batches", "Inputs", "TensorInputs"),
            "objective": ("Objective",),
            "progress": ("RichProgress",),
            "run_folder": ("load_run",),
        },
    )

__all__ = [
    "Batches",
    "ChangedRun",
    "Checkpoint",
    "CheckpointError",
    "Diverged",
    "Evaluation",
    "ExportError",
    "FitResult",
    "Inputs",
    "Interrupted",
    "Objective",
    "RankLost",
    "RichProgress",
    "TensorInputs",
    "TrainingError",
    "evaluate",
    "export_onnx",
    "fit",
    "load_run",
    "predict_logits",
]
