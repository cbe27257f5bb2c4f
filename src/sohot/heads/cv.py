"""`SoHoTClassifierCV`: selects settings on the labelled target rows themselves."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.base import clone  # type: ignore[import-untyped]
from sklearn.model_selection import ParameterGrid  # type: ignore[import-untyped]

from ..methods.registry import method as find_method
from ..methods.settings import HeadSettings
from ..selection.calibration import fit_temperature
from ..selection.candidates import Candidate, distinct, name_options, relevant, simplicity
from ..selection.choice import AllFailed, CandidateScore, blending_weights, choose, tabulate
from ..selection.held_out import HeldOut
from ..selection.spaces import CLASSIFIER_GRIDS
from ..training.errors import Diverged
from .classifier import SoHoTClassifier, plain
from .domains import DomainRows
from .feature_classifier import FeatureClassifier
from .fit import OnProgress, fit_stack
from .problem import fitting_settings, make_problem
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
        """Average the candidates or choose one of them, and train on all rows."""
        self.classes_ = rows.classes
        scores = self._score(rows, candidates, base, on_progress)
        try:
            found = average(candidates, scores) if can_be_averaged(candidates) else pick(candidates, scores, base)
        except AllFailed:
            raise ValueError("every candidate diverged: lower lr, sigma1, sigma2 or loss_weight") from None
        fitting_settings(rows, candidates[0].settings, stacklevel=5)  # warns about rows without a label
        problem, offsets = make_problem(rows)
        counting = sorted(np.flatnonzero(found.weights).tolist(), key=lambda place: -found.weights[place])
        settings = [candidates[place].settings for place in counting]
        fits = fit_stack([problem] * len(counting), settings, device=base.device)
        fit = blend(fits, [found.weights[place] / found.temperatures[place] for place in counting])
        if plain(base.calibrate):
            fit = replace(fit, temperature=fit_temperature(found.held_out))
        leader = candidates[counting[0]]
        best = _with_options(base, leader.options, leader.settings.seed)
        best.adopt(self, fit, problem, offsets)
        self.best_estimator_, self.best_params_ = best, dict(leader.options)
        self.best_score_, self.reason_ = found.held_out.right / len(found.held_out), found.reason
        self.weights_ = found.weights
        self.cv_results_ = results_table(candidates, scores)

    def _score(
        self,
        rows: DomainRows,
        candidates: Sequence[Candidate[HeadSettings]],
        base: SoHoTClassifier,
        on_progress: OnProgress | None,
    ) -> list[CandidateScore]:
        """Train all candidates on all folds together."""
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
        scores = [score_fold(fit, problem, fold) for fit, fold in zip(fits, folds * len(candidates), strict=True)]
        return tabulate([one.name for one in candidates], len(folds), scores)


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


class Found(NamedTuple):
    """What held-out labels say about candidates.

    Attributes:
        weights: How much each candidate counts; one of them 1 and the others 0 if one was chosen.
        temperatures: The temperature of each.
        held_out: What the outcome says about the held-out rows.
        reason: Why, in words.
    """

    weights: list[float]
    temperatures: list[float]
    held_out: HeldOut
    reason: str


def can_be_averaged(candidates: Sequence[Candidate[HeadSettings]]) -> bool:
    """Tell whether candidates are linear classifiers of the same features, so that their average is one too."""
    same = {(one.settings.method, one.settings.components, one.settings.norm_bound) for one in candidates}
    return len(same) == 1 and not any(one.settings.trains_network() for one in candidates)


def average(candidates: Sequence[Candidate[HeadSettings]], scores: Sequence[CandidateScore]) -> Found:
    """Weigh candidates by what they say about held-out rows.

    Raises:
        AllFailed: Every candidate failed.
    """
    weights = blending_weights(scores)
    counting = [(one, weight) for one, weight in zip(scores, weights, strict=True) if weight and one.held_out]
    logits = sum(weight * one.held_out.logits / one.temperature for one, weight in counting if one.held_out)
    labels = next(one.held_out.labels for one, _ in counting if one.held_out)
    held_out = HeldOut(np.asarray(logits), labels)
    most = max(range(len(scores)), key=weights.__getitem__)
    share = f"{100 * held_out.right / len(held_out):.1f} % of {len(held_out)} held-out target rows right"
    told = f"{candidates[most].name} counts most, {100 * weights[most]:.0f} %"
    reason = f"the average of {len(counting)} candidates, by the likelihood of the held-out labels: {share}; {told}"
    return Found(weights, [one.temperature for one in scores], held_out, reason)


def pick(
    candidates: Sequence[Candidate[HeadSettings]], scores: Sequence[CandidateScore], base: SoHoTClassifier
) -> Found:
    """Choose one candidate: the default, unless the labels clearly speak for another.

    Raises:
        AllFailed: Every candidate failed.
    """
    usual = _with_options(base, {}, candidates[0].settings.seed).settings()
    default = next((place for place, one in enumerate(candidates) if one.settings == usual), 0)
    choice = choose(scores, default=default)
    weights = [float(place == choice.place) for place in range(len(scores))]
    held_out = choice.best.held_out
    if held_out is None:
        raise AllFailed("the chosen candidate failed")
    return Found(weights, [1.0] * len(scores), held_out, choice.reason("rows", brief=True))


def blend(fits: Sequence[StackedFit], shares: Sequence[float]) -> StackedFit:
    """Add up fits that are linear classifiers of the same features, each times its share; a single fit may be any.

    Settings and history are those of the first.

    Raises:
        Diverged: A fit is no longer finite.
    """
    if any(fit.diverged for fit in fits):
        raise Diverged("training diverged (the loss is not finite): lower lr, sigma1, sigma2 or loss_weight")
    first = fits[0]
    sums = {
        name: torch.stack([share * fit.parameters[name] for fit, share in zip(fits, shares, strict=True)]).sum(0)
        for name in first.parameters
        if name.endswith((".classifier", ".bias"))
    }
    return replace(first, parameters={**first.parameters, **sums})


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
