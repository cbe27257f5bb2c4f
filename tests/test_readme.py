"""What the README shows runs as it stands."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("code", BLOCKS)
def test_python_blocks_run(code: str) -> None:
    exec(compile(code, str(README), "exec"), {})


def test_there_are_blocks_to_run() -> None:
    assert BLOCKS


def test_relative_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([^)#:]+)\)", README.read_text(encoding="utf-8")):
        assert (README.parent / link).exists(), link
