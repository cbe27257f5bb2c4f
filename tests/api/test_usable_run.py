"""A run in use: labels, accuracy, page, export; each as the command line gives it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Domains

import sohot
from sohot.cli import main
from sohot.runs import loaded_run, package

Listed = tuple[list[Path], list[str]]
Command = Callable[..., dict[str, Any]]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    def call(*words: object) -> dict[str, Any]:
        with pytest.raises(SystemExit):
            main([*map(str, words), "--json"])
        return json.loads(capsys.readouterr().out)

    return call


def test_labels_are_those_of_the_command_line(
    run: sohot.Run, domains: Domains, test_paths: Listed, command: Command
) -> None:
    found = run.predict(domains.test, top=2)
    expected = command("predict", run.path, domains.test, "--top", 2)["predictions"]
    assert [(str(row.image), row.label, row.probability) for row in found] == [
        (row["path"], row["label"], row["probability"]) for row in expected
    ]
    assert [[label for label, _ in row.top] for row in found] == [
        [one["label"] for one in row["top"]] for row in expected
    ]
    again = run.predict([*test_paths[0][::-1], test_paths[0][-1]])
    assert [row.image for row in again] == [*test_paths[0][::-1], test_paths[0][-1]]
    assert again[0] == again[-1]


def test_an_unreadable_image_keeps_its_row(run: sohot.Run, test_paths: Listed, tmp_path: Path) -> None:
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"no image")
    found = run.predict([test_paths[0][0], broken, test_paths[0][1]])
    assert found.labels[1] is None
    assert None not in (found.labels[0], found.labels[2])
    assert list(found.unreadable) == [broken]
    with pytest.raises(ValueError, match=r"^none of the 1 files can be read$"):
        run.predict(broken)


def test_unsure_answers_are_refused(run: sohot.Run, test_paths: Listed) -> None:
    found = run.predict(test_paths[0], unknown_below=1.0)
    assert set(found.labels) == {"unknown"}
    assert found[0].top[0][0] in run.classes


@pytest.mark.parametrize(
    ("images", "options", "sentence"),
    [
        ([], {}, "^images holds no images$"),
        ("nowhere", {}, "^nowhere: there is no such file or folder$"),
        (["nowhere.png", np.zeros((2, 2))], {}, "^images: nowhere.png: there is no such file$"),
        ("nowhere", {"top": 4}, "^--top must lie in 1 … 3"),
        ("nowhere", {"unknown_below": 2}, "^--unknown-below must be at most 1, got 2$"),
        ("nowhere", {"refuse_wrong": 0.5}, "^--refuse-wrong needs held-out target images"),
    ],
)
def test_wrong_images_end_in_one_sentence(run: sohot.Run, images: Any, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises((ValueError, TypeError, FileNotFoundError), match=sentence):
        run.predict(images, **options)


def test_accuracy_is_that_of_the_command_line(
    run: sohot.Run, domains: Domains, test_paths: Listed, command: Command
) -> None:
    expected = command("evaluate", run.path, domains.test)
    found = run.evaluate(domains.test)
    assert {**found.evaluation.as_json(), "calibration": found.calibration._asdict()} == {
        **expected["accuracy"],
        "interval95": found.interval,
        "per_class_interval95": found.evaluation.per_class_interval95,
    }
    assert (found.protocol, found.notes, found.images) == (expected["protocol"], [], 12)
    assert str(found).startswith(f"accuracy {100 * found.accuracy:.1f} % (")
    with pytest.raises(ValueError, match="has classes that the run does not know: 'mug'"):
        run.evaluate((test_paths[0], ["mug"] * 12))


def test_a_page_and_a_summary(run: sohot.Run, tmp_path: Path) -> None:
    assert run.report(tmp_path / "page.html", images=0) == tmp_path / "page.html"
    assert (tmp_path / "page.html").read_text().startswith("<!DOCTYPE html>")
    low, high = run.info()["accuracy"]["interval95"]
    summary = run._repr_html_()
    for part in (
        "means",
        "small-cnn",
        "18 source, 9 target, 6 test",
        str(run.path),
        f"({100 * low:.1f} to {100 * high:.1f})",
    ):
        assert part in summary
        assert part in repr(run)


def test_export_writes_a_file_or_a_package(run: sohot.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(_: object, __: object, file: Path, **___: object) -> float:
        file.write_bytes(b"a model")  # the real export takes seconds, and tests/training has it
        return 0.0

    monkeypatch.setattr(loaded_run, "export_onnx", write)
    assert run.export(tmp_path / "model.onnx") == tmp_path / "model.onnx"
    assert (tmp_path / "model.onnx").read_bytes() == b"a model"
    assert run.export(tmp_path / "model") == tmp_path / "model"
    assert (tmp_path / "model" / package.MODEL).read_bytes() == b"a model"
    with pytest.raises(ValueError, match="exists already: give a new or an empty folder"):
        run.export(tmp_path / "model")


def test_a_loaded_run_is_the_run(run: sohot.Run, test_paths: Listed) -> None:
    loaded = sohot.load(str(run.path), device="cpu", progress=False)
    assert loaded.predict(test_paths[0]) == run.predict(test_paths[0])
    assert (loaded.classes, loaded.accuracy) == (("blue", "green", "red"), run.accuracy)


def test_a_head_is_loaded_like_a_run(domains: Domains, test_paths: Listed, tmp_path: Path) -> None:
    network = ["--backbone", "small-cnn", "--image-size", "16", "--device", "cpu", "--quiet"]
    for name in ("source", "target"):
        with pytest.raises(SystemExit):
            main(["features", str(getattr(domains, name)), *network, "--out", str(tmp_path / f"{name}.npz")])
    files = ["--source", str(tmp_path / "source.npz"), "--target", str(tmp_path / "target.npz")]
    with pytest.raises(SystemExit):
        main(["fit-features", *files, "--shots", "3", "--quiet", "--out", str(tmp_path / "head")])
    head = sohot.load(tmp_path / "head", progress=False)
    assert set(head.predict(test_paths[0]).labels) <= set(head.classes)
    assert "18 source" in repr(head)
