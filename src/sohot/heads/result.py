"""The result of one fit of a stack: a classifier of raw features, also as a file of tensors and JSON."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from .._files import write_atomically
from .._reading import parse_json
from ..functional.checks import check_features
from ..functional.plain_checks import check_choice
from ..methods.settings import HeadSettings
from . import network
from .network import DOMAINS, Shape
from .objective import ZETA
from .preparation import Preparation

if TYPE_CHECKING:  # it imports scikit-learn, which those who train on images do without
    from .domains import Labels


@dataclass(frozen=True, eq=False)
class StackedFit:
    """A trained network and classifier on features.

    Attributes:
        settings: The training settings.
        shape: Shapes of its tensors.
        preparations: How raw features of "source" and "target" are prepared.
        parameters: The trained tensors by name.
        history: "loss", "cross_entropy" and "alignment" before each step, each (steps,).
        scale: The number that features are divided by before alignment.
        temperature: The number that logits are divided by, so that probabilities can be trusted.
    """

    settings: HeadSettings
    shape: Shape
    preparations: dict[str, Preparation]
    parameters: dict[str, Tensor]
    history: dict[str, Tensor]
    scale: Tensor
    temperature: float = 1.0

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return self.shape.num_classes

    @property
    def diverged(self) -> bool:
        """Whether the loss or a parameter is no longer finite. Other fits of the stack are not affected."""
        numbers = [self.history["loss"][-1:], *self.parameters.values()]
        return not all(bool(torch.isfinite(x).all()) for x in numbers)

    @property
    def zeta(self) -> dict[str, Tensor] | None:
        """Learned class weights by term ("means", "order2", …), each (classes,); None if none were learned."""
        if ZETA not in self.parameters:
            return None
        names = ["means", *(f"order{order}" for order in self.settings.resolved_method().orders)]
        return dict(zip(names, self.parameters[ZETA].unbind(), strict=True))

    @torch.no_grad()
    def transform(self, features: Tensor, domain: str = "target") -> Tensor:
        """Run raw features (n, d) of a domain through its network; returns the aligned features (n, k)."""
        check_choice(domain, DOMAINS, "domain")
        check_features(features, "features")
        if domain not in self.preparations:
            raise ValueError(f"this fit was trained on the target alone and takes no {domain} features")
        preparation = self.preparations[domain]
        if features.shape[1] != preparation.mean.shape[0]:
            raise ValueError(
                f"{domain} features had {preparation.mean.shape[0]} columns in training, got {features.shape[1]}"
            )
        bound = self.settings.norm_bound
        rows = preparation(features.to(preparation.mean)).unsqueeze(0)
        bounds = None if bound is None else torch.full((1,), bound, dtype=rows.dtype, device=rows.device)
        return network.features(self._stacked(), self.shape.network(domain), rows, bounds).squeeze(0)

    @torch.no_grad()
    def predict_logits(self, features: Tensor, domain: str = "target") -> Tensor:
        """Return the logits of raw features (n, d): (n, classes)."""
        rows = self.transform(features, domain).unsqueeze(0)
        return network.logits(self._stacked(), self.shape.head(domain), rows).squeeze(0) / self.temperature

    def _stacked(self) -> dict[str, Tensor]:
        return {name: x.unsqueeze(0) for name, x in self.parameters.items()}

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return everything as named tensors on the CPU and a config that JSON can hold; see `from_state`."""
        tensors = {f"parameters.{name}": x for name, x in self.parameters.items()}
        tensors |= {f"history.{name}": x for name, x in self.history.items()}
        for domain, preparation in self.preparations.items():
            tensors |= {f"{domain}.mean": preparation.mean, f"{domain}.axes": preparation.axes}
        tensors["scale"] = self.scale
        copies = {name: x.detach().cpu().clone().contiguous() for name, x in tensors.items()}
        plain = {"settings": self.settings.as_json(), "shape": self.shape._asdict(), "temperature": self.temperature}
        return copies, plain

    def for_raw_rows(self, offsets: Mapping[str, npt.NDArray[np.float64]]) -> "StackedFit":
        """Convert a fit on shifted rows to raw rows, on the CPU in float64, so that batch size does not matter.

        Args:
            offsets: What was subtracted from the rows of each domain before the fit.
        """
        tensors, config = self.state()
        tensors = {name: x.double() if x.is_floating_point() else x for name, x in tensors.items()}
        for domain, offset in offsets.items():
            if (name := f"{domain}.mean") in tensors:
                tensors[name] += torch.from_numpy(offset)
        return StackedFit.from_state(tensors, config)

    @classmethod
    def from_state(cls, tensors: dict[str, Tensor], config: dict[str, Any]) -> "StackedFit":
        """Build a fit from the output of `state`."""
        return cls(
            HeadSettings.from_json(config["settings"]),
            Shape(**config["shape"]),
            {d: Preparation(tensors[f"{d}.mean"], tensors[f"{d}.axes"]) for d in DOMAINS if f"{d}.mean" in tensors},
            _with_prefix(tensors, "parameters."),
            _with_prefix(tensors, "history."),
            tensors["scale"],
            float(config["temperature"]),
        )


