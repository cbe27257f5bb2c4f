"""The calibration of a run, in its folder: the temperature, and the held-out answers that it was fitted to."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._files import is_intact, sealed, write_json
from .._reading import read_json
from ..selection.calibration import Calibration

if TYPE_CHECKING:
    from ..selection.held_out import HeldOut

CALIBRATION = "calibration.json"
"""The file in a run's folder."""

_FORMAT = 1


def write_calibration(out: Path, held_out: "HeldOut") -> Calibration:
    """Fit a temperature to the held-out target images of what a run keeps, and store it; without any, remove the file.

    Args:
        out: The run's folder.
        held_out: Logits of labelled target images, each by a model that was trained without it.
    """
    calibration = Calibration.of(held_out)
    if calibration.rows:
        write_json(out / CALIBRATION, sealed({"format": _FORMAT, **calibration.as_json()}))
    else:
        (out / CALIBRATION).unlink(missing_ok=True)
    return calibration


def read_calibration(folder: Path) -> Calibration | None:
    """Read the calibration of a run; None if it has none: its probabilities are those of the last layer.

    Raises:
        ValueError: The file is damaged or from another version.
    """
    file = folder / CALIBRATION
    if not file.is_file():
        return None
    try:
        content: dict[str, Any] = read_json(file)
        if not is_intact(content):
            raise ValueError("its content differs from its checksum")
        if content["format"] != _FORMAT:
            raise ValueError(f"its format is {content['format']}, this version reads {_FORMAT}")
        return Calibration.from_json(content)
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        why = str(error) if type(error) is ValueError else f"{type(error).__name__} {error}"
        raise ValueError(
            f"{file} is damaged or from another version ({why}): remove it to use the run without calibration"
        ) from None
