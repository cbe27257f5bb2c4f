"""The input format of a network: the side of its images, their channels and their normalisation."""

from dataclasses import dataclass

from ..functional.plain_checks import check_choice

INTERPOLATIONS = ("bicubic", "bilinear")


@dataclass(frozen=True)
class InputSpec:
    """The form of a network's input.

    Attributes:
        size: Side of the square that the network sees.
        mean: Mean of each channel, on the scale 0 … 1; its length is the number of channels, 1 or 3.
        std: Standard deviation of each channel, on the same scale.
        resize: Shorter side of the image before the centre is cut out; at least `size`.
        interpolation: "bicubic" or "bilinear".

    Example:
        >>> spec = InputSpec(size=224, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225), resize=256)
        >>> spec.channels
        3
    """

    size: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    resize: int
    interpolation: str = "bicubic"

    def __post_init__(self) -> None:
        for name in ("size", "resize"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be an integer of at least 1, got {value!r}")
        if self.resize < self.size:
            raise ValueError(f"resize must be at least size={self.size}, got {self.resize}")
        check_choice(self.interpolation, INTERPOLATIONS, "interpolation")
        for name in ("mean", "std"):  # JSON returns lists
            object.__setattr__(self, name, tuple(float(number) for number in getattr(self, name)))
        if len(self.mean) not in (1, 3) or len(self.std) != len(self.mean):
            raise ValueError(f"mean and std must both hold 1 or 3 numbers, got {len(self.mean)} and {len(self.std)}")
        if min(self.std) <= 0:
            raise ValueError(f"std must be above 0 in every channel, got {self.std}")

    @property
    def channels(self) -> int:
        """Number of channels: 1 (grey, depth) or 3 (colour)."""
        return len(self.mean)
