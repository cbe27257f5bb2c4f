"""Training: the fit loop with its checkpoints and logs, evaluation and export."""

from typing import TYPE_CHECKING

from .._lazy import lazy_parts

if TYPE_CHECKING:
    from .checkpoint import Checkpoint as Checkpoint
    from .errors import ChangedRun as ChangedRun
    from .errors import CheckpointError as CheckpointError
    from .errors import Diverged as Diverged
    from .errors import ExportError as ExportError
    from .errors import Interrupted as Interrupted
    from .errors import RankLost as RankLost
    from .errors import TrainingError as TrainingError
    from .evaluation import Evaluation as Evaluation
    from .evaluation import evaluate as evaluate
    from .evaluation import predict_logits as predict_logits
    from .export import export_onnx as export_onnx
    from .inputs import Batches as Batches
    from .inputs import Inputs as Inputs
    from .inputs import TensorInputs as TensorInputs
    from .objective import Objective as Objective
    from .progress import RichProgress as RichProgress
    from .run_folder import load_run as load_run
    from .training_run import FitResult as FitResult
    from .training_run import fit as fit
else:
    __getattr__, __dir__, __all__ = lazy_parts(__name__)
