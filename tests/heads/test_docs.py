"""What docs/estimator.md shows runs as it stands and prints what it says."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "estimator.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
PRINTED = re.search(r"```text\n(.*?)```", TEXT, flags=re.DOTALL)
NUMBER = re.compile(r"\d+(?:\.\d+)?")
TOLERANCE = 2.0
"""In per cent: another machine rounds otherwise, and a row in 841 is 0.1."""


@pytest.mark.parametrize("code", BLOCKS[1:])
def test_python_blocks_run(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, str(PAGE), "exec"), {})


def test_the_example_prints_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(BLOCKS[0], str(PAGE), "exec"), {})
    assert PRINTED is not None
    for printed, said in zip(capsys.readouterr().out.splitlines(), PRINTED[1].splitlines(), strict=True):
        assert NUMBER.sub("#", printed) == NUMBER.sub("#", said)
        for one, other in zip(NUMBER.findall(printed), NUMBER.findall(said), strict=True):
            assert float(one) == pytest.approx(float(other), abs=TOLERANCE)
