"""The five lines of SECURITY.md, by commands: a stranger's run, package, feature file, grid or list of images.

Its code is not run, nothing is unpickled, nothing outside is read or written, and damage or size ends in a sentence.
"""

import io
import json
import os
import pickle
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from command_line import Domains, Ended, make_domains, newest, python_path
from made_up_results import make_experiment

import sohot as package
from sohot._files import sealed
from sohot.cli import main
from sohot.data.protocols.split import fingerprint_of
from sohot.networks import create_backbone
from sohot.runs import open_run
from sohot.runs.run_outputs import OUTPUTS

Sohot = Callable[..., Ended]
NETWORK = (
    "from torch import nn\n"
    "def net(pretrained=True):\n"
    "    layers = nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 4)\n"
    "    return nn.Sequential(*layers)\n"
)


class Harm:
    """An object that leaves a trace when it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.trace),)


def refused(ended: Ended, *words: str) -> None:
    """Require one sentence with these words and the exit code of wrong input."""
    assert ended.code == 2, ended.err
    assert "unexpected" not in ended.err
    assert all(word in ended.last for word in words), ended.last


# Code


class Stranger:
    """A run whose files are intact but whose network is a file that leaves a trace when it is imported."""

    def __init__(self, root: Path, domains: Domains) -> None:
        self.run, self.domains, self.trace = root / "run", domains, root / "trace"

    def ran(self) -> bool:
        ran = self.trace.exists()
        shutil.rmtree(self.trace, ignore_errors=True)
        return ran


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Stranger:
    root = tmp_path_factory.mktemp("stranger")
    made = Stranger(root, make_domains(root))
    (root / "net.py").write_text(NETWORK)
    options = [*made.domains.options(), "--shots", "2", "--steps", "2", "--quiet"]
    options[options.index("small-cnn")] = f"{root / 'net.py'}:net"
    with pytest.raises(SystemExit) as ended:
        main(["fit", *options, "--out", str(made.run)])
    assert not ended.value.code
    (root / "net.py").write_text(f"import os\nos.makedirs({str(made.trace)!r}, exist_ok=True)\n{NETWORK}")
    return made


@pytest.mark.parametrize(
    "command",
    [
        ("evaluate", "{run}", "{test}"),
        ("predict", "{run}", "{test}"),
        ("export", "{run}", "--onnx", "{out}/model.onnx"),
        ("export", "{run}", "--package", "{out}/package"),
        ("fit", "--out", "{run}", "--resume"),
        ("fit", "--out", "{run}", "--resume", "--devices", "2"),
        ("fit", "--config", "{run}/config.toml", "--out", "{out}/again"),
    ],
)
def test_no_command_imports_the_file_that_a_run_names(sohot: Sohot, stranger: Stranger, tmp_path: Path, command):
    places = {"run": stranger.run, "test": stranger.domains.test, "out": tmp_path}
    refused(sohot(*(word.format(**places) for word in command)), "net.py:net", "--trust")
    assert not stranger.ran()
    assert not list(tmp_path.iterdir())


def test_a_report_is_written_without_it(sohot: Sohot, stranger: Stranger, tmp_path: Path):
    run = Path(shutil.copytree(stranger.run, tmp_path / "run"))
    assert sohot("report", run, "--out", tmp_path / "page.html").code == 0
    (run / OUTPUTS).unlink()  # now the network would have to see the images again
    assert sohot("report", run, "--out", tmp_path / "page.html").code == 0
    assert "add --trust" in (tmp_path / "page.html").read_text()
    assert not stranger.ran()


def test_trust_imports_it(sohot: Sohot, stranger: Stranger):
    assert sohot("predict", stranger.run, stranger.domains.test / "red" / "0.png", "--trust").code == 0
    assert stranger.ran()
    assert sohot("fit", "--out", stranger.run, "--resume", "--trust").code == 0
    assert stranger.ran()


def test_python_imports_it_only_on_request(stranger: Stranger):
    for call in (open_run, package.load, lambda run: package.fit(out=run, resume=True, progress=False)):
        with pytest.raises(ValueError, match=r"add --trust \(in Python: trust=True\)$"):
            call(stranger.run)
    assert not stranger.ran()
    for call in (open_run, package.load):
        assert call(stranger.run, trust=True).classes == ("blue", "green", "red")
        assert stranger.ran()


@pytest.mark.parametrize("option", ["backbone", "source_backbone"])
@pytest.mark.parametrize("name", ["{net}:net", "timm:{net}:net"])
def test_a_configuration_alone_imports_nothing(
    sohot: Sohot, run_copy: Path, stranger: Stranger, tmp_path, option, name
):
    file = run_copy / "config.toml"
    lines = [line for line in file.read_text().splitlines() if not line.startswith(f"{option} ")]
    value = name.format(net=stranger.trace.parent / "net.py")
    file.write_text("\n".join([*lines, f"{option} = '{value}'\n"]))
    sohot("report", run_copy, "--out", tmp_path / "page.html")
    assert sohot("fit", "--out", run_copy, "--resume").code == 2
    assert not stranger.ran()


@pytest.mark.parametrize("name", ["os:system", "net:f", "net.PY:f", "net.py", "timm:hf-hub:a/b", "timm:local-dir:run"])
def test_no_other_name_finds_code(name: str):
    with pytest.raises(ValueError, match="backbone"):
        create_backbone(name)


def test_the_grid_of_an_experiment_imports_nothing(sohot: Sohot, stranger: Stranger, tmp_path: Path):
    (tmp_path / "cells").mkdir()
    grid = (
        f'dataset = "domains"\nprotocol = "k-shot"\n[settings]\nsource_backbone = "{stranger.trace.parent}/net.py:net"'
    )
    (tmp_path / "grid.toml").write_text(grid)
    refused(
        sohot("experiment", tmp_path / "grid.toml", "--data", stranger.domains.source.parent, "--dry-run"), "--trust"
    )
    assert not stranger.ran()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 has no such setting")
def test_a_command_imports_nothing_from_the_folder_it_starts_in(tmp_path: Path):
    for name in ("json", "typer", "torch", "sohot"):
        (tmp_path / f"{name}.py").write_text("import os\nos.mkdir('trace')\n")
    command = [sys.executable, "-P", "-m", "sohot", "--version"]
    assert subprocess.run(command, cwd=tmp_path, env=python_path(), check=False, capture_output=True).returncode == 0
    assert not (tmp_path / "trace").exists()


# Pickles


@pytest.mark.parametrize("write", [torch.save, lambda value, file: Path(file).write_bytes(pickle.dumps(value))])
def test_pickled_weights_are_refused(sohot: Sohot, domains: Domains, tmp_path: Path, write):
    write({"layer": Harm(tmp_path / "trace")}, tmp_path / "weights.pt")
    options = (*domains.options(), "--shots", 2, "--out", tmp_path / "run", "--weights", tmp_path / "weights.pt")
    refused(sohot("fit", *options), "weights.pt")
    assert not (tmp_path / "trace").exists()


def test_a_pickle_in_the_place_of_a_tensor_file_is_not_read(sohot: Sohot, run_copy: Path, trained, tmp_path: Path):
    content = pickle.dumps(Harm(tmp_path / "trace"))
    (newest(run_copy) / "model.safetensors").write_bytes(content)
    refused(sohot("evaluate", run_copy, trained[1].test), "is damaged")
    assert not (tmp_path / "trace").exists()


# Places


@pytest.mark.parametrize("name", ["/dev/zero", "../../../net.py", "checkpoint.json/../model.safetensors"])
def test_a_checkpoint_lists_only_its_own_files(sohot: Sohot, run_copy: Path, trained, name: str):
    file = newest(run_copy) / "checkpoint.json"
    content = json.loads(file.read_text())
    del content["sha256"]
    content["files"] = {name: content["files"]["model.safetensors"]}
    file.write_text(json.dumps(sealed(content)))
    refused(sohot("evaluate", run_copy, trained[1].test), "leads out of the folder")


@pytest.mark.parametrize("name", ["/etc/passwd", "../secret.png"])
def test_a_run_lists_only_images_in_the_folders_it_names(sohot: Sohot, run_copy: Path, tmp_path: Path, name: str):
    content = json.loads((run_copy / "split.json").read_text())
    content["sides"]["target_test"]["files"][0] = name
    (run_copy / "split.json").write_text(json.dumps({**content, "fingerprint": fingerprint_of(content)}))
    assert sohot("report", run_copy, "--out", tmp_path / "page.html").code == 0
    assert "names files outside its folder" in (tmp_path / "page.html").read_text()


def test_a_report_names_the_folders_it_searches_and_searches_no_disk(
    sohot: Sohot, run_copy: Path, trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (run_copy / OUTPUTS).unlink()
    ended = sohot("report", run_copy, "--out", tmp_path / "page.html")
    assert f"looking for images in {trained[1].target}" in ended.err
    assert "can no longer be found" not in (tmp_path / "page.html").read_text()
    monkeypatch.setattr("sohot.reporting.pages.run_images.MOST_SEARCHED", 10)
    sohot("report", run_copy, "--out", tmp_path / "page.html")
    assert "holds more than 10 files" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("name", "more"),
    [("checkpoints", ()), ("cache", ("--cache", "disk")), ("tensorboard", ("--loggers", "tensorboard"))],
)
def test_no_link_leads_a_run_out_of_its_folder(sohot: Sohot, domains: Domains, tmp_path: Path, name: str, more):
    elsewhere, run = tmp_path / "elsewhere", tmp_path / "run"
    elsewhere.mkdir()
    run.mkdir()
    (run / name).symlink_to(elsewhere)
    ended = sohot("fit", *domains.options(), "--shots", 2, "--steps", 2, "--quiet", "--out", run, *more)
    refused(ended, f"{run / name} is a link, so what is written there would leave its folder: remove the link")
    assert list(elsewhere.iterdir()) == []


def test_no_file_of_a_run_is_written_through_a_link(sohot: Sohot, domains: Domains, tmp_path: Path):
    fit = ("fit", *domains.options(), "--shots", 2, "--steps", 2, "--quiet", "--out", tmp_path / "run")
    assert sohot(*fit).code == 0
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for name in ("report.json", "predictions.csv", "log.csv"):
        (tmp_path / "run" / name).unlink()
        (tmp_path / "run" / name).symlink_to(victim)
    sohot("fit", "--out", tmp_path / "run", "--resume")
    assert victim.read_text() == "precious"


# Damage and size


def spoil(file: Path, kind: str) -> None:
    """Put something that must not be read in the place of a file of JSON or TOML."""
    content = file.read_bytes() if file.is_file() else b""
    file.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "device":
        file.symlink_to("/dev/zero")
    elif kind == "link":
        file.with_suffix(".elsewhere").write_bytes(content)
        file.symlink_to(file.with_suffix(".elsewhere"))
    elif kind == "deep":
        file.write_text("[" * 10**5 if file.suffix == ".json" else f"a = {'[' * 10**5}")
    else:
        with open(file, "wb") as stream:
            stream.truncate(1 << 40)  # takes no room on the disk


@pytest.mark.parametrize(
    "name", ["run.json", "config.toml", "report.json", "log.csv", "checkpoints/{}/checkpoint.json"]
)
@pytest.mark.parametrize("kind", ["pipe", "device", "deep", "huge"])
def test_no_file_of_a_run_makes_a_command_hang_or_fail_unexpectedly(
    sohot: Sohot, run_copy: Path, tmp_path: Path, name: str, kind: str
):
    spoil(run_copy / name.format(newest(run_copy).name), kind)
    for command in (("info", run_copy), ("report", run_copy, "--images", 0, "--out", tmp_path / "page.html")):
        ended = sohot(*command)
        assert "unexpected" not in ended.err
        assert ended.code in (0, 2)


def test_a_link_to_a_regular_file_is_read(sohot: Sohot, run_copy: Path, tmp_path: Path):
    shutil.move(run_copy / "report.json", tmp_path / "report.json")
    (run_copy / "report.json").symlink_to(tmp_path / "report.json")
    assert sohot("info", run_copy).code == 0


def test_tensors_are_a_regular_file(sohot: Sohot, run_copy: Path):
    (newest(run_copy) / "model.safetensors").unlink()
    os.mkfifo(newest(run_copy) / "model.safetensors")
    refused(sohot("export", run_copy, "--onnx", run_copy / "model.onnx"), "model.safetensors")


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("run.json", ["versions"], []),
        ("run.json", ["config", "network"], "x"),
        ("run.json", ["config", "data", "classes"], 3),
        ("report.json", ["data"], [1]),
        ("report.json", ["data", "target"], {"a": 1}),
        ("report.json", ["selection"], {"a": 1}),
        ("report.json", ["accuracy", "interval95"], None),
    ],
)
def test_an_edited_description_ends_in_a_sentence(sohot: Sohot, run_copy: Path, tmp_path: Path, name, place, value):
    content = json.loads((run_copy / name).read_text())
    was_sealed = content.pop("sha256", None) is not None
    inner = content
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    (run_copy / name).write_text(json.dumps(sealed(content) if was_sealed else content))
    for command in (("info", run_copy), ("report", run_copy, "--images", 0, "--out", tmp_path / "page.html")):
        refused(sohot(*command), "is damaged")


@pytest.mark.parametrize("kind", ["pipe", "device", "deep", "huge", "link"])
def test_a_result_of_an_experiment_is_passed_over_by_name(sohot: Sohot, tmp_path: Path, kind: str):
    folder = make_experiment(tmp_path / "experiment", splits=2)
    file = min((folder / "cells").glob("*.json"), key=lambda path: (path.name == "plan.json", path.name))
    spoil(file, kind)
    ended = sohot("report", folder, "--out", tmp_path / "page.html")
    assert ended.code == 0
    assert f"{file.name} is damaged and does not count" in ended.err


def write_features(file: Path, **changed: Any) -> Path:
    """Write a feature file, or another with one array changed."""
    arrays: dict[str, Any] = {
        "format": 1,
        "network": "{}",
        "features": np.eye(4, dtype=np.float32),
        "labels": [0, 1, 0, 1],
        "classes": ["cup", "mug"],
        "files": list("abcd"),
        "contents": list("abcd"),
        "domains": [0, 0, 0, 0],
        "domain_names": ["photos"],
    }
    np.savez(file, **{**arrays, **changed})
    return file


def bomb(file: Path) -> Path:
    """Write a feature file of a few bytes whose array claims to hold four terabytes."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (10**6, 10**6)})
    good = write_features(file.with_name("good.npz"))
    with zipfile.ZipFile(file, "w") as new, zipfile.ZipFile(good) as old:
        for info in old.infolist():
            new.writestr(info, header.getvalue() if info.filename == "features.npy" else old.read(info))
    return file


