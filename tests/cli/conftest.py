"""The command line called as a user calls it, and a finished run to try it on."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Domains, Ended, make_domains, overriding

from sohot.cli import main


@pytest.fixture
def domains(tmp_path: Path) -> Domains:
    return make_domains(tmp_path)


@pytest.fixture
def sohot(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    def call(*arguments: object) -> Ended:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(overriding(arguments))
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return Ended(int(ended.value.code or 0), captured.out, captured.err)

    return call


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Domains]:
    """A finished run and its images; not to be changed."""
    root = tmp_path_factory.mktemp("trained")
    domains = make_domains(root)
    options = ["--shots", "3", "--steps", "40", "--lr", "0.01", "--clip-norm", "1", "--quiet"]
    with pytest.raises(SystemExit) as ended:
        main(["fit", *domains.options(), *options, "--out", str(root / "run")])
    assert not ended.value.code
    return root / "run", domains


@pytest.fixture
def run_copy(trained: tuple[Path, Domains], tmp_path: Path) -> Path:
    """A copy of the finished run that a test may spoil."""
    return Path(shutil.copytree(trained[0], tmp_path / "copy"))
