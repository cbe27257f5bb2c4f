"""`SoHoTClassifier`: features of two domains in, a classifier for the target out, as scikit-learn has it."""

import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_random_state  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]

from ..methods.settings import HeadSettings
from ..training.errors import Diverged
from .domains import TargetStream
from .feature_classifier import FeatureClassifier
from .fit import fit_stack
from .problems import choose_device, make_problems, plain, settings_for
from .result import StackedFit, read_fit, write_fit

_ABOUT = ("n_features_in_", "n_features_target_")
"""Attributes that a file holds beside the networks."""


class SoHoTClassifier(FeatureClassifier):
    """Learn from a source with many labels and a target with a handful per class, by aligning their class scatters.

    On given features (of a pre-trained network, say) it trains one small network for both domains or one each, and a
    classifier on top, on all rows at once. Features are centred, brought to their principal axes and scaled first.

    `fit(X, y, sample_domain)` follows skada: positive integers are source domains, negative ones the target, and a
    target row labelled −1 has no label and is left out with a warning. Several sources are pooled into one. Without
    `sample_domain` all rows are of one domain and this is a plain classifier.

    Args:
        method: `s` (source alone), `t` (target alone), `s+t` (both, nothing aligned), `m` (whole domains aligned), or a
            sum of `so`, `to`, `fo` (class scatters of order 2, 3, 4), with `+zeta` for learned class weights. To
            compare with: `means`, `variance`, `ccsa`, `dsne`, `dage`, `supcon`, `l2-sp`, `lp-ft`, see
            `sohot.training.method`.
        orders: Orders to align in place of those in the method's name.
        sigma1: Weight of the scatters; one number, or one for each order.
        sigma2: Weight of the means.
        alpha1: How strongly ζ, the class weights of the scatters, is held at 1.
        alpha2: How strongly ζ̄, the class weights of the means, is held at 1.
        estimator: "plugin" (the paper) or "unbiased", see `sohot.ScatterAlignment`.
        feature_scale: "initial", "none" or "unit", see `sohot.ScatterAlignment`.
        rival_weight: Weight of the loss of a method to compare with; None for the one of its paper.
        margin: Margin of `ccsa` and `dsne`.
        temperature: Temperature of `supcon`.
        l2_sp: How strongly the networks are held at where they started, in place of `map_decay`; None for 0, and for
            0.01 with the method `l2-sp`.
        head_first: Share of the steps in which the classifier learns alone; None for 0, and for 0.5 with `lp-ft`.
        streams: "shared" (one network for both domains) or "separate" (two, equal at the start).
        hidden: Size of a hidden layer in the networks; None for linear ones.
        components: Number of principal axes to keep; None for all features.
        heads: "shared" (one classifier) or "coupled" (one for each domain).
        norm_bound: τ of ‖φ‖² ≤ τ; None for no bound.
        weight_decay: λ of λ‖W‖² on the classifier.
        coupling: β' of β'‖W − W*‖² between coupled classifiers.
        map_decay: Weight decay of the networks, which pulls them back to the features as they came.
        target_weight: Share of the target in the cross-entropy; None for the mean over all rows.
        learning_rate: Highest learning rate of the networks.
        head_factor: The classifier learns this many times faster.
        zeta_learning_rate: Highest learning rate of ζ.
        optimizer: "adamw" or "sgd".
        momentum: Momentum of SGD.
        schedule: "one-cycle", "cosine" or "constant".
        warmup: Share of the steps in which the learning rate rises.
        steps: Number of steps, each on all rows.
        device: Where to train: "cpu", "cuda", or "auto" for a GPU if there is one. Predictions are made on the CPU.
        random_state: Seed of the hidden layer's first weights; nothing else is random.

    Attributes:
        classes_: The classes.
        class_weights_: Learned class weights by term: "means" is ζ̄, "order2" and so on are ζ; None without `+zeta`.
        history_: "loss", "cross_entropy" and "alignment" (or the loss of a rival) of each step.
        n_features_in_: Number of features of X; `feature_names_in_` their names where X was a frame.
        n_features_target_: Number of features of the target.
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
        method: str = "so",
        *,
        orders: tuple[int, ...] | None = None,
        sigma1: float | tuple[float, ...] = 0.1,
        sigma2: float = 0.1,
        alpha1: float = 0.1,
        alpha2: float = 0.1,
        estimator: str = "plugin",
        feature_scale: str = "initial",
        rival_weight: float | None = None,
        margin: float = 1.0,
        temperature: float = 0.1,
        l2_sp: float | None = None,
        head_first: float | None = None,
        streams: str = "shared",
        hidden: int | None = None,
        components: int | None = 128,
        heads: str = "shared",
        norm_bound: float | None = None,
        weight_decay: float = 5e-3,
        coupling: float = 1e-3,
        map_decay: float = 0.0,
        target_weight: float | None = None,
        learning_rate: float = 1e-3,
        head_factor: float = 10.0,
        zeta_learning_rate: float = 0.01,
        optimizer: str = "adamw",
        momentum: float = 0.9,
        schedule: str = "one-cycle",
        warmup: float = 0.3,
        steps: int = 200,
        device: str | torch.device = "cpu",
        random_state: Any = None,
    ) -> None:
        self.method = method
        self.orders = orders
        self.sigma1 = sigma1
        self.sigma2 = sigma2
        self.alpha1 = alpha1
        self.alpha2 = alpha2
        self.estimator = estimator
        self.feature_scale = feature_scale
        self.rival_weight = rival_weight
        self.margin = margin
        self.temperature = temperature
        self.l2_sp = l2_sp
        self.head_first = head_first
        self.streams = streams
        self.hidden = hidden
        self.components = components
        self.heads = heads
        self.norm_bound = norm_bound
        self.weight_decay = weight_decay
        self.coupling = coupling
        self.map_decay = map_decay
        self.target_weight = target_weight
        self.learning_rate = learning_rate
        self.head_factor = head_factor
        self.zeta_learning_rate = zeta_learning_rate
        self.optimizer = optimizer
        self.momentum = momentum
        self.schedule = schedule
        self.warmup = warmup
        self.steps = steps
        self.device = device
        self.random_state = random_state

    def fit(
        self,
        X: Any,  # noqa: N803
        y: Any,
        sample_domain: Any = None,
        *,
        X_target: Any = None,  # noqa: N803
        y_target: Any = None,
    ) -> "SoHoTClassifier":
        """Train on labelled rows of both domains.

        Args:
            X: Features (rows, features); those of the source alone if `X_target` is given. Arrays, frames, or sparse
                matrices, which are made dense.
            y: Labels, numbers or texts; −1 for a target row without one.
            sample_domain: Positive for source rows, negative for target rows; None if there is one domain.
            X_target: Features of the target, in place of `sample_domain`. Their number may differ from that of X if
                `streams` is "separate"; `predict` then expects it.
            y_target: Labels of `X_target`.

        Returns:
            The classifier itself.

        Raises:
            ValueError: An argument is wrong; the sentence names it.
        """
        settings = self.settings()
        rows = self._read(X, y, sample_domain, X_target, y_target)
        settings = settings_for(rows, settings)
        problems = make_problems(rows)
        (found,) = fit_stack([problems.problem()], [settings], device=choose_device(self.device))
        if found.diverged:
            raise Diverged(
                "training diverged, the loss is no finite number: lower learning_rate, sigma1, sigma2 or rival_weight"
            )
        self.classes_ = rows.classes
        self.n_features_target_ = problems.target.shape[1]
        self._take(problems.restored(found))
        return self

    def _take(self, fit: StackedFit) -> None:
        """Keep a trained fit and what it tells."""
        self.fit_ = fit
        self.history_ = {name: x.numpy() for name, x in fit.history.items()}
        zeta = fit.zeta
        self.class_weights_ = None if zeta is None else {name: x.numpy() for name, x in zeta.items()}

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write the fitted classifier to one file of plain tensors (safetensors), without pickle; see `load`."""
        check_is_fitted(self, "fit_")
        about = {name: getattr(self, name) for name in _ABOUT}
        columns = {"X": self, "target": self.target_stream_}
        names = {key: getattr(one, "feature_names_in_", None) for key, one in columns.items()}
        write_fit(Path(file), self.fit_, self.classes_, {"params": self.get_params(), **about, "columns": names})

    @classmethod
    def load(cls, file: str | os.PathLike[str]) -> "SoHoTClassifier":
        """Read a classifier that `save` wrote, also by an earlier version. Nothing in the file can run code.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: It holds something else or is damaged.
        """
        fit, classes, about = read_fit(Path(file))
        params: dict[str, Any] = {k: tuple(x) if isinstance(x, list) else x for k, x in about["params"].items()}
        found = cls(**params)
        found._take(fit)
        found.classes_ = classes
        for name in _ABOUT:
            setattr(found, name, about[name])
        found.target_stream_ = None
        if found.n_features_in_ != found.n_features_target_:
            found.target_stream_ = TargetStream()
            found.target_stream_.n_features_in_ = found.n_features_target_
        for one, key in ((found, "X"), (found.target_stream_, "target")):
            if one is not None and about["columns"][key] is not None:
                one.feature_names_in_ = np.asarray(about["columns"][key], dtype=object)
        return found

    def settings(self) -> HeadSettings:
        """Give the parameters as the trainer takes them, checked."""
        names = [one.name for one in fields(HeadSettings) if one.name != "seed"]
        values = {name: plain(getattr(self, name)) for name in names}
        for name in ("orders", "sigma1"):
            if isinstance(values[name], (list, np.ndarray)):
                values[name] = tuple(plain(one) for one in values[name])
        state = self.random_state
        is_seed = isinstance(state, (int, np.integer)) and not isinstance(state, bool)
        seed = int(state) if is_seed else int(check_random_state(state).randint(2**31 - 1))
        return HeadSettings(**values, seed=seed)
