"""Answers that compute nothing come at once: what takes seconds to import is not imported for them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import Domains, python_path

HEAVY = {
    "lightning",
    "lightning_fabric",
    "matplotlib",
    "optuna",
    "pandas",
    "plotly",
    "ray",
    "scipy",
    "sklearn",
    "timm",
    "torch",
    "torchvision",
    "triton",
}
CALL = """
import json, sys
from sohot.cli import main
try:
    main(sys.argv[1:])
except SystemExit as ended:
    print(json.dumps([ended.code, sorted(sys.modules)]), file=sys.stderr)
"""


def call(*arguments: str, cwd: Path) -> tuple[int, str, set[str]]:
    """Give a command's exit code, its output and the heavy packages it has imported."""
    ended = subprocess.run(
        [sys.executable, "-c", CALL, *arguments], env=python_path(), cwd=cwd, capture_output=True, text=True, check=True
    )
    code, modules = json.loads(ended.stderr.splitlines()[-1])
    return code, ended.stdout + ended.stderr, HEAVY & set(modules)


@pytest.mark.parametrize(
    "command",
    [
        "--help",
        "--version",
        "",
        "fit --help",
        "features --help",
        "fit-features --help-all",
        "evaluate --help",
        "suggest --help",
        "app --help",
        "data check --help",
        "weights pack --help",
        "experiment --help",
        "experiment --list",
        "data fetch office31",
    ],
)
def test_help_and_lists_do_not_wait_for_torch(command: str, tmp_path: Path) -> None:
    code, said, heavy = call(*command.split(), cwd=tmp_path)
    assert code == 0
    assert said
    assert not heavy


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("nonsense", "No such command"),
        ("fit --shotz 3", "No such option: --shotz"),
        ("fit --steps many", "Invalid value for '--steps'"),
        ("fit --shots 0", "--shots must be an integer of at least 1, got 0"),
        ("fit --config none.toml", "there is no such file"),
        ("fit --method meens", "paper or another sum of so, to, fo and zeta, got 'meens'; did you mean 'means'?"),
        ("fit --source . --target .", "--out is missing"),
        ("fit --source . --out run", "--target is missing"),
        ("fit --source . --target nowhere --out run", "--target nowhere: there is no such folder"),
        ("fit --target . --target . --out run", "--target takes one value, but was given 2 times"),
        ("info nothing", "there is no such run folder"),
        ("evaluate", "Missing argument 'RUN'"),
        ("app nothing", "nothing: there is no such run folder"),
        ("export run", "give --onnx FILE or --package DIR"),
        ("predict run . --engine ray --address nowhere --out x", "the address of a Ray cluster must be HOST:PORT"),
        ("data check nonsense .", "must be one of"),
        ("weights pack lite7 --out w.safetensors", "did you mean 'lite2'?"),
        ("experiment nonsense", "there is no experiment 'nonsense'"),
        ("experiment office-alexnet --set sigma3=1", "unknown setting 'sigma3'"),
        ("experiment office-alexnet", "--data is missing"),
    ],
)
def test_a_wrong_call_is_refused_before_torch_is_there(command: str, sentence: str, tmp_path: Path) -> None:
    code, said, heavy = call(*command.split(), cwd=tmp_path)
    assert code == 2
    assert sentence in said
    assert not heavy


def test_what_a_run_is_can_be_told_without_torch(trained: tuple[Path, Domains], tmp_path: Path) -> None:
    code, said, heavy = call("info", str(trained[0]), "--json", cwd=tmp_path)
    assert code == 0
    assert '"state": "finished' in said
    assert not heavy
