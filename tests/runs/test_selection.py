"""`--method auto`: what it may look at, that it goes on where it was killed, and that what it chose repeats."""

import json
import shutil
from pathlib import Path

import pytest
from command_line import Domains, count_trunk_images, make_domains, weights, write_images

import sohot.runs.selection as room
from sohot.runs import RunConfig, Watcher, fit_run, read_config
from sohot.runs.run_data import gather_training
from sohot.runs.selection import for_both, make_folds
from sohot.training import ChangedRun

FEW = {"s+t": {"method": "s+t"}, "quick": {"method": "s+t", "lr": 0.05}, "so": {"method": "so"}}
LIST = "sohot.runs.auto.AUTO_CANDIDATES"


@pytest.fixture(autouse=True)
def _short_list(monkeypatch):
    monkeypatch.setattr(LIST, FEW)


@pytest.fixture
def domains(tmp_path: Path) -> Domains:
    return make_domains(tmp_path)


def config(domains: Domains, out: Path, **more) -> RunConfig:
    values = {
        "source": domains.source,
        "target": domains.target,
        "shots": 2,
        "backbone": "small-cnn",
        "image_size": 16,
        "method": "auto",
        "steps": 3,
        "device": "cpu",
        "loggers": "none",
        "out": out,
    }
    return RunConfig(**{**values, **more})


def scores(out: Path) -> list[dict]:
    return json.loads((out / "selection.json").read_text())["scores"]


class Killed(BaseException):
    """As sudden as a kill."""


def kill_after(monkeypatch, trainings: int, error: type[BaseException] = Killed):
    """Let the training after so many end in the middle of nowhere."""
    done = []
    train = room.train_fold

    def counted(*arguments):
        if len(done) == trainings:
            raise error
        done.append(arguments)
        return train(*arguments)

    monkeypatch.setattr(room, "train_fold", counted)
    return done


def test_the_stored_configuration_repeats_the_run(domains, tmp_path):
    report = fit_run(config(domains, tmp_path / "one", lr=0.01))
    stored = read_config(tmp_path / "one" / "config.toml")
    assert stored["method"] == report["method"] != "auto"
    assert stored["lr"] == 0.01  # explicit options win over the candidates' own
    again = fit_run(RunConfig.from_values({**stored, "out": tmp_path / "two"}))
    assert weights(tmp_path / "one") == weights(tmp_path / "two")
    assert again["selection"] is None
    assert report["accuracy"].pop("calibration") != again["accuracy"].pop("calibration")  # nothing is held out again
    assert again["accuracy"] == report["accuracy"]
    assert report["command"].count("--method auto") == 0


def test_what_was_chosen_is_trained_with_its_own_settings(domains, tmp_path, monkeypatch):
    monkeypatch.setattr(LIST, {"quick": FEW["quick"]})
    report = fit_run(config(domains, tmp_path / "run"))
    assert report["settings"]["lr"] == read_config(tmp_path / "run" / "config.toml")["lr"] == 0.05


def test_the_same_seed_chooses_alike_and_another_deals_otherwise(domains, tmp_path):
    found = [fit_run(config(domains, tmp_path / f"{place}", seed=seed)) for place, seed in enumerate((0, 0, 1))]
    assert found[0]["selection"] == found[1]["selection"]
    assert weights(tmp_path / "0") == weights(tmp_path / "1") != weights(tmp_path / "2")


def test_nothing_of_the_test_folder_is_read_before_the_choice(domains, tmp_path):
    hidden = domains.test.rename(tmp_path / "hidden")
    domains.test.mkdir()
    (domains.test / "not an image").write_bytes(b"")

    class Late(Watcher):
        def chosen(self, choice):  # noqa: ARG002
            domains.test.joinpath("not an image").unlink()
            domains.test.rmdir()
            hidden.rename(domains.test)

    report = fit_run(config(domains, tmp_path / "run", shots=None, target_test=domains.test), Late())
    assert report["data"]["test"]["images"] == 12
    assert report["selection"]["held_out_images"] == 15


def test_the_images_that_shots_leave_over_have_no_influence(domains, tmp_path):
    fit_run(config(domains, tmp_path / "one"))
    trained = json.loads((tmp_path / "one" / "selection.json").read_text())
    data = gather_training(for_both(config(domains, tmp_path)))
    for row in range(len(data.test)):  # what tests becomes something else altogether
        shutil.copy(data.target.files[row % len(data.target)], data.test.files[row])
    fit_run(config(domains, tmp_path / "two"))
    assert json.loads((tmp_path / "two" / "selection.json").read_text()) == trained


