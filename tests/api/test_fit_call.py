"""`sohot.fit`: the command `sohot fit` as a function."""

import inspect
import os
import signal
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from command_line import Domains, Pictures, weights
from PIL import Image

import sohot
from sohot.cli import main
from sohot.runs import RunConfig
from sohot.training import ChangedRun, Interrupted, RichProgress


def arrays(folder: Path) -> "tuple[np.ndarray, list[str]]":
    paths = sorted(folder.glob("*/*.png"))
    return np.stack([np.asarray(Image.open(path)) for path in paths]), [path.parent.name for path in paths]


def test_same_options_give_the_weights_of_the_command_line(run: sohot.Run, domains: Domains, tmp_path: Path) -> None:
    options = ["--shots", "3", "--steps", "3", "--lr", "0.01", "--clip-norm", "1", "--quiet", "--out"]
    with pytest.raises(SystemExit) as ended:
        main(["fit", *domains.options(), *options, str(tmp_path / "run")])
    assert not ended.value.code
    assert weights(run.path) == weights(tmp_path / "run")
    for name in ("predictions.csv", "split.json", "config.toml"):
        assert (run.path / name).read_bytes() == (tmp_path / "run" / name).read_bytes()


def test_images_in_memory_give_the_weights_of_their_files(
    domains: Domains, quick: dict[str, Any], tmp_path: Path
) -> None:
    given = (arrays(domains.source), arrays(domains.target))
    found = sohot.fit(*given, target_test=domains.test, out=tmp_path / "run", **quick)
    files = sohot.fit(domains.source, domains.target, target_test=domains.test, out=tmp_path / "files", **quick)
    assert weights(found.path) == weights(files.path)
    assert found.accuracy == files.accuracy
    assert len(list((found.path / "inputs" / "source").glob("*.png"))) == 18
    with pytest.raises(
        ChangedRun, match=r"target is not what .*inputs holds of a run that was begun: give another out"
    ):
        sohot.fit(None, arrays(domains.test), out=found.path, resume=True, **quick)
    with pytest.raises(ChangedRun, match="already holds a run: continue it with --resume, or give another folder"):
        sohot.fit(*given, target_test=domains.test, out=found.path, **quick)


