"""The types of `sohot.fit` say what the program declares."""

import runpy
from pathlib import Path

from sohot.api import fit_options

GENERATOR = Path(__file__).parents[2] / "docs" / "options.py"


def test_the_types_are_those_of_the_declarations() -> None:
    written = runpy.run_path(str(GENERATOR))["types"]()
    assert Path(fit_options.__file__).read_text(encoding="utf-8") == written, "run `python docs/options.py`"
