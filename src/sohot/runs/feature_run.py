"""`sohot fit-features`: from feature files to a classifier, its accuracy and its predictions, in one folder."""

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .._files import LOCK, holding_folder, is_leftover, remove_leftovers, write_json
from ..data.labelled import Progress
from ..heads.classifier import SoHoTClassifier
from ..heads.cv import SoHoTClassifierCV
from ..heads.domains import UNLABELLED
from ..training.evaluation import evaluate
from .auto import AUTO, STAGE
from .description import HEAD, REPORT
from .feature_set import FeatureSet
from .feature_split import FeatureSplit
from .predictions import Prediction, write_predictions
from .stored_head import LABELLED

PREDICTIONS, POOL = "predictions.csv", "pool.csv"
OWN = {HEAD, PREDICTIONS, POOL, REPORT, LOCK}


def require_new_folder(out: Path) -> None:
    """Check early that a folder can take the results: it is missing, empty, or holds only such results."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out {out} is a file, not a folder")
    found = out.iterdir() if out.exists() else ()
    if strange := sorted(one.name for one in found if one.name not in OWN and not is_leftover(one)):
        raise ValueError(f"--out {out} holds other files ({strange[0]}, …): give a new or empty folder")


def fit_features(
    split: FeatureSplit,
    out: Path,
    params: Mapping[str, Any],
    progress: Progress | None = None,
    command: str | None = None,
) -> dict[str, Any]:
    """Train on features, test, and save the model, the report and the predictions.

    Args:
        split: The rows that train and test.
        out: Folder for model.safetensors, report.json, predictions.csv, and pool.csv for rows without labels.
        params: Parameters of `SoHoTClassifier`; method "auto" chooses among the usual candidates.
        progress: Receives how many trainings of that choice are done.
        command: The command that repeats it, for the report.

    Returns:
        The report, as stored.

    Raises:
        FolderInUse: Another process writes to the folder.
    """
    with holding_folder(out):
        remove_leftovers(out)
        report = _fit_in(out, split, params, progress)
        report["command"] = command
        write_json(out / REPORT, report)
        return report


def _fit_in(out: Path, split: FeatureSplit, params: Mapping[str, Any], progress: Progress | None) -> dict[str, Any]:
    began = time.perf_counter()
    source, target = split.source, split.target
    rows: dict[str, Any] = {"X_target": target.features, "y_target": target.names()}
    if split.pool is not None:
        rows["X_target"] = np.concatenate([target.features, split.pool.features])
        rows["y_target"] = np.concatenate([target.names(), np.full(len(split.pool), str(UNLABELLED))])
    model: SoHoTClassifier | SoHoTClassifierCV
    if params.get("method") == AUTO:
        told = None if progress is None else partial(progress, STAGE)
        model = SoHoTClassifierCV(SoHoTClassifier(**{name: x for name, x in params.items() if name != "method"}))
        trained = model.fit(source.features, source.names(), **rows, on_progress=told).best_estimator_
    else:
        trained = model = SoHoTClassifier(**params).fit(source.features, source.names(), **rows)
    seconds = time.perf_counter() - began
    trained.save(out / HEAD, network=target.network)
    accuracy = None
    for name in (PREDICTIONS, POOL):  # from an earlier call, in case there is no test or no pool now
        (out / name).unlink(missing_ok=True)
    if split.pool is not None:
        write_predictions(out / POOL, label_features(trained, split.pool))
    if split.test is not None:
        accuracy = accuracy_of(trained, split.test, split.classes)
        write_predictions(out / PREDICTIONS, label_features(trained, split.test))
    return {
        "run": str(out),
        "method": trained.settings().resolved_method().name,
        "data": split.as_json(),
        "protocol": split.protocol,
        "pool": None if trained.reason_ is None else {"reason": trained.reason_},
        LABELLED: list(target.contents),
        "network": target.network,
        "settings": trained.settings().as_json(),
        "chosen": _choice(model),
        "temperature": trained.temperature_,
        "class_weights": _plain(trained.class_weights_),
        "last_step": {name: float(values[-1]) for name, values in trained.history_.items()},
        "accuracy": accuracy,
        "training_seconds": seconds,
    }


def accuracy_of(model: SoHoTClassifier, test: FeatureSet, classes: tuple[str, ...]) -> dict[str, Any]:
    """Classify rows as target rows and compare with the truth: accuracies, intervals and the confusion matrix."""
    columns = np.searchsorted(model.classes_, classes)
    logits = torch.from_numpy(model.predict_log_proba(test.features)[:, columns])
    return evaluate(logits, torch.from_numpy(test.labels), classes).as_json()


def label_features(model: SoHoTClassifier, rows: FeatureSet) -> list[Prediction]:
    """Return the most likely class of each row, with its probability."""
    shares = model.predict_proba(rows.features)
    best = shares.argmax(axis=1)
    found = zip(rows.files, model.classes_[best].tolist(), shares.max(axis=1).tolist(), strict=True)
    return [Prediction(Path(file), (label,), (share,)) for file, label, share in found]


def _choice(model: SoHoTClassifier | SoHoTClassifierCV) -> dict[str, Any] | None:
    if not isinstance(model, SoHoTClassifierCV):
        return None
    results = model.cv_results_
    return {
        "settings": model.best_params_,
        "score": model.best_score_,
        "reason": model.reason_,
        "trials": len(results["params"]),
        "candidates": [
            {
                "settings": params,
                "score": None if np.isnan(mean) else float(mean),
                "standard_error": float(np.nan_to_num(error)),
                "log_likelihood": None if np.isnan(likelihood) else float(likelihood),
                "weight": weight,
            }
            for params, mean, error, likelihood, weight in zip(
                *(results[key] for key in ("params", "mean_test_score", "standard_error", "mean_log_likelihood")),
                model.weights_,
                strict=True,
            )
        ],
    }


def _plain(weights: Mapping[str, Any] | None) -> dict[str, list[float]] | None:
    return None if weights is None else {name: values.tolist() for name, values in weights.items()}
