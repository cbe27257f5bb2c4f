"""`SoHoTClassifierCV`: selects settings on the labelled target rows themselves."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone  # type: ignore[import-untyped]
from sklearn.model_selection import ParameterGrid  # type: ignore[import-untyped]

from ..methods.registry import method as find_method
from ..methods.settings import HeadSettings
from ..selection.calibration import fit_temperature
from ..selection.candidates import Candidate, distinct, name_options, relevant, simplicity
from ..selection.choice import AllFailed, CandidateScore, tabulate
from ..selection.spaces import CLASSIFIER_GRIDS
from .classifier import SoHoTClassifier, plain
from .domains import DomainRows
from .feature_classifier import FeatureClassifier
from .fit import OnProgress, fit_stack
from .found import Found, average, blend, can_be_averaged, pick
from .pool_choice import choose_pool, pool_answers
from .problem import FeatureProblem, make_problem
from .result import StackedFit
from .shots import score_fold, shot_folds

ParamGrid = Mapping[str, Sequence[Any]]
_DEFAULTS = SoHoTClassifier().get_params()


class SoHoTClassifierCV(FeatureClassifier):
    """A `SoHoTClassifier` whose settings are found by holding out the labelled target rows in turn.

    Each fold holds out one labelled target row of every class; all candidates on all folds train together in a few
    stacks. They are compared by the log-likelihood of the held-out labels. Test rows are never used.

    Candidates that only train a classifier, such as the usual ones, are averaged: each counts by the probability that
    it gives to all held-out labels, so that they count alike where the labels cannot tell them apart. The average of
    linear classifiers is one linear classifier. Of candidates that train networks one is chosen: the default, unless
    the labels say clearly that another one is better (`sohot.selection.choose`). The default is the base if it is among
    the candidates, and the simplest of them otherwise.

    With unlabelled target rows all of this is done twice, with the pool and without it, and the better one is kept, as
    `SoHoTClassifier` does.

    If there is nothing to select on (one domain, or a target without labels), the base is fitted unchanged.

    Args:
        base: The classifier that sets all parameters the candidates do not name; None for the defaults.
        candidates: What to choose from: lists of values by parameter, or several such dicts, as in scikit-learn's
            GridSearchCV; parameters that a method ignores are dropped. None for nine settings of `s+t`: three
            strengths of regularisation, three shares of the target.
        folds: Number of folds; None for as many as the largest class has labelled target rows, at most 5.

    Attributes:
        best_estimator_: The chosen classifier, or the average, trained on all rows.
        best_params_: The chosen parameters; of an average, those of the candidate that counts most.
        best_score_: The share of correct held-out rows; NaN if nothing was selected.
        weights_: How much each candidate counts, in the order of `cv_results_`.
        cv_results_: The scores of each candidate, with standard errors, as in scikit-learn's searches.
        reason_: Why it was chosen, in words, and why unlabelled rows count or not.
        transduction_: The label of every row given to `fit`: its own, or for a row without one the predicted one.
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
        >>> SoHoTClassifierCV().fit(X, y, sample_domain=sample_domain).reason_
        'the average of 9 candidates, ...: 100.0 % of 6 held-out target rows right; ... counts most, ... %'
    """

    best_params_: dict[str, Any]
    cv_results_: dict[str, Any]
    weights_: list[float]

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
        rows = self._read(X, y, sample_domain, X_target, y_target)
        candidates = make_candidates(base, self._grids())
        if rows.one_domain:
            self.best_params_, self.cv_results_, self.weights_ = {}, {}, []
            self.best_score_, best = float("nan"), clone(base)
            self.reason_ = "all labelled rows come from one domain: there is nothing to align or select on"
            self.best_estimator_ = best.fit(X, y, sample_domain, X_target=X_target, y_target=y_target)
        else:
            if self.target_stream_ is not None:
                candidates = [one for one in candidates if takes_other_features(one.settings)]
            if not candidates:
                raise ValueError("the domains have different features, and no candidate has streams='separate'")
            self._select(rows, candidates, base, on_progress)
        for name in ("fit_", "classes_", "n_features_target_", "history_", "class_weights_", "temperature_"):
            setattr(self, name, getattr(self.best_estimator_, name))
        self.transduction_ = self.best_estimator_.transduction_ = self._transduce(rows)
        return self

    def _grids(self) -> ParamGrid | Sequence[ParamGrid]:
        if self.candidates is not None:
            return self.candidates
        # Rows of other columns need a network of their own.
        return [{**grid, "streams": ["separate"]} if self.target_stream_ else grid for grid in CLASSIFIER_GRIDS]

    def _select(
        self,
        rows: DomainRows,
        candidates: Sequence[Candidate[HeadSettings]],
        base: SoHoTClassifier,
        on_progress: OnProgress | None,
    ) -> None:
        """Average the candidates or choose one of them, with the pool and without it, and train on all rows."""
        self.classes_ = rows.classes
        problem, offsets = make_problem(rows)
        ways = problem.with_and_without_pool(*(one.settings for one in candidates))
        try:
            found = self._find(rows, ways, candidates, base, on_progress)
        except AllFailed:
            raise ValueError("every candidate diverged: lower lr, sigma1, sigma2 or loss_weight") from None
        fits = [_fit_counting(way, candidates, of_way, base) for way, of_way in zip(ways, found, strict=True)]
        place, reason, of_pool = 0, found[0].reason, None
        if len(ways) > 1:
            kept, of_pool = choose_pool(pool_answers(problem, fits), [one.held_out for one in found])
            place = 0 if kept else 1
            reason = f"{found[place].reason}; {of_pool}"
        self._adopt(candidates, found[place], base)
        self.best_estimator_.adopt(self, fits[place], problem, offsets)
        self.best_estimator_.reason_, self.reason_ = of_pool, reason

    def _find(
        self,
        rows: DomainRows,
        ways: Sequence[FeatureProblem],
        candidates: Sequence[Candidate[HeadSettings]],
        base: SoHoTClassifier,
        on_progress: OnProgress | None,
    ) -> list[Found]:
        """Train all candidates on all folds together, in each way, and see what the held-out labels say."""
        folds = shot_folds(rows, plain(self.folds))
        parts = [[way.without(fold) for fold in folds] for way in ways]
        if on_progress is not None:
            on_progress(0, len(ways) * len(candidates) * len(folds))
        fits = iter(
            fit_stack(
                [part for of_way in parts for _ in candidates for part in of_way],
                [candidate.settings for _ in ways for candidate in candidates for _ in folds],
                device=base.device,
                on_progress=on_progress,
            )
        )
        usual = _with_options(base, {}, candidates[0].settings.seed).settings()
        default = next((place for place, one in enumerate(candidates) if one.settings == usual), 0)
        found = []
        for way in ways:
            told = [score_fold(next(fits), way, fold) for _ in candidates for fold in folds]
            scores = tabulate([one.name for one in candidates], len(folds), told)
            found.append(average(candidates, scores) if can_be_averaged(candidates) else pick(scores, default))
        return found

    def _adopt(self, candidates: Sequence[Candidate[HeadSettings]], found: Found, base: SoHoTClassifier) -> None:
        """Store what was found."""
        leader = candidates[found.counting[0]]
        self.best_estimator_ = _with_options(base, leader.options, leader.settings.seed)
        self.best_params_ = dict(leader.options)
        self.best_score_ = found.held_out.right / len(found.held_out)
        self.weights_ = found.weights
        self.cv_results_ = results_table(candidates, found.scores)


def _fit_counting(
    problem: FeatureProblem, candidates: Sequence[Candidate[HeadSettings]], found: Found, base: SoHoTClassifier
) -> StackedFit:
    """Train the candidates that count on all rows, and add them up."""
    settings = [candidates[place].settings for place in found.counting]
    fits = fit_stack([problem] * len(settings), settings, device=base.device)
    fit = blend(fits, [found.weights[place] / found.temperatures[place] for place in found.counting])
    return replace(fit, temperature=fit_temperature(found.held_out)) if plain(base.calibrate) else fit


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
        if name not in known or name in ("calibrate", "device", "random_state"):
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


def results_table(candidates: Sequence[Candidate[Any]], scores: Sequence[CandidateScore]) -> dict[str, Any]:
    """Format the scores as scikit-learn's searches do.

    `mean_log_likelihood` is what decides: that of the held-out labels, after a temperature for each candidate. The mean
    test score is the share of correct held-out rows, each counted once. Its standard error is that of a share of as
    many rows, with one correct and one wrong row added (Laplace): nine of nine right do not make a share certain.
    """
    shares = np.asarray([[fold.accuracy for fold in score.folds] for score in scores])
    mean = np.asarray([score.accuracy for score in scores], dtype=np.float64)  # None becomes NaN
    names = sorted({name for candidate in candidates for name in candidate.options})
    likelihood = np.asarray([score.log_likelihood for score in scores], dtype=np.float64)
    order = np.argsort(-np.nan_to_num(likelihood, nan=-np.inf), kind="stable")  # candidates are sorted simplest first
    return {
        "params": [dict(candidate.options) for candidate in candidates],
        **{f"param_{name}": [candidate.options.get(name) for candidate in candidates] for name in names},
        **{f"split{number}_test_score": shares[:, number] for number in range(shares.shape[1])},
        "mean_test_score": mean,
        "std_test_score": shares.std(axis=1),
        "standard_error": np.asarray([score.standard_error for score in scores], dtype=np.float64),
        "mean_log_likelihood": likelihood,
        "rank_test_score": np.argsort(order) + 1,
        "held_out_rows": np.full(len(candidates), scores[0].held),
    }
