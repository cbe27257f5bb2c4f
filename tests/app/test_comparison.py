"""Two runs are compared on the images that tested both, and on no others."""

import shutil
from pathlib import Path

import pytest
from made_up_results import make_run

from sohot.app.comparison import compare, runs_beside
from sohot.runs import read_report

CLASSES = ("<img src=x onerror=alert(1)>", "bike", "mug")


@pytest.fixture(scope="module")
def other(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another run on the same images, which draws other shots."""
    root = tmp_path_factory.mktemp("other")
    run = make_run(made.parent, out=root / "run", seed=5, steps=2)
    assert run.is_dir()
    return root / "run"


def test_a_run_does_not_differ_from_itself(made: Path) -> None:
    found, report = compare(made, made), read_report(made)
    assert report is not None
    assert found["differ"] == 0
    assert found["images"] == report["accuracy"]["rows"]
    assert found["right"] == [round(report["accuracy"]["micro"] * found["images"])] * 2


def test_only_images_that_tested_both_count_and_the_order_of_runs_does_not_matter(made: Path, other: Path) -> None:
    found, turned = compare(made, other), compare(other, made)
    assert 0 < found["images"] < found["first"]["images"]
    assert found["right"] == turned["right"][::-1]
    assert found["differ"] == turned["differ"] == len(found["different"])
    assert sum(one["images"] for one in found["classes"]) == found["images"]
    for run in (0, 1):
        assert sum(one["right"][run] for one in found["classes"]) == found["right"][run]
    gains = [one["said"][1]["right"] - one["said"][0]["right"] for one in found["different"]]
    assert sum(gains) == found["right"][1] - found["right"][0]
    assert all(one["said"][0]["label"] != one["said"][1]["label"] for one in found["different"])


def test_runs_without_common_images_are_told(made: Path, tmp_path: Path) -> None:
    elsewhere = make_run(tmp_path, steps=1)
    with pytest.raises(ValueError, match="no image tested both"):
        compare(made, elsewhere)
    (elsewhere / "test_outputs.safetensors").unlink()
    with pytest.raises(ValueError, match="keeps no answers"):
        compare(made, elsewhere)


def test_runs_beside_are_the_finished_ones_of_the_same_classes(run: Path) -> None:
    shutil.copytree(run, run.with_name("second"))
    (shutil.copytree(run, run.with_name("unfinished")) / "report.json").unlink()
    (shutil.copytree(run, run.with_name("damaged")) / "report.json").write_text("{}")
    run.with_name("notes").mkdir()
    run.with_name("file").touch()
    assert [path.name for path in runs_beside(run, CLASSES)] == ["second"]
    assert runs_beside(run, ("cup", "mug")) == []
