"""A network in a folder, from training to labels."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Domains, Ended

from sohot._torchvision import import_torchvision

Call = Callable[..., Ended]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    import_torchvision()
    timm = pytest.importorskip("timm")
    timm.models.save_for_hf(timm.create_model("test_resnet"), tmp_path / "net", safe_serialization=True)
    return tmp_path / "net"


def test_a_run_with_a_network_in_a_folder(
    sohot: Call, domains: Domains, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    run = tmp_path / "run"
    backbone = ("--backbone", "timm:local-dir:net", "--image-size", "32")
    options = ("--shots", "2", "--steps", "2", "--quiet", "--out", run)
    assert sohot("fit", *domains.options(), *backbone, *options).code == 0
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    (folder / "model.safetensors").unlink()  # the run has its own weights
    labelled = sohot("predict", run, domains.test, "--json")
    assert (labelled.code, labelled.json["labelled"]) == (0, 12)
    assert f"timm:local-dir:{folder}" in sohot("info", run, "--json").out

    shutil.rmtree(folder)
    gone = sohot("predict", run, domains.test)
    assert gone.code == 2
    assert f"there is no folder {folder}" in gone.last


def test_a_folder_that_is_not_there_is_noticed_before_anything_slow(
    sohot: Call, domains: Domains, tmp_path: Path
) -> None:
    missing = tmp_path / "none"
    ended = sohot("fit", *domains.options(), "--backbone", f"timm:local-dir:{missing}", "--out", tmp_path / "run")
    assert ended.code == 2
    assert ended.err == f"sohot: --backbone {missing / 'config.json'}: there is no such file\n"
