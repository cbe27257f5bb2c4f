"""What can be asked of a backbone."""

from dataclasses import dataclass
from pathlib import Path

from ..functional.plain_checks import check_choice
from .choices import DROPOUTS, TAPS


@dataclass(frozen=True)
class BackboneOptions:
    """Options of `create_backbone`, checked."""

    name: str
    weights: Path | None = None
    pretrained: bool = True
    channels: int = 3
    tap: str | None = None
    dropout: str = "classifier"
    size: int | None = None

    def __post_init__(self) -> None:
        if self.channels not in (1, 3):
            raise ValueError(f"channels must be 1 (grey, depth) or 3 (colour), got {self.channels!r}")
        if self.tap is not None:
            check_choice(self.tap, TAPS, "tap")
        check_choice(self.dropout, DROPOUTS, "dropout")
        if self.size is not None and (isinstance(self.size, bool) or not isinstance(self.size, int) or self.size < 1):
            raise ValueError(f"size must be an integer of at least 1, got {self.size!r}")

    def choose_tap(self, *offered: str) -> str:
        """The tap asked for, if the network offers it; its first one by default."""
        if self.tap is None:
            return offered[0]
        if self.tap not in offered:
            raise ValueError(f"backbone {self.name} offers the tap {' or '.join(map(repr, offered))}, not {self.tap!r}")
        return self.tap