def test_an_interrupted_run_resumes_to_the_same_weights(
    domains: Domains, quick: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"source": arrays(domains.source), "target": arrays(domains.target), "shots": 3}
    whole, out = sohot.fit(**given, out=tmp_path / "whole", **quick), tmp_path / "run"
    monkeypatch.setattr(RichProgress, "__call__", lambda *_: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(Interrupted) as stopped:
        sohot.fit(**given, out=out, **{**quick, "progress": True})
    assert str(stopped.value).endswith(f"resume to continue: sohot.fit(out={str(out)!r}, resume=True)")
    monkeypatch.undo()
    with pytest.warns(UserWarning, match="the run has done only 1 of 3 steps"):
        sohot.load(out, progress=False)
    stored = {file: file.stat().st_mtime_ns for file in (out / "inputs").rglob("*")}
    resumed = sohot.fit(**given, out=out, resume=True, **quick)
    assert weights(resumed.path) == weights(whole.path)
    assert {file: file.stat().st_mtime_ns for file in (out / "inputs").rglob("*")} == stored
    assert sohot.fit(out=out, resume=True, progress=False).accuracy == whole.accuracy


def test_one_set_is_target_and_pool_and_sources_are_pooled(
    domains: Domains, quick: dict[str, Any], tmp_path: Path
) -> None:
    images, labels = arrays(domains.target)
    partly = (images, [label if place % 5 < 2 else None for place, label in enumerate(labels)])
    out = tmp_path / "run"
    with pytest.raises(ValueError, match=r"^target: 9 of 15 images have no label"):
        sohot.fit(domains.source, partly, out=out, **quick)
    assert not out.exists()
    with pytest.raises(ValueError, match="source and target are the same object"):
        sohot.fit(partly, partly, out=out, **quick)
    with pytest.raises(TypeError, match="unlabeled is unlabelled"):
        sohot.fit(domains.source, partly, unlabelled=partly, unlabeled=partly, out=out, **quick)
    assert not out.exists()
    sources = [domains.source, Pictures(*arrays(domains.source))]
    found = sohot.fit(sources, partly, unlabeled=partly, target_test=domains.test, out=out, **quick)
    data = found.info()["data"]
    assert [data[part]["images"] for part in ("source", "target", "pool", "test")] == [36, 6, 9, 12]
    assert {path.name for path in (out / "inputs").iterdir()} == {"source-2", "target"}


def test_without_a_folder_runs_are_numbered(
    domains: Domains, quick: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"^--source nowhere: there is no such folder$"):
        sohot.fit("nowhere", domains.target, **quick)
    assert not list(tmp_path.iterdir())
    (tmp_path / "runs" / "run-1").mkdir(parents=True)
    threads = torch.get_num_threads()
    found = sohot.fit(domains.source, domains.target, **{**quick, "steps": 1}, threads=2)
    assert found.path == Path("runs/run-2")
    assert torch.get_num_threads() == threads
    config = tmp_path / "fit.toml"
    config.write_text('steps = 1\nmethod = "s+t"\nout = "mine"\n')
    quick = {name: value for name, value in quick.items() if name != "steps"}
    assert sohot.fit(domains.source, domains.target, config=config, **quick).info()["method"] == "s+t"
    assert (tmp_path / "mine" / "report.json").is_file()


def test_what_is_beside_a_run_stays(domains: Domains, quick: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "inputs").mkdir()
    (tmp_path / "inputs" / "mine.txt").touch()
    (tmp_path / "other.txt").touch()
    with pytest.raises(ValueError, match=r"holds other files \(other\.txt, …\) and no run"):
        sohot.fit(arrays(domains.source), arrays(domains.target), out=tmp_path, **quick)
    (tmp_path / "other.txt").unlink()
    with pytest.raises(ValueError, match="the domains share no class"):
        sohot.fit(arrays(domains.source), (arrays(domains.target)[0], ["a", "b", "c"] * 5), out=tmp_path, **quick)
    assert [file.name for file in tmp_path.rglob("*")] == ["inputs", "mine.txt"]


def test_parameters_are_options_of_the_command() -> None:
    declared = {one.name: one.default for one in fields(RunConfig)}
    parameters = inspect.signature(sohot.fit).parameters
    assert {*parameters} - {*declared} == {"config", "trust", "progress", "options"}
    assert all(parameters[name].default in (declared[name], None) for name in {*declared} & {*parameters})


@pytest.mark.parametrize(
    ("options", "kind", "sentence"),
    [
        ({"shotz": 3}, TypeError, "unknown option 'shotz'; did you mean 'shots'?"),
        ({"quiet": True}, TypeError, "quiet is an option of the command line: use progress=False"),
        ({"shots": 0}, ValueError, "--shots must be an integer of at least 1, got 0"),
        ({"method": "meens"}, ValueError, "did you mean 'means'?"),
        ({"source-shots": "many"}, ValueError, "--source-shots must be an integer, got 'many'"),
        ({"sigma1": 0.5}, ValueError, "the default method, means, ignores --sigma1: name one that does not"),
        ({"resume": True}, ValueError, "resume=True continues a run: give its folder as out"),
        ({"source": 3}, TypeError, "source must be a folder, a list (.csv, "),
        ({"source": []}, ValueError, "source holds no images"),
        ({"source": ["1.png"]}, FileNotFoundError, "source: 1.png: there is no such file"),
        ({"source": ["nowhere"]}, FileNotFoundError, "--source nowhere: there is no such folder"),
    ],
)
def test_wrong_calls_end_in_one_sentence(
    options: dict[str, Any],
    kind: type[Exception],
    sentence: str,
    domains: Domains,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    given = {"source": domains.source, "target": domains.target, "progress": False}
    with pytest.raises(kind) as error:
        sohot.fit(**{**given, **options})
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())
