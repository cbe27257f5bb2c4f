"""`sohot features`: images once through a network, into one file."""

import shutil
from collections.abc import Callable
from pathlib import Path

from command_line import Domains, Ended

from sohot.runs.feature_set import read_features

QUICK = ("--backbone", "small-cnn", "--image-size", "16", "--device", "cpu", "--quiet")


def test_features_of_class_folders(sohot: Callable[..., Ended], domains: Domains, tmp_path: Path) -> None:
    (domains.source / "red" / "broken.png").write_bytes(b"no image")
    ended = sohot("features", domains.source, "--out", tmp_path / "a.npz", *QUICK, "--json")
    assert ended.code == 0
    assert ended.json["rows"] == 18
    assert ended.json["domains"] == {"source": 18}
    assert [Path(one["path"]).name for one in ended.json["left_out"]] == ["broken.png"]
    assert "random" in ended.err
    found = read_features(tmp_path / "a.npz")
    assert found.features.shape == (18, 128)
    assert found.network["input"]["size"] == 16


def test_images_beside_class_folders_are_left_out(
    sohot: Callable[..., Ended], domains: Domains, tmp_path: Path
) -> None:
    shutil.copy(domains.test / "red" / "0.png", domains.test / "loose.png")
    ended = sohot("features", domains.test, "--out", tmp_path / "a.npz", *QUICK)
    assert (ended.code, "loose.png: it is next to the class folders" in ended.err) == (0, True)
    assert read_features(tmp_path / "a.npz").unlabelled == 0


def test_a_data_set_keeps_its_domains(sohot: Callable[..., Ended], domains: Domains, tmp_path: Path) -> None:
    ended = sohot("features", domains.source.parent, "--dataset", "domains", "--out", tmp_path / "all.npz", *QUICK)
    assert ended.code == 0
    assert "in 3 domains" in ended.out
    assert read_features(tmp_path / "all.npz").domain_names == ("source", "target", "test")


def test_bad_calls_end_in_a_sentence(sohot: Callable[..., Ended], domains: Domains, tmp_path: Path) -> None:
    out = tmp_path / "a.npz"
    calls = {
        "must end in .npz": (domains.source, "--out", tmp_path / "a.csv"),
        "folder does not exist": (domains.source, "--out", tmp_path / "none" / "a.npz"),
        "backbone must be one of": (domains.source, "--out", out, "--backbone", "alex"),
        "does not exist": (tmp_path / "none", "--out", out),
        "must be one of 'office31'": (domains.source, "--out", out, "--dataset", "office"),
        "tap must be one of": (domains.source, "--out", out, *QUICK, "--tap", "top"),
    }
    for sentence, call in calls.items():
        ended = sohot("features", *call)
        assert ended.code == 2
        assert sentence in ended.err
        assert not out.exists()
