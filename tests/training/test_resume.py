import errno
import json
import os
import re
import signal
import threading

import pytest
import standin
import torch

from sohot._files import sealed
from sohot._process import process_tag
from sohot.methods import FitSettings
from sohot.training import ChangedRun, CheckpointError, Interrupted, TensorInputs, fit, load_run
from sohot.training.errors import OtherVersion
from sohot.training.logs import read_csv_log

KINDS = [
    {"method": "so+zeta"},
    {"method": "so+to", "optimizer": "adamw", "schedule": "cosine", "clip_norm": 1.0},
    {"method": "s+t", "precision": "bf16-mixed"},
    {"method": "m", "feature_scale": "unit"},
    {"method": "means"},
    {"method": "ccsa"},
    {"method": "l2-sp"},
    {"method": "lp-ft"},
]

NEEDS_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")


class Stop(Exception):
    pass


def stop_at(step):
    def on_step(record):
        if record["step"] == step:
            raise Stop

    return on_step


@pytest.mark.parametrize("options", KINDS)
def test_a_resumed_run_ends_in_the_same_bits(train, same_weights, tmp_path, options):
    options = {**options, "steps": 14, "checkpoint_every": 4, "batches": standin.RandomRows(24, 9)}
    whole = train(run_dir=tmp_path / "whole", **options)
    for step in (3, 7, 13):
        with pytest.raises(Stop):
            train(run_dir=tmp_path / "cut", resume=True, on_step=stop_at(step), **options)
    rest = train(run_dir=tmp_path / "cut", resume=True, **options)
    assert rest.resumed_from == 12
    assert same_weights(whole.model, rest.model)
    assert same_weights(whole.objective, rest.objective)


@pytest.mark.filterwarnings("ignore")  # kernels of GPUs without a deterministic form say so
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=NEEDS_GPU)])  # a GPU's are read ahead
def test_inputs_may_draw_from_the_global_generators(tmp_path, device):
    class Noisy(TensorInputs):
        def batch(self, rows):
            return super().batch(rows) + 0.1 * torch.randn(len(rows), 4)

    def run(name, on_step=None):
        source, source_labels, target, target_labels = standin.problem()
        settings = FitSettings(steps=30, checkpoint_every=7, device=device, loggers="none")
        data = Noisy(source), source_labels, Noisy(target), target_labels
        return fit(standin.SmallStreams(), *data, settings, run_dir=tmp_path / name, resume=True, on_step=on_step)

    whole = run("whole")
    with pytest.raises(Stop):
        run("cut", stop_at(16))
    resumed, tolerance = run("cut").model.state_dict(), 0 if device == "cpu" else 1e-6
    for name, x in whole.model.state_dict().items():
        torch.testing.assert_close(resumed[name], x, rtol=0, atol=tolerance)


def test_a_finished_run_is_loaded_and_not_trained_again(train, same_weights, tmp_path):
    done = train(run_dir=tmp_path)
    again = train(standin.SmallStreams(seed=5), run_dir=tmp_path, resume=True)
    assert (again.resumed_from, again.history) == (12, [])
    assert same_weights(done.model, again.model)


def test_the_log_has_every_step_once(train, tmp_path):
    with pytest.raises(Stop):
        train(run_dir=tmp_path, checkpoint_every=5, on_step=stop_at(8))
    with open(tmp_path / "log.csv", "a") as stream:
        stream.write("9,0.1,0.")  # cut off by a kill
    train(run_dir=tmp_path, checkpoint_every=5, resume=True)
    rows = read_csv_log(tmp_path / "log.csv")
    assert [row["step"] for row in rows] == list(range(1, 13))
    assert {"loss", "means", "order2", "lr"} <= set(rows[0])


def test_a_run_is_not_overwritten(train, tmp_path):
    train(run_dir=tmp_path)
    with pytest.raises(ChangedRun, match="already contains a run: resume it, or choose another folder"):
        train(run_dir=tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lr": 0.5}, r"changed: settings\.lr was 0\.02, is 0\.5$"),
        ({"steps": 13, "method": "to"}, r"settings\.method was 'so', is 'to'; settings\.steps was 12, is 13"),
        ({"config": {"backbone": "vgg16"}}, r"config\.backbone was 'lite0', is 'vgg16'"),
    ],
)
def test_changed_settings_are_named(train, tmp_path, change, message):
    train(run_dir=tmp_path, config={"backbone": "lite0"})
    with pytest.raises(ChangedRun, match=message):
        train(run_dir=tmp_path, resume=True, **{"config": {"backbone": "lite0"}, **change})


def test_changed_data_batches_and_models_are_named(train, tmp_path):
    train(run_dir=tmp_path)
    source, source_labels, target, target_labels = standin.problem()
    with pytest.raises(ChangedRun, match=r"changed: data\.target\.inputs was '\w+', is '\w+'$"):
        train(data=(source, source_labels, target + 1, target_labels), run_dir=tmp_path, resume=True)
    with pytest.raises(ChangedRun, match=r"changed: data\.target\.labels was"):
        train(data=(source, source_labels, target, target_labels.flip(0)), run_dir=tmp_path, resume=True)
    with pytest.raises(ChangedRun, match=r"changed: data\.batches was"):
        train(batches=standin.RandomRows(24, 9), run_dir=tmp_path, resume=True)
    with pytest.raises(ChangedRun, match=r"changed: model\.layout was .*model\.trained was 6, is 8"):
        train(standin.SmallStreams(heads="coupled"), run_dir=tmp_path, resume=True)


