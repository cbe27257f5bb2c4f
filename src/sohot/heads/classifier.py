"""`SoHoTClassifier`: features of two domains in, a classifier for the target out, in scikit-learn style."""

import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_random_state  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]

from ..methods.options import SEED
from ..methods.settings import HeadSettings
from ..selection.folds import Fold, TooFewShots
from ..training.errors import Diverged
from .domains import DomainRows, TargetStream
from .feature_classifier import FeatureClassifier
from .pool_choice import fit_better
from .problem import FeatureProblem, Offset, fitting_settings, make_problem
from .result import StackedFit, not_a_classifier, read_fit, write_fit
from .shots import shot_folds

_ABOUT = {"n_features_in_": "source", "n_features_target_": "target"}
"""Attributes that a file holds besides the networks: the number of features of each domain."""


_PARAMETERS = (
    *(declared.name for declared in fields(HeadSettings) if declared.name != "seed"),
    "calibrate",
    "device",
    "random_state",
)


def describe_parameters(about: type) -> str:
    """Describe the options of a dataclass as the arguments in a docstring."""
    listed = [declared for declared in fields(about) if declared.name not in ("method", "seed")]
    lines = (f"{one.name}: {one.metadata['help']} Default: {one.default!r}." for one in listed)
    return "\n        ".join(lines)