@pytest.mark.parametrize("kind", ["pickle", "bomb", "text", "cut", "pipe", "deep"])
def test_a_feature_file_ends_in_a_sentence(sohot: Sohot, tmp_path: Path, kind: str):
    file, trace = tmp_path / "odd.npz", tmp_path / "trace"
    if kind == "pickle":
        write_features(file, features=np.array([Harm(trace)], dtype=object))
    elif kind == "bomb":
        bomb(file)
    elif kind == "text":
        file.write_text("no zip")
    elif kind == "cut":
        file.write_bytes(write_features(tmp_path / "good.npz").read_bytes()[:900])
    elif kind == "pipe":
        os.mkfifo(file)
    else:
        write_features(file, network="[" * 10**5)
    refused(
        sohot("fit-features", "--source", file, "--target", file, "--shots", 1, "--out", tmp_path / "head"), file.name
    )
    assert not trace.exists()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"path,label\n" + b"\0" * 99, "list.csv"),
        (b"path,label\n/dev/zero,mug\n", "is a pipe or a device"),
        (b"path,label\npipe.png,mug\n", "is a pipe or a device"),
        (b"path,label\n" + b"a" * 10**6, "list.csv"),
        (b"\xff\xfe\xff", "list.csv"),
    ],
)
def test_a_list_ends_in_a_sentence(sohot: Sohot, trained, tmp_path: Path, content: bytes, sentence: str):
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "list.csv").write_bytes(content)
    refused(sohot("evaluate", trained[0], tmp_path / "list.csv"), sentence)


