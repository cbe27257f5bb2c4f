"""Everything a user can get wrong in `sohot fit` ends in one sentence and the right exit code."""

import errno
import json
import os
import shutil

import pytest
from command_line import newest, weights

from sohot._files import sealed


def fit(sohot, domains, out, *more):
    return sohot("fit", *domains.options(), "--steps", 4, "--shots", 2, "--out", out, *more)


def refused(ended, *words, code=2):
    assert ended.code == code
    assert ended.out == ""
    assert ended.last.startswith("sohot: ")
    for word in words:
        assert word in ended.last


def test_empty_folder(sohot, domains, tmp_path):
    domains.target = tmp_path / "void"
    domains.target.mkdir()
    refused(fit(sohot, domains, tmp_path / "run"), "void", "is empty")


def test_classes_in_one_domain_are_named_and_can_be_left_out(sohot, domains, tmp_path):
    (domains.target / "red").rename(domains.target / "crimson")
    refused(fit(sohot, domains, tmp_path / "run"), "'red'", "'crimson'", "--leave-out")
    ended = fit(sohot, domains, tmp_path / "run", "--leave-out", "--json")
    assert ended.json["data"]["classes"] == ["blue", "green"]
    assert "only the target has: crimson" in ended.err


def test_one_class_is_not_enough(sohot, domains, tmp_path):
    for name in ("red", "green"):
        shutil.rmtree(domains.source / name)
    refused(fit(sohot, domains, tmp_path / "run", "--leave-out"), "only one class ('blue')")


def test_test_images_of_unknown_classes(sohot, domains, tmp_path):
    (domains.test / "red").rename(domains.test / "pink")
    options = ("fit", *domains.options(), "--steps", 2, "--target-test", domains.test, "--out", tmp_path / "run")
    refused(sohot(*options), "'pink'", "--leave-out")
    assert sohot(*options, "--leave-out", "--json").json["accuracy"]["rows"] == 8


def test_images_that_train_do_not_test(sohot, domains, tmp_path):
    options = ("fit", *domains.options(), "--steps", 2, "--target-test", domains.target, "--out", tmp_path / "run")
    assert "15 images byte-identical to training images; none are left to test on" in sohot(*options).err


def test_one_folder_is_not_both_domains(sohot, domains, tmp_path):
    (tmp_path / "link").symlink_to(domains.source)
    for target in (domains.source, tmp_path / "link", domains.source / ".." / "source"):
        ended = sohot("fit", "--source", domains.source, "--target", target, "--out", tmp_path / "run", "--shots", 2)
        assert ended.code == 2
        assert f"--source and --target are both {domains.source}: the source has other images" in ended.last
    assert not (tmp_path / "run").exists()


def test_copies_of_training_images_do_not_test(sohot, domains, tmp_path):
    for kind in domains.target.iterdir():
        for file in sorted(kind.iterdir()):
            (kind / f"copy of {file.name}").write_bytes(file.read_bytes())
    ended = fit(sohot, domains, tmp_path / "run", "--json")
    found = ended.json["data"]["notes"]
    assert any("byte-identical to training images" in note for note in found)
    assert ended.json["data"]["test"]["images"] + ended.json["data"]["target"]["images"] < 30


def test_unreadable_images_are_listed_skipped_and_counted(sohot, domains, tmp_path):
    (domains.source / "red" / "0.png").write_bytes(b"")
    (domains.source / "red" / "1.png").write_bytes(b"not a picture")
    whole = (domains.target / "blue" / "0.png").read_bytes()
    (domains.target / "blue" / "0.png").write_bytes(whole[: len(whole) // 2])
    ended = fit(sohot, domains, tmp_path / "run", "--json")
    assert ended.code == 0
    assert {one["path"].rsplit("/", 2)[-2] for one in ended.json["data"]["left_out"]} == {"red", "blue"}
    assert ended.json["data"]["source"]["per_class"] == [6, 6, 4]
    assert "left out 3:" in ended.err
    assert "the file is empty" in ended.err


def test_a_class_that_cannot_be_read_at_all(sohot, domains, tmp_path):
    for file in (domains.source / "green").iterdir():
        file.write_bytes(b"")
    refused(fit(sohot, domains, tmp_path / "run"), "none of the 6 images of class 'green'")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--backbone", "lite9"), "backbone must be one of"),
        (("--lr", "-1"), "lr must be"),
        (("--steps", "0"), "steps must be an integer of at least 1"),
        (("--epochs", "2"), "--steps and --epochs exclude each other"),
        (("--cache", "tape"), "--cache must be one of"),
        (("--augment", "--cache", "disk"), "--augment"),
        (("--orders", "2,x"), "--orders must be comma-separated integers"),
        (("--streams", "three"), "streams must be one of"),
        (("--weights", "nowhere.safetensors"), "nowhere.safetensors"),
        (("--from-scratch", "--weights", "file"), "exclude each other"),
        (("--config", "nowhere.toml"), "nowhere.toml"),
        (("--device", "tpu"), "--device must be one of 'auto', 'cpu', 'cuda', 'mps', got 'tpu'"),
    ],
)
def test_wrong_options(sohot, domains, tmp_path, options, words):
    refused(fit(sohot, domains, tmp_path / "run", *options), words)
    assert not (tmp_path / "run" / "run.json").exists()


