"""Parts of two streams: one for each domain, or one for both."""

from collections.abc import Mapping
from typing import Any

from torch import nn

DOMAINS = ("source", "target")

BOTH = "both"
"""Key of a part that serves both domains. It is stored once, so that a checkpoint never holds a tensor twice."""


def key_of(parts: Mapping[str, Any] | nn.ModuleDict, domain: str) -> str:
    """Give the key under which the part of a domain is kept."""
    return BOTH if BOTH in parts else domain


class Parts(nn.ModuleDict):
    """Modules by domain; one under `BOTH` serves both.

    Example:
        >>> Parts({BOTH: nn.ReLU()}).of("target")
        ReLU()
    """

    def of(self, domain: str) -> Any:
        """Give the part of a domain, its own or the one for both."""
        return self[key_of(self, domain)]