def _with_prefix(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name[len(prefix) :]: x for name, x in tensors.items() if name.startswith(prefix)}


FORMAT = "sohot classifier of features, 1"
_MOST_LABEL_BYTES = 1 << 28


def write_fit(file: Path, fit: StackedFit, classes: "Labels", about: dict[str, Any]) -> None:
    """Write a fit atomically: the file is complete or absent.

    Args:
        file: The file, usually `.safetensors`.
        fit: The trained networks.
        classes: Labels of the classes: numbers, strings or booleans.
        about: Other values to store; arrays become lists, and what JSON cannot hold becomes None.
    """
    if not file.parent.is_dir():
        raise FileNotFoundError(f"{file}: its folder does not exist")
    tensors, config = fit.state()
    kind = "U" if classes.dtype.kind == "O" else classes.dtype.str
    values = [str(one) for one in classes] if kind == "U" else classes.tolist()
    content = {"config": config, "classes": values, "label_type": kind, "about": about}
    metadata = {"format": FORMAT, "content": json.dumps(content, default=_plain)}
    write_atomically(file, safetensors.torch.save(tensors, metadata))


def read_fit(file: Path) -> tuple[StackedFit, "Labels", dict[str, Any]]:
    """Read what `write_fit` wrote: the fit, the classes and the rest.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file holds something else or is damaged.
    """
    if not file.is_file():
        raise FileNotFoundError(f"{file}: there is no such file")
    try:
        with safe_open(file, framework="pt") as stored:
            metadata = stored.metadata() or {}
            if metadata.get("format") != FORMAT:
                raise ValueError(f"its format is {metadata.get('format', 'unknown')!r}")
            content = parse_json(metadata["content"])
            tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118 - not a dict
        fit = StackedFit.from_state(tensors, content["config"])
        classes = _read_classes(content["classes"], content["label_type"])
        _require_whole(fit, len(classes))
        return fit, classes, dict(content["about"])
    except (SafetensorError, ValueError, TypeError, LookupError, AttributeError, RuntimeError) as error:
        raise not_a_classifier(file, error) from None


def not_a_classifier(file: Path, error: Exception) -> ValueError:
    """Return the sentence about a file that is damaged or holds something else."""
    reason = f"it has no {error}" if isinstance(error, KeyError) else " ".join(str(error).split())
    return ValueError(f"{file} is not a classifier saved by sohot: {reason or type(error).__name__}")


def _read_classes(values: Any, kind: Any) -> "Labels":
    label = np.dtype(str(kind))
    if not isinstance(values, list) or label.kind not in "biufU" or label.itemsize * len(values) > _MOST_LABEL_BYTES:
        raise ValueError(f"its classes are damaged (their type is {kind!r})")
    return np.asarray(values, dtype=label)


def _require_whole(fit: StackedFit, classes: int) -> None:
    """Let a row of zeros pass, so that a missing tensor or one of another shape shows now and not in use."""
    for domain, preparation in fit.preparations.items():
        columns = fit.predict_logits(torch.zeros(1, len(preparation.mean)), domain).shape[1]
        if columns != classes:
            raise ValueError(f"it has {classes} classes, but its network tells {columns} apart")
    if "target" not in fit.preparations or "loss" not in fit.history:
        raise ValueError("it is incomplete")


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    return str(value) if type(value).__module__ == "torch" else None