def test_what_a_list_names_is_shown_only_as_an_image(sohot: Sohot, trained, tmp_path: Path):
    (tmp_path / "secret.png").write_text("password")
    (tmp_path / "list.csv").write_text("path\nsecret.png\n")
    ended = sohot("predict", trained[0], tmp_path / "list.csv", "--json")
    assert "password" not in ended.out + ended.err
    assert "not an image" in ended.out + ended.err


def test_a_pipe_among_images_is_left_out(sohot: Sohot, trained, tmp_path: Path):
    run, domains = trained
    images = Path(shutil.copytree(domains.test, tmp_path / "images"))
    os.mkfifo(images / "red" / "pipe.png")
    ended = sohot("predict", run, images, "--json")
    assert ended.json["labelled"] == 12
    assert "not a regular file" in ended.json["unreadable"][0]["reason"]
    assert sohot("evaluate", run, images, "--json").json["accuracy"]["rows"] == 12


def test_an_image_too_large_to_decode_is_left_out(sohot: Sohot, trained, tmp_path: Path):
    header = b"P6 100000 100000 255\n"  # claims 30 GB
    (tmp_path / "huge.ppm").write_bytes(header)
    ended = sohot("predict", trained[0], tmp_path / "huge.ppm", "--json")
    assert "million pixels that are safe to decode" in ended.out + ended.err
