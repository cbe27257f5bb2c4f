"""`SoHoTClassifierCV`: selects settings on the labelled target rows themselves."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone  # type: ignore[import-untyped]
from sklearn.model_selection import ParameterGrid  # type: ignore[import-untyped]

from ..methods.registry import method as find_method
from ..methods.settings import HeadSettings
from ..selection.candidates import Candidate, distinct, name_options, relevant, simplicity
from ..selection.choice import AllFailed, CandidateScore, Choice, FoldScore, choose, tabulate
from ..selection.folds import MOST_FOLDS, Fold, deal
from ..selection.spaces import CLASSIFIER_GRIDS
from .classifier import SoHoTClassifier, plain
from .domains import DomainRows
from .feature_classifier import FeatureClassifier
from .fit import OnProgress, fit_stack
from .problem import FeatureProblem, make_problem
from .result import StackedFit

ParamGrid = Mapping[str, Sequence[Any]]
_DEFAULTS = SoHoTClassifier().get_params()


class SoHoTClassifierCV(FeatureClassifier):
    """A `SoHoTClassifier` whose method and weights are chosen by leave-one-shot-out on the labelled target rows.

    Each fold holds out one labelled target row of every class; all candidates on all folds train together in a few
    stacks. The candidate with the most correct held-out rows wins; of equal candidates the simplest, starting with
    `s+t` (no alignment), because sometimes that is best. It is then trained on all rows. Test rows are never used.

    If there is nothing to select on (one domain, or a target without labels), the base is fitted unchanged.

    Args:
        base: The classifier that sets all parameters the candidates do not name; None for the defaults.
        candidates: What to choose from: lists of values by parameter, or several such dicts, as in scikit-learn's
            GridSearchCV; parameters that a method ignores are dropped. None for 27 settings of 5 methods.
        folds: Number of folds; None for as many as the largest class has labelled target rows, at most 5.

    Attributes:
        best_estimator_: The chosen classifier, trained on all rows.
        best_params_: The chosen parameters.
        best_score_: Its share of correct held-out rows; NaN if nothing was selected.
        cv_results_: The scores of each candidate, with standard errors, as in scikit-learn's searches.
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
        candidates: ParamGrid | Sequence[ParamGrid] | None = None,
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
        on_progress: OnProgress | None = None,
    ) -> "SoHoTClassifierCV":
        """Select a candidate and train it on all rows; takes the arguments of `SoHoTClassifier.fit`.

        Args:
            X: Features (rows, features).
            y: Labels.
            sample_domain: Positive for source rows, negative for target rows.
            X_target: Features of the target, instead of `sample_domain`.
            y_target: Labels of `X_target`.
            on_progress: Called with the number of trainings that are done and of all that the selection needs.

        Raises:
            ValueError: An argument is wrong, or no class has two labelled target rows.
        """
        base = SoHoTClassifier() if self.base is None else self.base
        candidates = make_candidates(base, self.candidates)
        rows = self._read(X, y, sample_domain, X_target, y_target)
        if rows.one_domain:
            self.best_params_, best = {}, clone(base)
            self.cv_results_, self.best_score_ = {}, float("nan")
            self.reason_ = "all labelled rows come from one domain: there is nothing to align or select on"
        else:
            if self.target_stream_ is not None:
                candidates = [one for one in candidates if takes_other_features(one.settings)]
            if not candidates:
                raise ValueError("the domains have different features, and no candidate has streams='separate'")
            choice = self._choose(rows, candidates, base, on_progress)
            chosen = candidates[choice.place]
            self.cv_results_ = results_table(candidates, choice.scores)
            self.best_params_, self.best_score_ = dict(chosen.options), float(choice.best.accuracy or 0.0)
            self.reason_ = choice.reason("rows", brief=True)
            best = _with_options(base, chosen.options, chosen.settings.seed)
        self.best_estimator_ = best.fit(X, y, sample_domain, X_target=X_target, y_target=y_target)
        for name in ("fit_", "classes_", "n_features_target_", "history_", "class_weights_"):
            setattr(self, name, getattr(self.best_estimator_, name))
        return self

    def _choose(
        self,
        rows: DomainRows,
        candidates: Sequence[Candidate[HeadSettings]],
        base: SoHoTClassifier,
        on_progress: OnProgress | None,
    ) -> Choice:
        """Train all candidates on all folds together; choose the simplest with the most correct held-out rows."""
        folds = shot_folds(rows, plain(self.folds))
        problem, _ = make_problem(rows)
        parts = [problem.with_target_rows(fold.train) for fold in folds]
        if on_progress is not None:
            on_progress(0, len(candidates) * len(folds))
        fits = fit_stack(
            parts * len(candidates),
            [candidate.settings for candidate in candidates for _ in folds],
            device=base.device,
            on_progress=on_progress,
        )
        scores = [_score(fit, problem, fold) for fit, fold in zip(fits, folds * len(candidates), strict=True)]
        try:
            return choose(tabulate([one.name for one in candidates], len(folds), scores))
        except AllFailed:
            raise ValueError("every candidate diverged: lower lr, sigma1, sigma2 or loss_weight") from None


