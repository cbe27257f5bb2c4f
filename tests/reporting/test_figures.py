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

from sohot.reporting.figures import (
    DomainFeatures,
    _named,
    confusion_figure,
    curve_figure,
    ellipse_figure,
    figure_names,
    point_figure,
    shots_figure,
    sigma_figure,
    weight_histograms,
    write_feature_figures,
    write_figures,
)
from sohot.reporting.figures.canvas import OKABE_ITO, save_figure
from sohot.reporting.figures.classes import confusion_of, fit_beta
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


def domain_features(classes: int = 3, rows: int = 6, seed: int = 0) -> DomainFeatures:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(classes).repeat_interleave(rows)
    source, target = (torch.randn(len(labels), 5, generator=generator) + labels.unsqueeze(1) for _ in range(2))
    return DomainFeatures(source, labels, target, labels, [f"class {c}" for c in range(classes)])


def test_figures_of_different_pools_are_apart_and_say_so() -> None:
    several = replace(GRID, pool=("transductive", "inductive"), figures=("curves",))
    records = [record for one in several.by_pool() for record in make_records(one, classes=CLASSES)]
    assert figure_names(records, several) == ["curves-A-W-transductive", "curves-A-W-inductive"]
    (only,) = (draw for _, draw in _named(records, several.by_pool()[0]))
    assert "transductive: tested on the unlabelled target images that training sees" in texts(only())


def test_the_figures_of_a_grid_are_whole_files_the_same_for_the_same_records(tmp_path: Path) -> None:
    files = write_figures(RECORDS, GRID, tmp_path / "one")
    names = ["zeta", "curves-A-W", "confusion-A-W-s+t", "confusion-A-W-so", "confusion-A-W-so+zeta"]
    assert [file.name for file in files] == [f"{name}.{form}" for name in names for form in ("png", "svg")]
    assert sorted(os.listdir(tmp_path / "one" / "figures")) == sorted([".written.json", *(one.name for one in files)])
    assert figure_names(RECORDS, GRID) == names
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
    assert sigma_figure(ROWS, "A-W") is None
    assert curve_figure(ROWS, "W-A") is None
    assert confusion_of(ROWS[0], "W-A") is None


def test_weights_of_all_classes_and_splits_are_in_the_histogram() -> None:
    figure = weight_histograms(ROWS)
    assert [axes.get_title() for axes in figure.axes] == [
        r"$\bar{\zeta}$, means (so+zeta)",
        r"$\zeta$, order 2 (so+zeta)",
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
    first, second = sigma_figure(rows, "A-W").axes
    assert (first.get_xscale(), second.get_xscale()) == ("symlog", "log")
    assert [text.get_text() for text in first.get_legend().get_texts()] == [
        "s+t",
        r"so, $\sigma_2$ = 0.1",
        r"so, $\sigma_2$ = 1",
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
    assert {line.get_color() for line in lines} <= set(OKABE_ITO)


@pytest.mark.parametrize("classes", [1, 3, 31, 70])
def test_the_confusion_matrix_is_in_per_cent_of_true_classes(classes: int) -> None:
    confusion = (np.eye(classes, dtype=int) * 3 + np.roll(np.eye(classes, dtype=int), 1, 1)).tolist()
    figure = confusion_figure(confusion, [f"class {c}" for c in range(classes)])
    shares = figure.axes[0].images[0].get_array()
    np.testing.assert_allclose(shares.sum(1), 100)
    assert ("75" in texts(figure)) == (1 < classes <= 40)
    assert max(figure.get_size_inches()) < 16


def test_a_class_without_images_has_an_empty_row() -> None:
    shares = confusion_figure([[0, 0], [1, 3]], ["a", "b"]).axes[0].images[0].get_array()
    np.testing.assert_allclose(shares, [[0, 0], [25, 75]])


def test_confusion_adds_up_the_splits() -> None:
    confusion, names = confusion_of(ROWS[1], "A-W")
    assert names == list(CLASSES)
    assert np.sum(confusion) == 2 * 10 * len(CLASSES)


def test_names_with_formulas_and_line_breaks_are_shown_as_they_are(tmp_path: Path) -> None:
    figure = confusion_figure([[1, 0], [0, 1]], ["$x^2$", "a\nb\x1b $"], title="50 % $")
    assert "a b \\$" in texts(figure)
    assert len(save_figure(figure, tmp_path, "one")) == 2


def test_features_are_drawn_before_and_after(tmp_path: Path) -> None:
    stages = {"before": domain_features(), "after": domain_features(seed=1)}
    files = write_feature_figures(stages, tmp_path)
    assert [file.name for file in files] == [f"{n}.{f}" for n in ("pca", "tsne", "scatters") for f in ("png", "svg")]
    figure = point_figure(stages)
    assert len(figure.axes) == 4
    assert all(f"class {c}" in texts(figure) for c in range(3))


def test_target_rows_that_train_are_marked() -> None:
    stage = replace(domain_features(), trained=torch.arange(18) % 6 < 2)
    figure = point_figure({"after": stage})
    named = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert named == ["source", "target, unseen", "target, trained on"]
    assert [len(stars.get_offsets()) for stars in figure.axes[0].collections] == [6]
    assert [len(stars.get_offsets()) for stars in figure.axes[1].collections] == [2, 2, 2]
    assert [len(stars.get_offsets()) for stars in ellipse_figure({"after": stage}).axes[0].collections] == [2, 2, 2]
    assert "stars" not in texts(ellipse_figure({"after": domain_features()}))


def test_of_many_classes_ten_are_shown_and_small_ones_are_no_trouble() -> None:
    many = domain_features(classes=14, rows=4)
    assert len(ellipse_figure({"all": many}).axes[0].get_legend().get_texts()) == 10
    single = domain_features(classes=3, rows=1)
    assert len(ellipse_figure({"all": single}).axes[0].patches) == 0
    assert len(ellipse_figure({"all": domain_features(rows=2)}).axes[0].patches) == 6


def test_bad_features_are_named() -> None:
    good = domain_features()
    with pytest.raises(ValueError, match="stages is empty"):
        point_figure({})
    with pytest.raises(ValueError, match="stages must all have the same classes"):
        ellipse_figure({"before": good, "after": domain_features(classes=4)})
    apart = replace(good, source_labels=good.source_labels * 0, target_labels=good.target_labels * 0 + 1)
    with pytest.raises(ValueError, match="stages must have a class with rows in both domains"):
        point_figure({"before": apart})
    with pytest.raises(ValueError, match="target_labels must lie in 0 … 1"):
        replace(good, classes=["a", "b"], source_labels=good.source_labels.clamp(max=1))
    with pytest.raises(ValueError, match="source and target must have the same number of features"):
        replace(good, target=good.target[:, :2])
    with pytest.raises(ValueError, match="trained must have one entry for each row of target"):
        replace(good, trained=torch.ones(2, dtype=torch.bool))


def test_steps_at_which_training_had_no_finite_loss_are_left_out() -> None:
    record = make_record("so", classes=CLASSES)
    curve = {"step": [1, 2, 3], "cross_entropy": [1.0, None, 0.5], "alignment": [None, None, None]}
    record = with_result(record, curve=curve)
    figure = curve_figure(collect([record], GRID), "A-W")
    assert len(figure.axes) == 1
    assert np.isfinite(figure.axes[0].lines[0].get_ydata()).all()
    record = with_result(record, curve={"step": [], "cross_entropy": []})
    assert curve_figure(collect([record], GRID), "A-W") is None
