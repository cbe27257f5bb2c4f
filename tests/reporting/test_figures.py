import os
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reporting.made_records import make_grid, make_record, make_records

from sohot.reporting.figures import write_figures
from sohot.reporting.figures.canvas import PALETTE, page_svg, save_figure
from sohot.reporting.figures.classes import (
    class_weight_figure,
    confusion_figure,
    confusion_of,
    fit_beta,
    share_figure,
    weight_histograms,
)
from sohot.reporting.figures.comparison import difference_figure, split_figure
from sohot.reporting.figures.curves import SIGMAS, curve_figure, lines_figure, setting_figure, shots_figure
from sohot.reporting.figures.features import FeaturePoints, feature_figure
from sohot.reporting.published import published
from sohot.reporting.results import collect

CLASSES = ("cat $5", "<b>dog</b>", "owl")
GRID = make_grid(shifts=("A-W",), splits=(1, 2), methods=("s+t", "so", "so+zeta"))
RECORDS = make_records(GRID, classes=CLASSES)
ROWS = collect(RECORDS, GRID)
SHOTS = make_grid(
    dataset="rgbd-caltech", shifts=("depth-caltech",), methods=("s+t", "so"), vary={"target_shots": [3, 5, 10]}
)
SIGMA = make_grid(
    shifts=("A-W",), splits=(1,), methods=("s+t", "so"), vary={"sigma1": [0.0, 0.01, 0.1, 1.0], "sigma2": [0.1, 1.0]}
)


def texts(figure) -> str:
    from matplotlib.text import Text

    return "\n".join(text.get_text() for text in figure.findobj(Text))


def feature_points(stages=("before training", "after training"), names=("mug", "pen", "$owl$")) -> FeaturePoints:
    generator = torch.Generator().manual_seed(0)
    parts = [part for part in ("source", "target", "test", "pool") for _ in range(5 * len(names))]
    classes = [names[row % len(names)] for row in range(len(parts))]
    return FeaturePoints(
        {stage: torch.randn(len(parts), 5, generator=generator) for stage in stages}, classes, parts, names
    )


def test_figures_of_different_pools_are_apart_and_say_so(tmp_path: Path) -> None:
    several = replace(GRID, pool=("transductive", "inductive"), figures=("curves",))
    records = [record for one in several.by_pool() for record in make_records(one, classes=CLASSES)]
    files = write_figures(records, several, tmp_path)
    assert [file.stem for file in files[::2]] == ["curves-A-W-transductive", "curves-A-W-inductive"]
    assert "transductive: tested on the unlabelled target images that training sees" in files[1].read_text()


def test_the_figures_of_a_grid_are_whole_files_the_same_for_the_same_records(tmp_path: Path) -> None:
    files = write_figures(RECORDS, GRID, tmp_path / "one")
    names = ["zeta", "curves-A-W", "confusion-A-W-s+t", "confusion-A-W-so", "confusion-A-W-so+zeta"]
    assert [file.name for file in files] == [f"{name}.{form}" for name in names for form in ("png", "svg")]
    assert sorted(os.listdir(tmp_path / "one" / "figures")) == sorted([".written.json", *(one.name for one in files)])
    for file in files:
        if file.suffix == ".png":
            assert file.read_bytes().startswith(b"\x89PNG")
        else:
            assert ElementTree.parse(file).getroot().tag.endswith("svg")
            assert not re.search(rb"<dc:date>|matplotlib v", file.read_bytes(), re.IGNORECASE)
    again = write_figures(list(reversed(RECORDS)), replace(GRID, figures=("zeta", "curves")), tmp_path / "two")
    for file in again:
        assert file.read_bytes() == (tmp_path / "one" / "figures" / file.name).read_bytes()


def test_settings_of_matplotlib_are_left_alone(tmp_path: Path) -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    save_figure(confusion_figure([[1, 0], [0, 1]], ["a", "b"]), tmp_path, "one")
    assert dict(matplotlib.rcParams) == before


def test_what_records_do_not_allow_is_not_drawn(tmp_path: Path) -> None:
    every = ("zeta", "shots", "sigma", "curves", "confusion")
    assert write_figures([], replace(GRID, figures=every), tmp_path) == []
    assert write_figures([make_record(error="bad")], replace(GRID, figures=every), tmp_path) == []
    assert write_figures(RECORDS, replace(GRID, figures=()), tmp_path) == []
    assert os.listdir(tmp_path) == []
    assert weight_histograms([row for row in ROWS if row.method == "so"]) is None
    assert shots_figure(ROWS, "A-W") is None
    assert setting_figure(ROWS, SIGMAS, "A-W") is None
    assert curve_figure(ROWS, "W-A") is None
    assert confusion_of(ROWS[0], "W-A") is None