class SoHoTClassifier(FeatureClassifier):
    """Learn from a source with many labels and a target with a handful per class, by aligning their class scatters.

    On given features (for example of a pre-trained network) it starts as a logistic regression on the rows of both
    domains, each domain with half of the weight; the default method `s+t` is that. Other methods go on from there, and
    train one small network for both domains or one each, with the classifier on top, on all rows at once.

    Target rows without a label, the pool, help where they can: the classifier is drawn to be sure of each of them, and
    to name the classes as often as they seem to occur (`pool_weight`, `pool_loss`, `prior`). If held-out labels speak
    against that, the classifier without the pool is kept (`reason_`).

    Probabilities are calibrated: labelled target rows are held out in turn, at most five times, and a temperature is
    fitted to what is then said about them. Where no class has two labelled target rows, it is 1; so it is for `s`,
    which does not look at them.

    `fit(X, y, sample_domain)` follows skada: positive integers are source domains, negative ones the target, and a
    target row labelled −1 has no label. Several sources are joined into one. Without `sample_domain` all rows belong to
    one domain and this is a plain classifier.

    Args:
        method: Name of the method, see `sohot.methods.method` and docs/methods.md.
        calibrate: Fit a temperature to held-out target rows. This takes one more training for each fold.
        device: Where to train: "cpu", "cuda", or "auto" for a GPU if there is one. Predictions are made on the CPU.
        random_state: Seed of the hidden layer's initial weights; nothing else is random.
        {parameters}

    Attributes:
        classes_: The classes.
        class_weights_: Learned class weights by term: "means" is ζ̄, "order2" etc. are ζ; None without `+zeta`.
        history_: "loss", "cross_entropy" and "alignment" (or the loss of another method) of each step.
        n_features_in_: Number of features of X; `feature_names_in_` holds their names if X was a frame.
        n_features_target_: Number of features of the target.
        temperature_: The number that logits are divided by; 1 if there was nothing to calibrate by.
        transduction_: The label of every row given to `fit`: its own, or for a row without one the predicted one.
        reason_: Why unlabelled rows count, or why not; None if there are none to look at.
        fit_: The trained networks, a `sohot.heads.StackedFit`.

    Example:
        >>> import numpy as np
        >>> from sohot import SoHoTClassifier
        >>> random = np.random.default_rng(0)
        >>> y = np.tile(["mug", "pen"], 20)
        >>> sample_domain = np.repeat([1, -1], [34, 6])
        >>> X = random.normal(size=(40, 5)) + 3 * (y == "mug")[:, None] + 2 * (sample_domain < 0)[:, None]
        >>> clf = SoHoTClassifier(method="so", streams="separate").fit(X, y, sample_domain=sample_domain)
        >>> clf.predict([[5.0] * 5, [2.0] * 5])
        array(['mug', 'pen'], dtype='<U3')
    """

    def __init__(
        self,
        method: str = "s+t",
        *,
        orders: tuple[int, ...] | None = None,
        sigma1: float | tuple[float, ...] = 0.1,
        sigma2: float = 0.1,
        alpha1: float = 0.1,
        alpha2: float = 0.1,
        estimator: str = "plugin",
        feature_scale: str = "initial",
        loss_weight: float | None = None,
        margin: float = 1.0,
        temperature: float = 0.1,
        l2_sp: float | None = None,
        head_first: float | None = None,
        streams: str = "shared",
        hidden: int | None = None,
        components: int | None = None,
        heads: str = "shared",
        norm_bound: float | None = None,
        head_decay: float = 0.03,
        coupling: float = 1e-3,
        weight_decay: float = 0.0,
        target_weight: float | None = 0.5,
        pool_weight: float = 1.0,
        pool_loss: str | None = None,
        prior: str | None = None,
        lr: float = 1e-3,
        head_factor: float = 10.0,
        zeta_lr: float = 0.01,
        optimizer: str = "adamw",
        momentum: float = 0.9,
        schedule: str = "one-cycle",
        warmup: float = 0.3,
        steps: int = 200,
        calibrate: bool = True,
        device: str | torch.device = "cpu",
        random_state: Any = None,
    ) -> None:
        given = locals()
        for name in _PARAMETERS:
            setattr(self, name, given[name])

    def fit(
        self,
        X: Any,  # noqa: N803
        y: Any,
        sample_domain: Any = None,
        *,
        X_target: Any = None,  # noqa: N803
        y_target: Any = None,
    ) -> "SoHoTClassifier":
        """Train on labelled rows of both domains, and on unlabelled rows of the target.

        Args:
            X: Features (rows, features); of the source only if `X_target` is given. Arrays, frames, or sparse
                matrices, which are made dense.
            y: Labels, numbers or strings; −1 for a target row without one.
            sample_domain: Positive for source rows, negative for target rows; None if there is one domain.
            X_target: Features of the target, instead of `sample_domain`. Their number may differ from that of X if
                `streams` is "separate"; `predict` then expects it.
            y_target: Labels of `X_target`.

        Returns:
            The classifier itself.

        Raises:
            ValueError: An argument is wrong; the message names it.
        """
        settings = self.settings()
        rows = self._read(X, y, sample_domain, X_target, y_target)
        settings = fitting_settings(rows, settings)
        problem, offsets = make_problem(rows)
        found, self.reason_ = fit_better(problem, settings, self._folds(rows, settings), self.device)
        if found.diverged:
            raise Diverged("training diverged (the loss is not finite): lower lr, sigma1, sigma2 or loss_weight")
        self.classes_ = rows.classes
        self.n_features_target_ = problem.target.shape[1]
        self._take(found.for_raw_rows(offsets))
        self.transduction_ = self._transduce(rows)
        return self

    def adopt(
        self, like: FeatureClassifier, fit: StackedFit, problem: FeatureProblem, offsets: Mapping[str, Offset]
    ) -> None:
        """Take over a fit that was found elsewhere, on rows that another classifier has read.

        Args:
            like: The classifier that has read the rows: it knows their columns.
            fit: The fit.
            problem: The rows that it was trained on.
            offsets: What was subtracted from them.
        """
        self.classes_, self.n_features_in_ = like.classes_, like.n_features_in_
        self.target_stream_ = like.target_stream_
        if (names := getattr(like, "feature_names_in_", None)) is not None:
            self.feature_names_in_ = names
        self.n_features_target_ = problem.target.shape[1]
        self._take(fit.for_raw_rows(offsets))

    def _folds(self, rows: DomainRows, settings: HeadSettings) -> list[Fold]:
        """Return the folds to calibrate by; none if that is not wanted, or nothing can be held out."""
        if rows.one_domain or not plain(self.calibrate) or not settings.resolved_method().uses_target:
            return []
        try:
            return shot_folds(rows)
        except TooFewShots:
            return []

    def _take(self, fit: StackedFit) -> None:
        """Store a trained fit and the attributes derived from it."""
        self.fit_ = fit
        self.temperature_ = fit.temperature
        self.history_ = {name: x.numpy() for name, x in fit.history.items()}
        zeta = fit.zeta
        self.class_weights_ = None if zeta is None else {name: x.numpy() for name, x in zeta.items()}

    def save(self, file: str | os.PathLike[str], *, network: Mapping[str, Any] | None = None) -> None:
        """Write the fitted classifier to one file of plain tensors (safetensors), without pickle; see `load`.

        Args:
            file: The file.
            network: What made the features, as JSON values, to be stored with it.
        """
        check_is_fitted(self, "fit_")
        about = {name: getattr(self, name) for name in _ABOUT} | ({"network": dict(network)} if network else {})
        columns = {"X": self, "target": self.target_stream_}
        names = {key: getattr(one, "feature_names_in_", None) for key, one in columns.items()}
        write_fit(Path(file), self.fit_, self.classes_, {"params": self.get_params(), **about, "columns": names})

    @classmethod
    def load(cls, file: str | os.PathLike[str]) -> "SoHoTClassifier":
        """Read a classifier that `save` wrote. Nothing in the file can run code.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file holds something else or is damaged.
        """
        fit, classes, about = read_fit(Path(file))
        try:
            found = cls._restored(fit, about)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise not_a_classifier(Path(file), error) from None
        found.classes_ = classes
        return found

    @classmethod
    def _restored(cls, fit: StackedFit, about: dict[str, Any]) -> "SoHoTClassifier":
        params: dict[str, Any] = {k: tuple(x) if isinstance(x, list) else x for k, x in about["params"].items()}
        found = cls(**params)
        found._take(fit)
        for name, domain in _ABOUT.items():
            setattr(found, name, int(about[name]))
            if domain in fit.preparations and len(fit.preparations[domain].mean) != getattr(found, name):
                raise ValueError(f"{name} is {about[name]}, which is not the size of its network")
        found.target_stream_ = None
        if found.n_features_in_ != found.n_features_target_:
            found.target_stream_ = TargetStream()
            found.target_stream_.n_features_in_ = found.n_features_target_
        for one, key in ((found, "X"), (found.target_stream_, "target")):
            if one is not None and (names := about["columns"][key]) is not None:
                if len(names) != one.n_features_in_:
                    raise ValueError(f"it names {len(names)} columns of {one.n_features_in_}")
                one.feature_names_in_ = np.asarray(names, dtype=object)
        return found

    def settings(self) -> HeadSettings:
        """Return the checked parameters in the form the trainer takes."""
        names = [one.name for one in fields(HeadSettings) if one.name != "seed"]
        values = {name: plain(getattr(self, name)) for name in names}
        for name in ("orders", "sigma1"):
            if isinstance(values[name], (list, np.ndarray)):
                values[name] = tuple(plain(one) for one in values[name])
        state = self.random_state
        is_seed = isinstance(state, (int, np.integer)) and not isinstance(state, bool)
        seed = int(state) if is_seed else int(check_random_state(state).randint(2**31 - 1))
        SEED.check(seed, "random_state")
        return HeadSettings(**values, seed=seed)


def plain(value: Any) -> Any:
    """Convert numpy numbers, which a grid search passes, to Python numbers."""
    return value.item() if isinstance(value, np.generic) else value


if SoHoTClassifier.__doc__ is not None:  # python -OO strips docstrings
    SoHoTClassifier.__doc__ = SoHoTClassifier.__doc__.replace("{parameters}", describe_parameters(HeadSettings))
