"""Folders that commands write to: one command at a time, no way out through links, and left-overs do no harm."""

import re
from pathlib import Path

import pytest

from sohot._files import lock_folder
from sohot._process import process_tag
from sohot.experiments import Store
from sohot.selection import parse_space
from sohot.selection.study import SharedStudy

LEFT = f".config.toml.{re.sub(r'-[0-9]+-', '-999999999-', process_tag())}.0123456789abcdef.tmp"


def fit(sohot, domains, out, *more):
    return sohot("fit", *domains.options(), "--shots", 2, "--steps", 2, "--quiet", "--out", out, *more)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("resume", [(), ("--resume",)])
def test_a_folder_in_use_is_refused_and_not_touched(sohot, domains, run_copy, tmp_path, resume):
    out = run_copy if resume else tmp_path / "new"
    out.mkdir(exist_ok=True)
    with lock_folder(out):
        before = contents(out)
        ended = fit(sohot, domains, out, "--method", "so", *resume)
        assert contents(out) == before
    assert (ended.code, ended.last) == (
        2,
        f"sohot: {out} is in use by another process: wait for it, or give another folder",
    )


def test_a_run_that_never_begins_leaves_no_folder(sohot, domains, tmp_path):
    domains.source = tmp_path / "missing"
    assert fit(sohot, domains, tmp_path / "run").code == 2
    assert not (tmp_path / "run").exists()


def test_what_a_killed_run_left_neither_blocks_the_folder_nor_stays(sohot, domains, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / LEFT).write_text("half")
    assert fit(sohot, domains, tmp_path / "run").code == 0
    assert not [path.name for path in (tmp_path / "run").rglob(".*") if path.name != ".lock"]


def test_the_file_of_someone_else_still_blocks_the_folder(sohot, domains, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / LEFT).symlink_to(tmp_path)
    ended = fit(sohot, domains, tmp_path / "run")
    assert (ended.code, "holds other files" in ended.last) == (2, True)


def test_no_link_leads_an_experiment_out_of_its_folder(tmp_path):
    victim = tmp_path / "victim"
    victim.touch()
    (tmp_path / "cells").symlink_to(tmp_path)
    with pytest.raises(ValueError, match="cells is a link"):
        Store(tmp_path)
    (tmp_path / "selection").symlink_to(tmp_path)
    with pytest.raises(ValueError, match="selection is a link"):
        SharedStudy(tmp_path / "selection", "search", parse_space({"lr": [0.1, 0.2]}, {"lr": 0.1}), 2, 0)
    assert victim.read_bytes() == b""
