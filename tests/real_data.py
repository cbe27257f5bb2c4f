"""Where real images and weights are looked for; tests that need them skip, with the reason, where they are not."""

import os
from pathlib import Path

import pytest

_BESIDE = Path(__file__).parents[2] / "shared"  # beside the checkout
OFFICE31 = Path(os.environ.get("SOHOT_OFFICE31", _BESIDE / "data" / "office31"))
WEIGHTS = Path(os.environ.get("SOHOT_WEIGHTS", _BESIDE / "weights"))

needs_office31 = pytest.mark.skipif(
    not OFFICE31.is_dir(), reason="needs Office-31: set SOHOT_OFFICE31 to the folder with amazon, dslr and webcam"
)
