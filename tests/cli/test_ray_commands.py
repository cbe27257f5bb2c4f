"""Real clusters of two machines: `predict` is killed, then a worker of it; `features` runs beside one process."""

import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import make_domains, overriding, python_path

from sohot.cli import main

PARTS = 5
ROWS = 256
# Each worker notes its number before it computes, and takes its time, so that it can be killed meanwhile.
NETWORK = """
import os, time
from torch import nn

class Slow(nn.Conv2d):
    def forward(self, images):
        if "NOTES" in os.environ:
            with open(os.environ["NOTES"], "a") as stream:
                stream.write(f"{os.getpid()}\\n")
            time.sleep(0.03)
        return super().forward(images)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(Slow(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 6, 3), nn.AdaptiveAvgPool2d(1))
        self.classifier = nn.Linear(6, 3)

    def forward(self, images):
        return self.classifier(self.body(images).flatten(1))
"""


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, "subprocess.Popen[str]"]]:
    """Start a cluster, and give the folder where its workers leave their notes."""
    if importlib.util.find_spec("ray") is None or importlib.util.find_spec("pyarrow") is None:
        assert os.environ.get("CI") != "true", "Ray must be there when tests run in CI"
        pytest.skip("needs Ray Data: pip install 'sohot[ray]'")
    root = tmp_path_factory.mktemp("ray")
    environment = {**python_path(), "NOTES": str(root / "notes"), "RAY_USAGE_STATS_ENABLED": "0"}
    command = [sys.executable, str(Path(__file__).with_name("ray_machines.py"))]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        yield root, process
        process.communicate()


@pytest.fixture(scope="module")
def place(machines: tuple[Path, "subprocess.Popen[str]"]) -> Path:
    """Make a run, many images, one of them damaged, and the labels that one process gives them."""
    root, _ = machines  # which start meanwhile
    domains = make_domains(root)
    (root / "net.py").write_text(NETWORK)
    many = root / "many"
    for number in range((PARTS * ROWS - 100) // 12 + 1):
        (many / f"{number:03d}").mkdir(parents=True)
        for image in sorted(domains.test.rglob("*.png")):
            os.link(image, many / f"{number:03d}" / f"{image.parent.name}-{image.name}")
    (many / "050" / "damaged.png").write_bytes(b"\x89PNG")
    options = [*domains.options(), "--backbone", f"{root / 'net.py'}:Net", "--shots", "3", "--steps", "2", "--quiet"]
    for words in (
        ["fit", *overriding(options), "--out", str(root / "run")],
        ["predict", str(root / "run"), str(many), "--trust", "--quiet", "--out", str(root / "plain.csv")],
    ):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert not ended.value.code
    return root


@pytest.fixture(scope="module")
def address(machines: tuple[Path, "subprocess.Popen[str]"], place: Path) -> str:  # noqa: ARG001 - it is made first
    stream = machines[1].stdout
    assert stream is not None
    return stream.readline().strip()


def _pids(place: Path) -> list[int]:
    notes = place / "notes"
    return [int(line) for line in notes.read_text().split("\n")[:-1]] if notes.exists() else []


def _wait(until, seconds: float = 240.0) -> None:
    end = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_killed_command_and_a_killed_worker_lose_nothing(place: Path, address: str) -> None:
    out, parts = place / "ray.csv", place / "ray.csv.parts"
    words = ["predict", str(place / "run"), str(place / "many"), "--trust", "--out", str(out)]
    command = [sys.executable, "-m", "sohot", *words, "--engine", "ray", "--address", address]

    def start() -> "subprocess.Popen[str]":
        return subprocess.Popen(command, env=python_path(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    with start() as first:
        _wait(lambda: any(parts.glob("*.pt")))
        first.kill()
    kept = {file: file.stat().st_mtime_ns for file in parts.glob("*.pt")}
    assert 0 < len(kept) < PARTS
    _wait(lambda: not any(Path(f"/proc/{pid}").exists() for pid in _pids(place)))  # Ray ends them with the command
    before = len(_pids(place))

    with start() as second:
        _wait(lambda: len(_pids(place)) > before)
        os.kill(_pids(place)[-1], signal.SIGKILL)
        _wait(lambda: len(list(parts.glob("*.pt"))) > len(kept))
        still = {file: file.stat().st_mtime_ns for file in kept}
        _, err = second.communicate(timeout=240)
    assert second.returncode == 0, err
    assert "ray" not in err.replace("ray.csv", "").replace(str(place), "").lower()  # nothing of Ray's own
    assert still == kept
    computed = len(_pids(place)) - before
    assert computed <= (PARTS - len(kept) + 2) * (ROWS // 8 + 1)  # a worker has two parts at a time
    assert out.read_bytes() == (place / "plain.csv").read_bytes()
    assert "damaged.png" in err
    assert not parts.exists()


def test_features_are_those_of_one_process(place: Path, address: str) -> None:
    few = place / "many" / "000"
    words = ["features", str(few), "--no-labels", "--backbone", "small-cnn", "--image-size", "16", "--quiet"]
    for name, more in (("plain", []), ("ray", ["--engine", "ray", "--address", address])):
        command = [sys.executable, "-m", "sohot", *words, "--out", str(place / f"{name}.npz"), *more]
        subprocess.run(command, env=python_path(), check=True, timeout=240)
    assert (place / "ray.npz").read_bytes() == (place / "plain.npz").read_bytes()
