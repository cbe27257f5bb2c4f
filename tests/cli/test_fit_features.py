"""`sohot fit-features`: from files of features to a classifier in a folder."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import Ended
from two_domains import two_domains

from sohot import SoHoTClassifier
from sohot.runs.feature_set import FeatureSet, read_features, write_features

DATA = two_domains(shots=8)
NAMES = ("bike", "mug", "=pen")


def as_features(X: np.ndarray, y: np.ndarray, domain: str) -> FeatureSet:
    files = tuple(f"{NAMES[label]}/{row}.jpg" for row, label in enumerate(y))
    contents = tuple(f"{domain} {row}" for row in range(len(y)))
    zeros = np.zeros(len(y), dtype=np.int64)
    return FeatureSet(X.astype(np.float32), y, NAMES, files, contents, zeros, (domain,), {"backbone": "made up"})


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    source = DATA.sample_domain > 0
    tables = {
        "source": (DATA.X[source], DATA.y[source]),
        "target": (DATA.X[~source], DATA.y[~source]),
        "test": (DATA.test, DATA.test_labels),
    }
    for name, (X, y) in tables.items():
        write_features(tmp_path / f"{name}.npz", as_features(X, y, name))
    return {name: tmp_path / f"{name}.npz" for name in tables}


def call(files: dict[str, Path]) -> tuple[object, ...]:
    return ("fit-features", "--source", files["source"], "--target", files["target"], "--device", "cpu")


def test_shots_train_and_the_rest_tests(sohot: Callable[..., Ended], files: dict[str, Path], tmp_path: Path) -> None:
    ended = sohot(*call(files), "--shots", 3, "--steps", 40, "--out", tmp_path / "out")
    assert ended.code == 0
    assert "mean of classes (macro)" in ended.out
    report = json.loads((tmp_path / "out" / "report.json").read_bytes())
    assert report["accuracy"]["rows"] == 15
    assert report["data"]["target"] == {"rows": 9}
    lines = (tmp_path / "out" / "predictions.csv").read_text().splitlines()
    assert len(lines) == 16
    assert lines[0] == "path,label,probability"


def test_the_model_that_is_kept_is_the_one_that_was_tested(
    sohot: Callable[..., Ended], files: dict[str, Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    ended = sohot(*call(files), "--test", files["test"], "--method", "so+zeta", "--steps", 40, "--out", out, "--json")
    assert ended.json == json.loads((out / "report.json").read_bytes())
    model = SoHoTClassifier.load(out / "model.safetensors")
    names = np.asarray(NAMES)[DATA.test_labels]
    assert ended.json["accuracy"]["micro"] == model.score(DATA.test.astype(np.float32), names)
    assert ended.json["accuracy"]["rows"] == 90
    assert set(ended.json["class_weights"]) == {"means", "order2"}
    per_class = ended.json["accuracy"]["per_class"]
    assert per_class["mug"] == np.mean(model.predict(DATA.test[DATA.test_labels == 1]) == "mug")


def test_unlabelled_rows_train_and_get_labels(
    sohot: Callable[..., Ended], files: dict[str, Path], tmp_path: Path
) -> None:
    np.savez(tmp_path / "other.npz", features=DATA.test[:40])  # from elsewhere: no labels, no network
    out = tmp_path / "out"
    pool = ("--unlabelled", files["test"], "--unlabelled", tmp_path / "other.npz")
    ended = sohot(*call(files), "--shots", 3, *pool, "--out", out)
    assert ended.code == 0
    assert "unlabelled: 130 rows" in ended.err
    assert "the unlabelled rows count: of 9 held-out target rows" in ended.err
    report = json.loads((out / "report.json").read_bytes())
    assert report["protocol"] == "inductive"
    assert report["data"]["pool"] == {"rows": 130}
    assert report["pool"]["reason"] in ended.err
    assert report["command"].count("--unlabelled") == 2
    lines = (out / "pool.csv").read_text().splitlines()
    assert lines[0] == "path,label,probability"
    assert len(lines) == 131
    assert "transductive" not in ended.out + ended.err
    assert sohot(*call(files), "--shots", 3, "--out", out).code == 0  # the same folder again, without a pool
    assert not (out / "pool.csv").exists()


def test_the_rest_of_the_target_is_pool_and_test(
    sohot: Callable[..., Ended], files: dict[str, Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    ended = sohot(*call(files), "--shots", 3, "--unlabelled", "rest", "--method", "auto", "--out", out)
    assert ended.code == 0
    assert "note: 15 of 15 test rows are among the unlabelled rows: the accuracy is transductive" in ended.err
    assert "Transductive accuracy on the target" in ended.out
    assert ", transductive accuracy " in ended.out
    report = json.loads((out / "report.json").read_bytes())
    assert report["protocol"] == "transductive"
    assert report["command"].endswith(f"--unlabelled rest --shots 3 --method auto --out {out}-again")
    assert "unlabelled rows" in report["chosen"]["reason"]


def test_target_rows_without_a_label_are_unlabelled_rows(
    sohot: Callable[..., Ended], files: dict[str, Path], tmp_path: Path
) -> None:
    target = read_features(files["target"])
    hidden = target.labels.copy()
    hidden[::2] = -1
    write_features(files["target"], replace(target, labels=hidden))
    ended = sohot(*call(files), "--test", files["test"], "--out", tmp_path / "out", "--json")
    assert ended.json["data"]["target"] == {"rows": 12}
    assert ended.json["data"]["pool"] == {"rows": 12}
    assert ended.json["protocol"] == "inductive"


def test_bad_pools_end_in_a_sentence(sohot: Callable[..., Ended], files: dict[str, Path], tmp_path: Path) -> None:
    target = read_features(files["target"])
    np.savez(tmp_path / "nan.npz", features=np.full((2, 6), np.nan))
    np.savez(tmp_path / "wide.npz", features=np.zeros((2, 7)))
    write_features(
        tmp_path / "nan2.npz",
        replace(as_features(DATA.test, DATA.test_labels, "x"), features=np.full((90, 6), np.nan, dtype=np.float32)),
    )
    write_features(tmp_path / "none.npz", replace(target, labels=np.full(len(target), -1)))
    bare = ("fit-features", "--source", files["source"], "--out", tmp_path / "out")
    bad = {
        "--unlabelled rest: --shots leaves no target row over": (*call(files), "--unlabelled", "rest"),
        "finite numbers": (*call(files), "--unlabelled", tmp_path / "nan.npz"),
        "--unlabelled: features must be finite numbers": (*call(files), "--unlabelled", tmp_path / "nan2.npz"),
        "rows must have 6 features, as --target, got 7": (*call(files), "--unlabelled", tmp_path / "wide.npz"),
        "there is no such feature file": (*call(files), "--unlabelled", tmp_path / "missing.npz"),
        "all 24 unlabelled rows are of images byte-identical": (*call(files), "--unlabelled", files["target"]),
        "--unlabelled rest stands alone": (*call(files), "--unlabelled", "rest", "--unlabelled", files["test"]),
        "--target: its rows have no labels": (*bare, "--target", tmp_path / "none.npz"),
        "pool_loss must be one of": (*call(files), "--pool-loss", "all", "--unlabelled", files["test"]),
    }
    for sentence, words in bad.items():
        ended = sohot(*words, *(() if "--out" in words else ("--out", tmp_path / "out")))
        assert ended.code == 2, sentence
        assert sentence in ended.err
        assert "Traceback" not in ended.err


def test_auto_chooses_by_the_target_rows_and_says_why(
    sohot: Callable[..., Ended], files: dict[str, Path], tmp_path: Path
) -> None:
    ended = sohot(*call(files), "--shots", 2, "--method", "auto", "--steps", 5, "--out", tmp_path / "out", "--json")
    assert ended.code == 0
    assert "held-out target rows" in ended.err
    assert "choosing a method: 18 done" in ended.err.splitlines()
    chosen = ended.json["chosen"]
    assert chosen["trials"] == 9
    assert chosen["settings"]["method"] == "s+t"
    assert chosen["reason"].startswith("the average of 9 candidates")
    assert sum(one["weight"] for one in chosen["candidates"]) == pytest.approx(1)
    assert all(one["log_likelihood"] < 0 for one in chosen["candidates"])


def test_domains_of_one_file(sohot: Callable[..., Ended], tmp_path: Path) -> None:
    whole = as_features(DATA.X, DATA.y, "photos")
    domains = (DATA.sample_domain < 0).astype(np.int64)
    write_features(
        tmp_path / "all.npz", FeatureSet(**{**vars(whole), "domains": domains, "domain_names": ("photos", "art")})
    )
    named = ("--source-domain", "photos", "--target-domain", "art", "--shots", 3, "--steps", 5)
    one = {"source": tmp_path / "all.npz", "target": tmp_path / "all.npz"}
    ended = sohot(*call(one), *named, "--out", tmp_path / "out", "--json")
    assert ended.json["data"]["source"] == {"rows": 45}
    assert ended.json["accuracy"]["rows"] == 15
    ended = sohot(*call(one), "--source-domain", "clay", "--out", tmp_path / "other")
    assert (ended.code, "there is no domain 'clay'" in ended.err) == (2, True)


def test_bad_calls_end_in_a_sentence(sohot: Callable[..., Ended], files: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "thesis.tex").touch()
    out = ("--out", tmp_path / "out")
    calls = {
        "there is no such feature file": ({**files, "source": tmp_path / "none.npz"}, out),
        "9 shots per class": (files, ("--shots", 9, *out)),
        "holds other files (thesis.tex": (files, ("--out", tmp_path / "taken")),
        "is a file, not a folder": (files, ("--out", files["source"])),
        "method must be one of": (files, ("--method", "svm", *out)),
        "--sigma1 must be": (files, ("--sigma1", "much", *out)),
        "sigma1 must hold one number for each": (files, ("--sigma1", "1,2", *out)),
        "head_first must be between 0 and 1": (files, ("--head-first", 2, *out)),
        "loss_weight must be a finite number": (files, ("--method", "ccsa", "--loss-weight", -1, *out)),
        "needs a method that aligns": (files, ("--method", "ccsa", "--orders", "2,3", *out)),
        "streams must be one of": (files, ("--streams", "both", *out)),
        "device must be": (files, ("--device", "toaster", *out)),
    }
    for sentence, (paths, rest) in calls.items():
        ended = sohot(*call(paths), *rest)  # the last of two devices counts
        assert ended.code == 2, sentence
        assert sentence in ended.err
        assert not (tmp_path / "out").exists()