def test_weights_of_all_classes_and_splits_are_in_the_histogram() -> None:
    figure = weight_histograms(ROWS)
    assert [axes.get_title() for axes in figure.axes] == [
        "ζ, means (so+zeta)",
        "ζ, order 2 (so+zeta)",
    ]
    assert all(f"{len(CLASSES) * len(GRID.splits)} weights" in texts(figure) for _ in figure.axes)
    for axes in figure.axes:
        assert sum(bar.get_height() * bar.get_width() for bar in axes.patches) == pytest.approx(1)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.floats(0, 3), min_size=0, max_size=40))
def test_a_beta_fit_exists_or_is_none_whatever_the_weights(values) -> None:
    fit = fit_beta(values)
    if fit is not None:
        assert fit.a > 0
        assert fit.b > 0
        assert fit.scale == max(1.0, *values)
        assert 0 <= fit.mean <= fit.scale


def with_result(record, **parts):
    """A record whose result is another in some parts."""
    return replace(record, result=replace(record.result, **parts))


@pytest.mark.parametrize("values", [[1.0] * 31, [0.0] * 31, [0.5, 0.6], [], [0.0] * 15 + [1.0] * 16])
def test_constant_few_and_extreme_weights_are_drawn(values) -> None:
    fit = fit_beta(values)
    assert (fit is None) == (len(set(values)) < 2 or len(values) < 5)
    if values:
        record = make_record("so+zeta", classes=CLASSES)
        record = with_result(record, zeta={"means": values, "order2": values})
        assert len(weight_histograms(collect([record], GRID)).axes) == 2


def test_a_beta_fit_finds_the_distribution_it_was_drawn_from() -> None:
    drawn = 1.25 * np.random.default_rng(1).beta(6, 3, 5000)
    fit = fit_beta(drawn.tolist())
    assert fit.mean == pytest.approx(drawn.mean(), abs=0.01)


def test_shots_have_a_line_for_each_method_and_published_gains() -> None:
    rows = collect(make_records(SHOTS, classes=CLASSES), SHOTS)
    figure = shots_figure(rows, "depth-caltech", published("rgbd-shots"))
    accuracy, gain = figure.axes
    assert [text.get_text() for text in accuracy.get_legend().get_texts()] == ["s+t", "so"]
    assert [text.get_text() for text in gain.get_legend().get_texts()] == ["So, published (AlexNet)", "so"]
    assert list(gain.get_xticks()) == [3, 5, 10]
    drawn = accuracy.containers[1].lines[0].get_ydata()
    own = [row.over_splits("depth-caltech").mean for row in rows if row.method == "so"]
    assert list(drawn) == pytest.approx(own)


def test_sigma_has_a_logarithmic_axis_a_place_for_zero_and_the_line_of_s_t() -> None:
    records = [make_record("s+t", grid=SIGMA, classes=CLASSES)]
    for sigma1 in SIGMA.vary["sigma1"]:
        for sigma2 in SIGMA.vary["sigma2"]:
            change = {"sigma1": sigma1, "sigma2": sigma2}
            records.append(make_record("so", grid=SIGMA, change=change, classes=CLASSES))
    rows = collect(records, SIGMA)
    first, second = setting_figure(rows, SIGMAS, "A-W").axes
    assert (first.get_xscale(), second.get_xscale()) == ("symlog", "log")
    assert [text.get_text() for text in first.get_legend().get_texts()] == [
        "s+t",
        "so, σ₂ = 0.1",
        "so, σ₂ = 1",
    ]
    line = next(line for line in first.lines if line.get_label() == "s+t")
    assert line.get_ydata()[0] == pytest.approx(rows[0].over_splits("A-W").mean)


def test_curves_show_alignment_where_there_is_one() -> None:
    entropy, alignment = curve_figure(ROWS, "A-W").axes
    assert [line.get_label() for line in entropy.lines] == ["s+t", "so", "so+zeta"]
    assert [line.get_label() for line in alignment.lines] == ["so", "so+zeta"]
    assert len(curve_figure(ROWS[:1], "A-W").axes) == 1


def test_lines_differ_in_colour_marker_and_style() -> None:
    lines = curve_figure(ROWS, "A-W").axes[0].lines
    for looks in ([line.get_color() for line in lines], [line.get_marker() for line in lines]):
        assert len(set(looks)) == len(lines)
    assert {line.get_color() for line in lines} <= set(PALETTE)


@pytest.mark.parametrize("classes", [1, 3, 31, 70])
def test_the_confusion_matrix_is_in_per_cent_of_true_classes(classes: int) -> None:
    confusion = (np.eye(classes, dtype=int) * 3 + np.roll(np.eye(classes, dtype=int), 1, 1)).tolist()
    figure = confusion_figure(confusion, [f"class {c}" for c in range(classes)])
    (axes,) = figure.axes
    assert len(axes.get_yticklabels()) == min(classes, 60)
    assert ("75" in texts(figure)) == (1 < classes <= 40)
    assert max(figure.get_size_inches()) < 20