def make_candidates(
    base: SoHoTClassifier, grid: ParamGrid | Sequence[ParamGrid] | None
) -> list[Candidate[HeadSettings]]:
    """List the candidates.

    Args:
        base: Sets the parameters that the grid does not name.
        grid: Lists of values by parameter, or several such dicts; None for `CLASSIFIER_GRIDS`.

    Returns:
        Each setting once, the simplest first. Parameters that a method ignores keep their defaults.

    Example:
        >>> grid = {"method": ["s+t", "so"], "sigma1": [0.1, 1.0]}
        >>> [candidate.options for candidate in make_candidates(SoHoTClassifier(), grid)]
        [{'method': 's+t'}, {'method': 'so', 'sigma1': 0.1}, {'method': 'so', 'sigma1': 1.0}]
    """
    known = base.get_params(deep=False)
    given: ParamGrid | Sequence[ParamGrid] = CLASSIFIER_GRIDS if grid is None else grid
    grids = [given] if isinstance(given, Mapping) else list(given)
    for name in (name for one in grids for name in one):
        if name not in known or name in ("device", "random_state"):
            raise ValueError(f"candidates name {name!r}, which is not a SoHoTClassifier parameter that can be selected")
    seed = base.settings().seed  # drawn once, so that candidates differ only in the named parameters
    found = []
    for params in ParameterGrid(grids):
        options = relevant(params.get("method", base.method), params)
        found.append(Candidate(name_options(options), options, _with_options(base, options, seed).settings()))
    if not found:
        raise ValueError("candidates is empty: there is nothing to choose from")
    return sorted(distinct(found), key=lambda one: simplicity(one.settings))


def _with_options(base: SoHoTClassifier, options: Mapping[str, Any], seed: int) -> SoHoTClassifier:
    """Return the base with some parameters set; those that the method ignores get their defaults."""
    ignored = find_method(options.get("method", base.method)).ignored(on_features=True)
    changed: SoHoTClassifier = clone(base).set_params(
        **{key: _DEFAULTS[key] for key in ignored}, **options, random_state=seed
    )
    return changed


def takes_other_features(settings: HeadSettings) -> bool:
    """Tell whether the domains may have different features."""
    return settings.streams == "separate" or not settings.resolved_method().uses_source


def shot_folds(rows: DomainRows, folds: int | None = None) -> list[Fold]:
    """Assign the labelled target rows of each class to folds, in order; at most 5 folds by default."""
    _, content = np.unique(rows.target, axis=0, return_inverse=True)
    return deal(rows.target_labels.tolist(), content.reshape(-1).tolist(), folds=MOST_FOLDS if folds is None else folds)


def _score(fit: StackedFit, problem: FeatureProblem, fold: Fold) -> FoldScore:
    if fit.diverged:
        return FoldScore(0, len(fold.held), "training diverged")
    found = fit.predict_logits(problem.target[fold.held]).argmax(1).cpu()
    return FoldScore(int((found == problem.target_labels[fold.held]).sum()), len(fold.held))


def results_table(candidates: Sequence[Candidate[Any]], scores: Sequence[CandidateScore]) -> dict[str, Any]:
    """Format the scores as scikit-learn's searches do.

    The mean is over held-out rows, each counted once. Its standard error is that of a share of as many rows, with one
    correct and one wrong row added (Laplace): nine of nine correct rows do not make a share certain.
    """
    shares = np.asarray([[fold.accuracy for fold in score.folds] for score in scores])
    mean = np.asarray([score.accuracy for score in scores], dtype=np.float64)  # None becomes NaN
    order = np.argsort(-np.nan_to_num(mean, nan=-1.0), kind="stable")  # candidates are sorted simplest first
    names = sorted({name for candidate in candidates for name in candidate.options})
    return {
        "params": [dict(candidate.options) for candidate in candidates],
        **{f"param_{name}": [candidate.options.get(name) for candidate in candidates] for name in names},
        **{f"split{number}_test_score": shares[:, number] for number in range(shares.shape[1])},
        "mean_test_score": mean,
        "std_test_score": shares.std(axis=1),
        "standard_error": np.asarray([score.standard_error for score in scores], dtype=np.float64),
        "rank_test_score": np.argsort(order) + 1,
        "held_out_rows": np.full(len(candidates), scores[0].held),
    }
