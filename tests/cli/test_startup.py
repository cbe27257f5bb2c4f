"""Answers that compute nothing come at once: what takes seconds to import is not imported for them."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command_line import Domains, python_path

HEAVY = {
    "lightning",
    "lightning_fabric",
    "matplotlib",
    "optuna",
    "pandas",
    "ray",
    "scipy",
    "sklearn",
    "timm",
    "torch",
    "torchvision",
    "triton",
}
# Imports the command line once, then runs each command in a copy of itself: a start costs no more than what it imports.
SERVER = """
import json, os, sys, traceback
from sohot.cli import main, commands
for line in sys.stdin:
    arguments, cwd, said, told = json.loads(line)
    if os.fork():
        os.wait()
        print(flush=True)
        continue
    for stream, name in ((0, os.devnull), (1, said), (2, said)):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | os.O_APPEND), stream)
    os.chdir(cwd)
    try:
        main(arguments)
    except SystemExit as ended:
        sys.stdout.flush()
        with open(told, "w") as stream:
            json.dump([ended.code, sorted(sys.modules)], stream)
    except BaseException:
        traceback.print_exc()
    os._exit(0)
"""
Call = Callable[..., tuple[int, str, set[str]]]


@pytest.fixture(scope="module")
def server() -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        [sys.executable, "-c", SERVER], env=python_path(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.communicate()


@pytest.fixture
def call(server: "subprocess.Popen[str]", tmp_path_factory: pytest.TempPathFactory) -> Call:
    """Give a command's exit code, its output and the heavy packages it has imported."""
    said, told = (tmp_path_factory.mktemp("call") / name for name in ("said", "told"))

    def called(*arguments: str, cwd: Path) -> tuple[int, str, set[str]]:
        assert server.stdin is not None
        assert server.stdout is not None
        print(json.dumps([arguments, str(cwd), str(said), str(told)]), file=server.stdin, flush=True)
        assert server.stdout.readline() == "\n"
        assert told.exists(), said.read_text()
        code, modules = json.loads(told.read_text())
        return code, said.read_text(), HEAVY & set(modules)

    return called


@pytest.mark.parametrize(
    "command",
    [
        "--help",
        "--version",
        "",
        "fit --help",
        "features --help",
        "fit-features --help",
        "evaluate --help",
        "suggest --help",
        "app --help",
        "data check --help",
        "weights --help",
        "weights --list",
        "experiment --help",
        "experiment --list",
        "data fetch office31",
    ],
)
def test_help_and_lists_do_not_wait_for_torch(call: Call, command: str, tmp_path: Path) -> None:
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
        ("fit --target . --out run", "--source is missing"),
        ("fit --source . --target nowhere --out run", "--target nowhere: there is no such folder"),
        ("fit --target . --target . --out run", "--target takes one value, but was given 2 times"),
        ("info nothing", "there is no such run folder"),
        ("evaluate", "Missing argument 'RUN'"),
        ("app nothing", "nothing: there is no such run folder"),
        ("export run", "give --onnx FILE or --package DIR"),
        ("predict run . --engine ray --address nowhere --out x", "the address of a Ray cluster must be HOST:PORT"),
        ("data check nonsense .", "must be one of"),
        ("weights lite7 --out w.safetensors", "did you mean 'lite2'?"),
        ("experiment nonsense", "there is no experiment 'nonsense'"),
        ("experiment office-alexnet --set sigma3=1", "unknown setting 'sigma3'"),
        ("experiment office-alexnet", "--data is missing"),
    ],
)
def test_a_wrong_call_is_refused_before_torch_is_there(call: Call, command: str, sentence: str, tmp_path: Path) -> None:
    code, said, heavy = call(*command.split(), cwd=tmp_path)
    assert code == 2
    assert sentence in said
    assert not heavy


def test_what_a_run_is_can_be_told_without_torch(call: Call, trained: tuple[Path, Domains], tmp_path: Path) -> None:
    code, said, heavy = call("info", str(trained[0]), "--json", cwd=tmp_path)
    assert code == 0
    assert '"state": "finished' in said
    assert not heavy