@pytest.mark.parametrize("trainings", [0, 3])
def test_a_killed_selection_goes_on_to_the_same_choice_and_weights(domains, tmp_path, monkeypatch, trainings):
    whole = fit_run(config(domains, tmp_path / "whole"))
    cut = tmp_path / "cut"
    with monkeypatch.context() as patch:
        kill_after(patch, trainings)
        with pytest.raises(Killed):
            fit_run(config(domains, cut))
    assert len(scores(cut)) == trainings
    done = kill_after(monkeypatch, 99)
    again = fit_run(config(domains, cut, resume=bool(trainings)))
    assert len(done) == 6 - trainings
    assert again["selection"] == whole["selection"]
    assert weights(cut) == weights(tmp_path / "whole")


def test_a_changed_configuration_does_not_use_what_is_kept(domains, tmp_path, monkeypatch):
    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        kill_after(patch, 3)
        with pytest.raises(Killed):
            fit_run(config(domains, run))
    with pytest.raises(ChangedRun, match=r"another selection.*candidates.*steps was 3, is 2"):
        fit_run(config(domains, run, steps=2, resume=True))
    done = kill_after(monkeypatch, 99)
    fit_run(config(domains, run, steps=2))
    assert len(done) == 6


def test_changed_images_do_not_use_what_is_kept(domains, tmp_path, monkeypatch):
    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        kill_after(patch, 3)
        with pytest.raises(Killed):
            fit_run(config(domains, run, shots=None))
    (domains.target / "red" / "4.png").unlink()
    with pytest.raises(ChangedRun, match=r"selection\.data\.target"):
        fit_run(config(domains, run, shots=None, resume=True))


def test_every_image_passes_the_frozen_trunk_once(domains, tmp_path, monkeypatch):
    passed = count_trunk_images(monkeypatch)
    fit_run(config(domains, tmp_path / "run", trains="paper"))
    assert sum(passed) == 18 + 6 + 9  # source, target, test


def test_epochs_and_a_class_of_one_image(domains, tmp_path):
    for number in range(1, 5):
        (domains.target / "red" / f"{number}.png").unlink()
    for name in ("blue", "green"):
        for number in range(2, 5):
            (domains.target / name / f"{number}.png").unlink()
    report = fit_run(config(domains, tmp_path / "run", shots=None, steps=None, epochs=2))
    assert report["selection"]["held_out_images"] == 4


def test_many_images_make_no_more_than_five_folds(domains, tmp_path):
    write_images(tmp_path / "many", 7, 40, 5)
    asked = config(domains, tmp_path / "run", shots=None, target=tmp_path / "many")
    folds = make_folds(asked, gather_training(for_both(asked)))
    assert len(folds) == 5
    assert sorted(row for fold in folds for row in fold.held) == list(range(21))
    assert all(not set(fold.train) & set(fold.held) for fold in folds)


def test_a_candidate_that_diverges_is_passed_over(domains, tmp_path, monkeypatch):
    monkeypatch.setattr(LIST, {"wild": {"method": "s+t", "lr": 1e9}, "s+t": FEW["s+t"]})
    selection = fit_run(config(domains, tmp_path / "run"))["selection"]
    assert selection["chosen"] == "s+t"
    assert "diverged" in selection["candidates"][0]["failure"]
    assert len(selection["candidates"][0]["right"]) == 1  # its other folds were not tried


@pytest.mark.parametrize("damage", ["{", "[]", '{"format": 1}', '{"format": 1, "scores": []}'])
def test_a_damaged_file_is_named(domains, tmp_path, damage):
    run = tmp_path / "run"
    run.mkdir()
    (run / "selection.json").write_text(damage)
    with pytest.raises(ValueError, match=r"selection\.json is damaged or from another version: remove it to choose"):
        fit_run(config(domains, run))


def test_a_changed_digit_is_noticed(domains, tmp_path, monkeypatch):
    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        kill_after(patch, 1)
        with pytest.raises(Killed):
            fit_run(config(domains, run))
    content = json.loads((run / "selection.json").read_text())
    content["scores"][0]["right"] += 1
    (run / "selection.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"selection\.json is damaged"):
        fit_run(config(domains, run, resume=True))
