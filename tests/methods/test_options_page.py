"""docs/options.md says what the program declares."""

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_the_one_that_the_options_give() -> None:
    written = runpy.run_path(str(DOCS / "options.py"))["page"]()
    assert (DOCS / "options.md").read_text(encoding="utf-8") == written, "run `python docs/options.py`"