def test_a_folder_in_use_is_not_overwritten(sohot, domains, run_copy, tmp_path):
    before = weights(run_copy)
    refused(fit(sohot, domains, run_copy), "already holds a run", "--resume")
    assert weights(run_copy) == before
    (tmp_path / "diary").mkdir()
    (tmp_path / "diary" / "monday.txt").write_text("rain")
    refused(fit(sohot, domains, tmp_path / "diary"), "holds other files")


def test_a_changed_configuration_is_not_resumed(sohot, domains, tmp_path):
    run = tmp_path / "run"
    fit(sohot, domains, run)
    before = weights(run)
    ended = fit(sohot, domains, run, "--resume", "--lr", "0.5", "--heads", "coupled")
    refused(ended, "settings.lr was 0.003, is 0.5", "config.network.heads was 'shared', is 'coupled'")
    (domains.source / "red" / "0.png").unlink()
    refused(sohot("fit", "--out", run, "--resume"), "config.data.files.source")
    assert weights(run) == before


def test_nothing_to_resume(sohot, tmp_path):
    refused(sohot("fit", "--out", tmp_path / "run", "--resume"), "holds no run to resume")


def test_a_run_of_another_version(sohot, domains, run_copy):
    file = run_copy / "run.json"
    written = {**json.loads(file.read_text()), "format": 99, "versions": {"sohot": "7.0"}}
    del written["sha256"]
    file.write_text(json.dumps(sealed(written)))
    for command in (("fit", "--out", run_copy, "--resume"), ("info", run_copy), ("evaluate", run_copy, domains.test)):
        refused(sohot(*command), "sohot 7.0 in format 99")


def test_a_damaged_checkpoint_gives_way_to_the_one_before(sohot, domains, tmp_path):
    run = tmp_path / "run"
    fit(sohot, domains, run, "--checkpoint-every", 2)
    (newest(run) / "model.safetensors").write_bytes(b"")
    ended = sohot("evaluate", run, domains.test, "--json")
    assert ended.json["step"] == 2
    assert "warning: " in ended.err


def test_a_full_disk(sohot, domains, tmp_path, monkeypatch):
    real = os.fsync
    calls = [0]

    def full(handle):
        calls[0] += 1
        if calls[0] > 4:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(handle)

    monkeypatch.setattr(os, "fsync", full)
    refused(fit(sohot, domains, tmp_path / "run"), "No space left on device", code=1)


def test_a_diverging_loss_stops_with_advice_and_keeps_the_last_good_checkpoint(sohot, domains, tmp_path):
    options = ("--lr", "1e6", "--schedule", "constant", "--checkpoint-every", 1, "--steps", 30)
    ended = fit(sohot, domains, tmp_path / "run", *options)
    refused(ended, "training diverged", "lower lr (now 1e+06)", "checkpoint", code=1)


def test_what_names_show_is_told_before_images_are_decoded(sohot, domains, tmp_path, monkeypatch):
    monkeypatch.setattr("sohot.data.folders.unreadable", lambda *_, **__: pytest.fail("too late"))
    refused(fit(sohot, domains, tmp_path / "run", "--shots", 9), "9 shots", "'blue' (5)")
    (domains.test / "red").rename(domains.test / "rot")
    options = ("fit", *domains.options(), "--target-test", domains.test, "--out", tmp_path / "run")
    refused(sohot(*options), "test classes that were not trained: 'rot'")
    (domains.target / "red").rename(domains.target / "rot")
    refused(fit(sohot, domains, tmp_path / "run"), "classes in one domain only")
