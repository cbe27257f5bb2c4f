"""The page of a run with unlabelled images: what it says about them, and that it does without what is missing."""

import json
import re
import shutil
from pathlib import Path

import pytest
from made_up_results import CLASSES, add_pool, make_run

from sohot.reporting.pages.blocks import Chart, Gallery, Section, Side, Table, Words
from sohot.reporting.pages.run_images import stored_images
from sohot.reporting.pages.run_page import run_page
from sohot.reporting.pages.run_pictures import choose_points
from sohot.reporting.pages.run_pool import TITLE, pool_sections, read_labels
from sohot.runs import read_predictions
from sohot.training.logs import read_csv_log


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("plain"), steps=2, method="s+t")


@pytest.fixture
def run(plain: Path, tmp_path: Path) -> Path:
    return add_pool(shutil.copytree(plain, tmp_path / "run"), tmp_path / "secret" / "found sketches")


def section(run: Path, images: int = 8) -> Section:
    (found,) = pool_sections(run, {}, read_csv_log(run / "log.csv"), images)
    return found


def words(found: Section) -> str:
    return " ".join(block.text for block in found.blocks if isinstance(block, Words))


def charts_of(found: Section) -> dict[str, Chart]:
    charts = [one for block in found.blocks for one in (block.charts if isinstance(block, Side) else [block])]
    return {chart.title: chart for chart in charts if isinstance(chart, Chart)}


def change(file: Path, **values: object) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


def test_a_run_without_unlabelled_images_has_no_such_section(plain: Path) -> None:
    assert TITLE not in [one.title for one in run_page(plain, 0).sections]


def test_folders_are_named_and_the_rest_of_the_target_is_told(run: Path) -> None:
    said = {"rest": "those that --shots left over", ("/a/old", "/b/new"): "the folders old and new"}
    for given, told in said.items():
        (found,) = pool_sections(run, {"unlabelled": given}, [], 0)
        assert f"without labels, from {told}." in words(found)


def test_the_section_says_what_the_images_are_and_whether_they_helped(run: Path) -> None:
    told = words(section(run))
    assert "Training saw 18 target images without labels, from the folder found sketches." in told
    assert "the accuracy is inductive" in told
    assert "The pool was kept: 5 of 6 held-out target images are right with it, 4 without." in told
    assert "secret" not in told  # where the folder is stays private
    change(run / "report.json", protocol="transductive", pool={"sentence": None, "collapse": "one class took all."})
    told = words(section(run))
    assert "the accuracy is transductive" in told
    assert "One class took all." in told
    change(run / "report.json", accuracy=None)
    assert "There are no test images." in words(section(run))


def test_shares_of_classes_and_curves_are_drawn(run: Path) -> None:
    drawn = charts_of(section(run))
    assert list(drawn) == [
        "Estimated shares of the classes",
        "Pseudo-labels during training",
        "Losses of unlabelled images",
    ]
    (axes,) = drawn["Estimated shares of the classes"].figure.axes
    assert [bar.get_height() for bar in axes.patches] == pytest.approx([50, 30, 20, *[100 / 3] * 3])
    (axes,) = drawn["Pseudo-labels during training"].figure.axes
    curves = {line.get_label(): list(line.get_ydata()) for line in axes.lines}
    assert curves["kept (mask rate)"] == [50, 50]
    (axes,) = drawn["Losses of unlabelled images"].figure.axes
    assert [line.get_label() for line in axes.lines] == ["pseudo-labels", "information"]


def test_the_surest_and_the_least_sure_answers_and_those_to_label_are_shown(run: Path) -> None:
    found = section(run, images=8)
    surest, least, suggested = [block.pictures for block in found.blocks if isinstance(block, Gallery)]
    answers = sorted(read_predictions(run / "pool.csv"), key=lambda one: -one.probabilities[0])
    assert [one.note for one in surest] == [str(one.file) for one in answers[:2]]
    assert [one.note for one in least] == [str(one.file) for one in answers[:-3:-1]]
    (table,) = [block for block in found.blocks if isinstance(block, Table)]
    assert len(suggested) == len(table.rows) == 12
    assert [one.note for one in suggested] == [row[-1] for row in table.rows]
    assert all(re.search("uncertain between|probably", row[-1]) for row in table.rows)


def test_unlabelled_images_have_their_own_mark_in_the_map_of_features(run: Path) -> None:
    stored, labels = stored_images(run), read_labels(run)
    points = choose_points(stored, CLASSES, labels)
    assert points.parts.count("pool") == 18
    given = {str(one.file): one.labels[0] for one in labels.predictions}
    names = [labels.images.name(row) for row in stored.outputs.features["pool"].rows.tolist()]
    assert [name for name, part in zip(points.classes, points.parts, strict=True) if part == "pool"] == [
        given[name] for name in names
    ]
    assert "pool" not in choose_points(stored, CLASSES).parts
    told = next(one for one in run_page(run, 4).sections if one.title == "Features").blocks[0].text
    assert "Triangles are unlabelled target images" in told


def test_test_images_of_the_pool_are_shown_once(run: Path) -> None:
    content = json.loads((run / "split.json").read_text())
    content["folders"]["target_pool"] = content["folders"]["target_test"]  # tested on the pool itself
    (run / "split.json").write_text(json.dumps(content))
    points = choose_points(stored_images(run), CLASSES, read_labels(run))
    assert (points.parts.count("pool"), points.parts.count("test")) == (18, 0)


@pytest.mark.parametrize("lost", ["pool.csv", "test_outputs.safetensors", "split.json", "log.csv"])
def test_what_is_missing_is_not_shown(run: Path, lost: str) -> None:
    (run / lost).unlink()
    found = section(run, images=0)
    assert "Training saw 18 target images" in words(found)
    assert any(isinstance(block, Table) for block in found.blocks) == (lost == "log.csv")


def test_images_that_are_gone_and_damaged_labels_are_told(run: Path, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "secret")
    assert not [block for block in section(run).blocks if isinstance(block, Gallery)]
    (run / "pool.csv").write_text("file,label\nx\n")
    assert "The labels of the unlabelled images cannot be shown" in words(section(run))
