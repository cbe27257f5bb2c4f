import errno
import json
import os
import shutil
import warnings

import pytest
import torch

from sohot._files import sealed
from sohot.training import CheckpointError, checkpoint
from sohot.training.checkpoint import latest_checkpoint, load_checkpoint, save_checkpoint
from sohot.training.errors import CorruptCheckpoint, OtherVersion
from sohot.training.run_files import checkpoint_folders

TENSORS = {"model": {"w": torch.arange(6.0).reshape(2, 3), "n": torch.tensor(3)}, "optimizer": {}}


@pytest.fixture
def saved(tmp_path):
    for step in (3, 6, 9):
        save_checkpoint(tmp_path, step, TENSORS, {"first_loss": step / 2}, keep=2)
    return tmp_path


def test_what_is_saved_is_loaded(saved):
    found = latest_checkpoint(saved)
    assert (found.step, found.description["first_loss"]) == (9, 4.5)
    assert found.tensors["model"]["w"].equal(TENSORS["model"]["w"])
    assert found.tensors["model"]["n"].dtype == torch.int64
    assert found.tensors["optimizer"] == {}


def test_the_newest_are_kept_and_nothing_else_is_left(saved):
    assert sorted(path.name for path in saved.iterdir()) == ["step-00000006", "step-00000009"]


def test_tensors_that_share_memory_are_saved(tmp_path):
    shared = torch.randn(4)
    save_checkpoint(tmp_path, 1, {"model": {"a": shared, "b": shared, "c": shared[:2]}}, {})
    found = latest_checkpoint(tmp_path).tensors["model"]
    assert found["a"].equal(shared)
    assert found["b"].equal(shared)
    assert found["c"].equal(shared[:2])


def damage_file(name, change):
    """Return what replaces the bytes of a file by others; None removes it."""

    def damage(folder):
        content = change((folder / name).read_bytes())
        if content is None:
            (folder / name).unlink()
        else:
            (folder / name).write_bytes(content)

    return damage


def edited(**changes):
    return damage_file("checkpoint.json", lambda text: json.dumps({**json.loads(text), **changes}).encode())


def take_from_another_step(folder):
    shutil.rmtree(folder)
    shutil.copytree(folder.with_name("step-00000006"), folder)


cut = damage_file("model.safetensors", lambda content: content[:-5])
DAMAGES = {
    "cut": cut,
    "one bit": damage_file("model.safetensors", lambda content: content[:-3] + bytes([content[-3] ^ 1]) + content[-2:]),
    "no tensors": damage_file("model.safetensors", lambda _: None),
    "empty description": damage_file("checkpoint.json", lambda _: b""),
    "no description": damage_file("checkpoint.json", lambda _: None),
    "odd description": damage_file("checkpoint.json", lambda _: b'{"format": 1, "step": "many"}'),
    "another number": edited(first_loss=4.6),
    "another step": edited(step=8),
    "another format": edited(format=3),
    "files of another step": take_from_another_step,
}


def test_no_flipped_bit_of_a_description_goes_unnoticed(saved):
    folder = saved / "step-00000009"
    file = folder / "checkpoint.json"
    whole, expected = file.read_bytes(), load_checkpoint(folder).description
    for place in range(len(whole)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            found = load_checkpoint(folder).description
        except CorruptCheckpoint:
            continue
        assert {**expected, **found} == {**found, **expected}  # a flipped blank, or one in the checksum's own name


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_checkpoint_gives_way_to_the_one_before(saved, damage):
    damage(saved / "step-00000009")
    with pytest.raises(CorruptCheckpoint, match="step-00000009"):
        load_checkpoint(saved / "step-00000009")
    with pytest.warns(UserWarning, match="step-00000009.*falling back to the previous checkpoint"):
        assert latest_checkpoint(saved).step == 6


def test_nothing_but_damage_ends_in_one_sentence(saved):
    for folder in checkpoint_folders(saved):
        cut(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(CheckpointError, match=r"no checkpoint in .* can be used"):
            latest_checkpoint(saved)


def test_a_damaged_checkpoint_of_the_same_step_is_replaced(saved):
    cut(saved / "step-00000009")
    save_checkpoint(saved, 9, TENSORS, {})
    assert latest_checkpoint(saved).step == 9


def test_another_format_is_refused(saved):
    file = saved / "step-00000009" / "checkpoint.json"
    written = {**json.loads(file.read_text()), "format": 99, "versions": {"sohot": "7.0"}}
    del written["sha256"]
    file.write_text(json.dumps(sealed(written)))
    with pytest.raises(OtherVersion, match=r"written by sohot 7.0 in format 99, this version reads format 1"):
        latest_checkpoint(saved)


@pytest.mark.parametrize("call", ["open", "fsync", "replace"])
def test_a_full_disk_keeps_the_last_good_checkpoint(saved, monkeypatch, call):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = sorted(path.name for path in saved.iterdir())
    with monkeypatch.context() as patch:
        if call == "open":
            patch.setattr("builtins.open", full)
        else:
            patch.setattr(os, call, full)
        with pytest.raises(
            CheckpointError, match=r"step 12 .*No space left on device; the last good one is step-0+9; free some space"
        ):
            save_checkpoint(saved, 12, TENSORS, {})
    assert sorted(path.name for path in saved.iterdir()) == before
    assert latest_checkpoint(saved).step == 9


def test_a_checkpoint_that_is_removed_while_it_is_read_gives_way_to_the_newer_one(saved, monkeypatch):
    real = checkpoint.read_description

    def overtaken(file):
        if file.parent.name == "step-00000009":
            save_checkpoint(saved, 12, TENSORS, {}, keep=1)
        return real(file)

    monkeypatch.setattr(checkpoint, "read_description", overtaken)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert latest_checkpoint(saved).step == 12


def test_checkpoints_are_not_written_through_a_link(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "checkpoints").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match=r"checkpoints is a link, .* remove the link"):
        save_checkpoint(tmp_path / "checkpoints", 1, TENSORS, {})
    assert list((tmp_path / "elsewhere").iterdir()) == []