def test_a_folder_of_another_version_is_refused(train, tmp_path):
    train(run_dir=tmp_path)
    file = tmp_path / "run.json"
    written = {**json.loads(file.read_text()), "format": 2, "versions": {"sohot": "3.1"}}
    del written["sha256"]
    file.write_text(json.dumps(sealed(written)))
    with pytest.raises(OtherVersion, match=r"written by sohot 3.1 in format 2"):
        train(run_dir=tmp_path, resume=True)


def test_a_damaged_run_description_is_named(train, tmp_path):
    train(run_dir=tmp_path)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"run\.json cannot be read"):
        train(run_dir=tmp_path, resume=True)


def test_a_corrupt_checkpoint_falls_back_and_ends_in_the_same_bits(train, same_weights, tmp_path):
    whole = train(run_dir=tmp_path, checkpoint_every=5)
    newest = tmp_path / "checkpoints" / "step-00000012" / "optimizer.safetensors"
    newest.write_bytes(newest.read_bytes()[:20])
    with pytest.warns(UserWarning, match="optimizer.safetensors is damaged"):
        again = train(run_dir=tmp_path, checkpoint_every=5, resume=True)
    assert again.resumed_from == 10
    assert same_weights(whole.model, again.model)


def test_a_file_in_place_of_the_folder_is_named(train, tmp_path):
    (tmp_path / "run").write_text("")
    with pytest.raises(ValueError, match="is a file, not a folder"):
        train(run_dir=tmp_path / "run")


def test_a_full_disk_ends_in_a_sentence_and_the_run_can_go_on(train, same_weights, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fill(record):
        if record["step"] == 8:
            monkeypatch.setattr(os, "fsync", full)

    with pytest.raises(CheckpointError, match=r"step 10 .*No space left on device; the last good one is step-0+5"):
        train(run_dir=tmp_path, checkpoint_every=5, on_step=fill)
    monkeypatch.undo()
    assert same_weights(train(run_dir=tmp_path, resume=True, checkpoint_every=5).model, train().model)


@pytest.mark.parametrize(("number", "name"), [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")])
def test_a_signal_finishes_the_step_saves_and_stops(train, same_weights, tmp_path, number, name):
    def interrupt(record):
        if record["step"] == 7:
            os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    with pytest.raises(Interrupted, match=f"stopped by {name} after step 7 of 12; saved in .*, resume to continue"):
        train(run_dir=tmp_path, on_step=interrupt)
    assert signal.getsignal(number) is before
    rest = train(run_dir=tmp_path, resume=True)
    assert rest.resumed_from == 7
    assert same_weights(rest.model, train().model)


def test_a_second_ctrl_c_stops_at_once(train):
    def interrupt(_):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(on_step=interrupt)


def test_a_signal_without_a_folder_says_that_nothing_is_kept(train):
    with pytest.raises(Interrupted, match="nothing was kept, because there is no run_dir"):
        train(on_step=lambda _: os.kill(os.getpid(), signal.SIGTERM))


def test_training_works_outside_the_main_thread(train):
    results = []
    thread = threading.Thread(target=lambda: results.append(train(steps=2)))
    thread.start()
    thread.join()
    assert len(results[0].history) == 2


def test_what_a_killed_process_left_is_cleared(train, tmp_path):
    train(run_dir=tmp_path)
    gone = re.sub(r"-\d+-", "-999999999-", process_tag())
    (tmp_path / "checkpoints" / f".step-00000099.{gone}.0123456789abcdef.tmp").mkdir()
    (tmp_path / f".run.json.{gone}.0123456789abcdef.tmp").write_text("{")
    train(run_dir=tmp_path, resume=True)
    assert not [path for path in tmp_path.rglob(".*") if path.name != ".lock"]


@pytest.mark.skipif(os.name != "posix", reason="locks are those of POSIX systems")
def test_two_runs_do_not_share_a_folder(train, tmp_path):
    def start_another(_):
        train(run_dir=tmp_path, resume=True)

    with pytest.raises(ChangedRun, match="in use by another training process"):
        train(run_dir=tmp_path, on_step=start_another)
    assert train(run_dir=tmp_path, resume=True).steps == 12


def test_a_trained_model_is_loaded_from_its_run(train, same_weights, tmp_path):
    trained = train(run_dir=tmp_path, config={"backbone": "small"}).model
    found, model = load_run(tmp_path), standin.SmallStreams(seed=9)
    model.load_state_dict(found.tensors["model"])
    assert same_weights(model, trained)
    assert FitSettings.from_json(found.description["settings"]).steps == found.step == 12
    assert found.description["config"] == {"backbone": "small"}
    assert set(found.description["versions"]) == {"sohot", "torch", "python"}


def test_a_folder_without_a_run_is_named(train, tmp_path):
    with pytest.raises(FileNotFoundError, match="is not a run folder"):
        load_run(tmp_path)
    with pytest.raises(Stop):
        train(run_dir=tmp_path, on_step=stop_at(1))
    with pytest.raises(CheckpointError, match="has not written a checkpoint yet"):
        load_run(tmp_path)
