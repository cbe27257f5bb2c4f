"""Training: methods by name, the fit loop with its checkpoints and logs, evaluation and export."""

from .checkpoint import Checkpoint
from .errors import ChangedRun, CheckpointError, Diverged, Interrupted, RankLost, TrainingError
from .evaluation import Evaluation, evaluate, wilson_interval
from .export import ExportError, export_onnx
from .fit import FitResult, fit
from .inputs import Batches, Inputs, TensorInputs
from .methods import METHOD_NAMES, RIVAL_NAMES, Method, method
from .objective import Objective
from .prediction import predict_logits
from .progress import RichProgress
from .run_folder import load_run
from .settings import FitSettings

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
