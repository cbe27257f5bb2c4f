"""What one fit of a stack leaves behind: a classifier of raw features."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..functional.checks import check_features
from ..functional.plain_checks import check_choice
from . import network
from .network import DOMAINS, Shape
from .objective import ZETA
from .preparation import Preparation
from .settings import HeadSettings


@dataclass(frozen=True, eq=False)
class StackedFit:
    """A trained network and classifier on features.

    Attributes:
        settings: What it was trained with.
        shape: Shapes of its tensors.
        preparations: What happens to raw features of "source" and "target" first.
        parameters: The trained tensors by name.
        history: "loss", "cross_entropy" and "alignment" before each step, each (steps,).
        scale: What features are divided by before they are aligned.
    """

    settings: HeadSettings
    shape: Shape
    preparations: dict[str, Preparation]
    parameters: dict[str, Tensor]
    history: dict[str, Tensor]
    scale: Tensor

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return self.shape.num_classes

    @property
    def diverged(self) -> bool:
        """Whether the loss or a parameter is no finite number any more. The other fits of a stack are not touched."""
        numbers = [self.history["loss"][-1:], *self.parameters.values()]
        return not all(bool(torch.isfinite(x).all()) for x in numbers)

    @property
    def zeta(self) -> dict[str, Tensor] | None:
        """Learned class weights by term ("means", "order2", …), each (classes,); None where none were learned."""
        if ZETA not in self.parameters:
            return None
        names = ["means", *(f"order{order}" for order in self.settings.resolved_method().orders)]
        return dict(zip(names, self.parameters[ZETA].unbind(), strict=True))

    @torch.no_grad()
    def transform(self, features: Tensor, domain: str = "target") -> Tensor:
        """Run raw features (n, d) of a domain through its network: what was aligned, (n, k)."""
        check_choice(domain, DOMAINS, "domain")
        check_features(features, "features")
        if domain not in self.preparations:
            raise ValueError(f"this fit was trained on the target alone and takes no features of the {domain}")
        preparation = self.preparations[domain]
        if features.shape[1] != preparation.mean.shape[0]:
            raise ValueError(
                f"features of the {domain} had {preparation.mean.shape[0]} columns in training, got {features.shape[1]}"
            )
        bound = self.settings.norm_bound
        rows = preparation(features.to(preparation.mean)).unsqueeze(0)
        bounds = None if bound is None else torch.full((1,), bound, dtype=rows.dtype, device=rows.device)
        return network.features(self._stacked(), self.shape.network(domain), rows, bounds).squeeze(0)

    @torch.no_grad()
    def predict_logits(self, features: Tensor, domain: str = "target") -> Tensor:
        """Give the logits of raw features (n, d): (n, classes)."""
        rows = self.transform(features, domain).unsqueeze(0)
        return network.logits(self._stacked(), self.shape.head(domain), rows).squeeze(0)

    def _stacked(self) -> dict[str, Tensor]:
        return {name: x.unsqueeze(0) for name, x in self.parameters.items()}

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Give everything as tensors on the CPU, by name, and a config that fits into JSON; see `from_state`."""
        tensors = {f"parameters.{name}": x for name, x in self.parameters.items()}
        tensors |= {f"history.{name}": x for name, x in self.history.items()}
        for domain, preparation in self.preparations.items():
            tensors |= {f"{domain}.mean": preparation.mean, f"{domain}.axes": preparation.axes}
        tensors["scale"] = self.scale
        copies = {name: x.detach().cpu().clone().contiguous() for name, x in tensors.items()}
        return copies, {"settings": self.settings.as_json(), "shape": self.shape._asdict()}

    @classmethod
    def from_state(cls, tensors: dict[str, Tensor], config: dict[str, Any]) -> "StackedFit":
        """Build a fit from what `state` gave."""
        return cls(
            HeadSettings.from_json(config["settings"]),
            Shape(**config["shape"]),
            {d: Preparation(tensors[f"{d}.mean"], tensors[f"{d}.axes"]) for d in DOMAINS if f"{d}.mean" in tensors},
            _with_prefix(tensors, "parameters."),
            _with_prefix(tensors, "history."),
            tensors["scale"],
        )


def _with_prefix(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name[len(prefix) :]: x for name, x in tensors.items() if name.startswith(prefix)}