def test_a_class_without_images_has_an_empty_row_and_darker_cells_are_larger_shares() -> None:
    (axes,) = confusion_figure([[0, 0], [1, 3]], ["a", "b"]).axes
    assert {text.get_text(): text.get_position() for text in axes.texts} == {"25": (0, 1), "75": (1, 1)}
    light, dark = axes.collections[0].get_facecolor()[:, 3]
    assert 0 < light < dark < 1


def test_confusion_adds_up_the_splits() -> None:
    confusion, names = confusion_of(ROWS[1], "A-W")
    assert names == list(CLASSES)
    assert np.sum(confusion) == 2 * 10 * len(CLASSES)


NAMES = ("$x^2$ 猫", "a\nb\x1b <img src=x onerror=alert(1)>", r"\frac & $\unknown{$ ]]> -->")


def figures_of_names():
    """Every chart that shows names, with names that would be formulas, markup or no XML at all."""
    points = feature_points(names=NAMES)
    return {
        "confusion": confusion_figure([[1, 0, 2], [0, 1, 0], [1, 1, 1]], NAMES, NAMES[2]),
        "weights": class_weight_figure({NAMES[0]: {"ζ, means": [1.0, 0.5, 0.2]}}, NAMES),
        "shares": share_figure({"pool": [20.0, 30.0, 50.0], "labelled": [10.0, 30.0, 60.0]}, NAMES),
        "lines": lines_figure({name: ([1, 2], [3.0, 1.0]) for name in NAMES}, "loss"),
        "splits": split_figure({name: {"A-W": [80.0, 81.0], NAMES[0]: []} for name in NAMES}),
        "differences": difference_figure(dict.fromkeys(NAMES, (1.0, -0.5, 2.5)), NAMES[0]),
        "features": feature_figure(points, "pca"),
        "curves": curve_figure([replace(row, method=name) for row, name in zip(ROWS, NAMES, strict=True)], "A-W"),
        "zeta": weight_histograms([replace(row, method=NAMES[2]) for row in ROWS]),
    }


@pytest.mark.parametrize("name", figures_of_names())
def test_names_are_shown_as_they_are_in_files_and_on_pages(name: str, tmp_path: Path) -> None:
    figure = figures_of_names()[name]
    assert len(save_figure(figure, tmp_path, "one")) == 2
    ElementTree.parse(tmp_path / "one.svg")
    element = ElementTree.fromstring(page_svg(figure, 3, "a <chart>").replace("<svg", f"<svg {XLINK}", 1))
    shown = [node.text or "" for node in element.iter("text")]
    assert any(NAMES[0] in text or r"$\unknown{$ ]]> -->" in text for text in shown)
    assert {node.tag for node in element.iter()} <= {
        *["svg", "g", "defs", "path", "use", "text", "clipPath", "rect", "pattern"]
    }


XLINK = 'xmlns:xlink="http://www.w3.org/1999/xlink"'


def test_charts_of_a_page_share_no_id_and_follow_its_colours() -> None:
    first, second, again = (page_svg(curve_figure(ROWS, "A-W"), number, "x") for number in (0, 1, 0))
    assert first == again
    ids = [set(re.findall(r' id="([^"]*)"', one)) for one in (first, second)]
    assert ids[0]
    assert not ids[0] & ids[1]
    for one, names in zip((first, second), ids, strict=True):
        assert set(re.findall(r'(?:url\(|href=")#([^")]*)', one)) <= names
    assert {"var(--c0)", "var(--text)", "var(--grid)"} <= set(re.findall(r"var\(--\w+\)", first))
    assert not re.findall(r"(?:fill|stroke): #", first)


def test_features_have_a_panel_for_each_stage_and_a_mark_for_each_part() -> None:
    figure = feature_figure(feature_points())
    assert [axes.get_title() for axes in figure.axes] == ["before training", "after training"]
    for axes in figure.axes:
        drawn = [line for line in axes.lines if len(line.get_xdata())]
        assert sum(len(line.get_xdata()) for line in drawn) == 4 * 15
        assert {line.get_marker() for line in drawn} == {"o", "*", "x", "^"}
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert named[:4] == ["mug", "pen", "$owl$", "source, trained on"]
    assert len(named) == 3 + 4


def test_many_points_become_pixels() -> None:
    points = feature_points(stages=("frozen",))
    many = FeaturePoints({"frozen": torch.randn(6000, 3)}, points.classes * 100, points.parts * 100, points.names)
    element = page_svg(feature_figure(many), 0, "x")
    assert "data:image/png" in element
    assert element.count("<use") < 100


def test_steps_at_which_training_had_no_finite_loss_are_left_out() -> None:
    record = make_record("so", classes=CLASSES)
    curve = {"step": [1, 2, 3], "cross_entropy": [1.0, None, 0.5], "alignment": [None, None, None]}
    record = with_result(record, curve=curve)
    figure = curve_figure(collect([record], GRID), "A-W")
    assert len(figure.axes) == 1
    assert np.isfinite(figure.axes[0].lines[0].get_ydata()).all()
    record = with_result(record, curve={"step": [], "cross_entropy": []})
    assert curve_figure(collect([record], GRID), "A-W") is None
