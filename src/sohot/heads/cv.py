"""`SoHoTClassifierCV`: chooses the settings by the labelled target rows themselves."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import clone  # type: ignore[import-untyped]

from ..functional.shares import share_error
from .candidates import Candidate, Grid, make_candidates
from .classifier import SoHoTClassifier
from .domains import TrainingRows
from .feature_classifier import FeatureClassifier
from .fit import fit_stack
from .problems import Problems, make_problems
from .result import StackedFit
from .shot_folds import ShotFold, shot_folds

Scores = npt.NDArray[np.float64]


class SoHoTClassifierCV(FeatureClassifier):
    """A `SoHoTClassifier` whose method and weights are chosen by leave-one-shot-out on the labelled target rows.

    Each fold holds back one labelled target row of every class; all candidates on all folds train together in a few
    stacks. The candidate with the most held-out rows right wins; among equals the simpler one, `s+t` (nothing aligned)
    before all: sometimes not aligning is right. Then it is trained on all rows. Test rows are never looked at.

    Where there is nothing to choose by (one domain, or a target without labels), the base is fitted as it stands.

    Args:
        base: The classifier whose parameters hold where the candidates say nothing; None for the defaults.
        candidates: What to choose among: lists of values by parameter, or several such dicts, as in scikit-learn's
            GridSearchCV; parameters that a method ignores are dropped. None for 27 settings of 5 methods.
        folds: Number of folds; None for as many as the largest class has labelled target rows, at most 5.

    Attributes:
        best_estimator_: The chosen classifier, trained on all rows.
        best_params_: The chosen parameters.
        best_score_: Its share of held-out rows that are right; NaN where nothing was chosen.
        cv_results_: What each candidate got, with standard errors, as scikit-learn's searches have it.
        reason_: Why it was chosen, in words.
        classes_: The classes; `class_weights_`, `history_` and the others are those of `best_estimator_`.

    Example:
        >>> import numpy as np
        >>> from sohot import SoHoTClassifierCV
        >>> random = np.random.default_rng(0)
        >>> y = np.tile(["mug", "pen"], 20)
        >>> sample_domain = np.repeat([1, -1], [34, 6])
        >>> X = random.normal(size=(40, 5)) + 3 * (y == "mug")[:, None] + 2 * (sample_domain < 0)[:, None]
        >>> search = SoHoTClassifierCV(SoHoTClassifier(steps=20), {"method": ["so", "s+t"]})
        >>> search.fit(X, y, sample_domain=sample_domain).best_params_
        {'method': 's+t'}
    """

    def __init__(
        self,
        base: SoHoTClassifier | None = None,
        candidates: Grid | Sequence[Grid] | None = None,
        *,
        folds: int | None = None,
    ) -> None:
        self.base = base
        self.candidates = candidates
        self.folds = folds

    def fit(
        self,
        X: Any,  # noqa: N803
        y: Any,
        sample_domain: Any = None,
        *,
        X_target: Any = None,  # noqa: N803
        y_target: Any = None,
    ) -> "SoHoTClassifierCV":
        """Choose, and train the choice on all rows; the arguments are those of `SoHoTClassifier.fit`.

        Raises:
            ValueError: An argument is wrong, or no class has two labelled target rows.
        """
        base = SoHoTClassifier() if self.base is None else self.base
        candidates = make_candidates(base, self.candidates)
        rows = self._read(X, y, sample_domain, X_target, y_target)
        if rows.one_domain:
            best = Candidate({}, base.settings(), clone(base))
            self.cv_results_, self.best_score_ = {}, float("nan")
            self.reason_ = "the labelled rows are of one domain: nothing to align, and nothing to choose by"
        else:
            if self.target_stream_ is not None:
                candidates = [one for one in candidates if one.separate]
            if not candidates:
                raise ValueError("the domains have different features, and no candidate has streams='separate'")
            folds = shot_folds(rows.target, rows.target_labels, self.folds)
            right = self._right(rows, folds, candidates, base.device)
            self.cv_results_ = results_table(candidates, folds, right)
            if np.isnan(self.cv_results_["mean_test_score"]).all():
                raise ValueError("every candidate diverged: lower lr, sigma1, sigma2 or loss_weight")
            place = int(np.nanargmax(self.cv_results_["mean_test_score"]))  # the first, and so the simplest, of equals
            best, self.best_score_ = candidates[place], float(self.cv_results_["mean_test_score"][place])
            self.reason_ = explain(self.cv_results_, place)
        self.best_params_ = best.params
        self.best_estimator_ = best.estimator.fit(X, y, sample_domain, X_target=X_target, y_target=y_target)
        for name in ("fit_", "classes_", "n_features_target_", "history_", "class_weights_"):
            setattr(self, name, getattr(self.best_estimator_, name))
        return self

    def _right(
        self, rows: TrainingRows, folds: list[ShotFold], candidates: list[Candidate], device: str | torch.device
    ) -> Scores:
        """Count the held-out rows that are right, by candidate and fold; NaN for a fit that diverged."""
        problems = make_problems(rows)
        stacked = [problems.problem(fold.train) for fold in folds]
        pairs = [(candidate, number) for candidate in candidates for number in range(len(folds))]
        fits = fit_stack([stacked[number] for _, number in pairs], [one.settings for one, _ in pairs], device=device)
        counts = [_count(fit, problems, folds[number]) for fit, (_, number) in zip(fits, pairs, strict=True)]
        return np.asarray(counts).reshape(len(candidates), len(folds))


def _count(fit: StackedFit, problems: Problems, fold: ShotFold) -> float:
    if fit.diverged:
        return float("nan")
    held = torch.from_numpy(fold.held)
    found = fit.predict_logits(problems.target[held]).argmax(1).cpu()
    return float((found == problems.target_labels[held]).sum())


def results_table(candidates: Sequence[Candidate], folds: Sequence[ShotFold], right: Scores) -> dict[str, Any]:
    """Put the scores into the form of scikit-learn's searches.

    The mean is over held-out rows, each of which counts once. Its standard error is that of a share of so many rows,
    one right and one wrong row added (Laplace): nine rows of nine do not make a share certain.
    """
    sizes = np.asarray([len(fold.held) for fold in folds])
    shares, mean = right / sizes, right.sum(axis=1) / sizes.sum()
    errors = [share_error(total, int(sizes.sum())) for total in right.sum(axis=1).tolist()]
    order = np.argsort(-np.nan_to_num(mean, nan=-1.0), kind="stable")  # candidates come simplest first
    names = sorted({name for candidate in candidates for name in candidate.params})
    return {
        "params": [candidate.params for candidate in candidates],
        **{f"param_{name}": [candidate.params.get(name) for candidate in candidates] for name in names},
        **{f"split{number}_test_score": shares[:, number] for number in range(len(folds))},
        "mean_test_score": mean,
        "std_test_score": shares.std(axis=1),
        "standard_error": np.asarray(errors),
        "rank_test_score": np.argsort(order) + 1,
        "held_out_rows": np.full(len(candidates), sizes.sum()),
    }


def explain(results: dict[str, Any], place: int) -> str:
    """Say in words why a candidate was chosen."""
    mean, rows = results["mean_test_score"], int(results["held_out_rows"][place])
    best, error = float(mean[place]), float(results["standard_error"][place])
    named = ", ".join(f"{name}={value}" for name, value in results["params"][place].items()) or "the base"
    equals = int(np.sum(mean == best)) - 1
    near = int(np.sum(mean >= best - error)) - 1
    text = f"{named}: {100 * best:.1f} % of {rows} held-out target rows right (standard error {100 * error:.1f})"
    if equals:
        text += f"; the simplest of {equals + 1} candidates with that score"
    return f"{text}; {near} of the other {len(mean) - 1} lie within one standard error"
