import pytest

from sohot.data.datasets.domains import SHIFTS
from sohot.methods import method
from sohot.reporting.published import AVERAGE, published, published_names, published_source, stable_ranges


def value(name: str, label: str, shift: str, backbone: str | None = None):
    return next(
        row for row in published(name) if (row.label, row.shift) == (label, shift) and backbone in (None, row.backbone)
    )


@pytest.mark.parametrize("name", published_names())
def test_every_set_is_well_formed(name: str) -> None:
    rows = published(name)
    assert published_source(name)
    assert len({(row.label, row.backbone, row.shift, row.varied) for row in rows}) == len(rows)
    for row in rows:
        assert 0 <= row.value <= 100
        assert row.std is None or 0 <= row.std < 10
        assert row.backbone in ("alexnet", "vgg16", "resnet50", "own")
        assert row.protocol in ("paper", "rectified")
        assert row.method == row.label or method(row.method).name == row.method
        assert not name.startswith("office") or row.shift in (*SHIFTS, AVERAGE)


@pytest.mark.parametrize(
    ("label", "average", "printed", "over"),
    [
        ("S+T", 81.52, 81.53, 6),
        ("So", 82.67, 82.68, 6),
        ("Target CNN", 74.07, 74.06, 6),
        ("Dom. Conf.+Soft Labs.", 82.22, None, 6),
        ("DLID", 73.33, None, 3),
        ("DeCAF6 S+T", 87.75, None, 2),
        ("DaNN", 69.43, None, 3),
    ],
)
def test_averages_of_the_first_table_are_recomputed(label: str, average: float, printed: float, over: int) -> None:
    found = value("office-alexnet", label, AVERAGE)
    assert (round(found.value, 2), found.printed, found.over) == (average, printed, over)


def test_the_marginal_row_has_three_shifts_and_no_average() -> None:
    rows = [row for row in published("office-alexnet") if row.method == "m"]
    assert {row.shift: row.value for row in rows} == {"A-W": 82.6, "W-D": 95.9, "D-W": 94.6}


@pytest.mark.parametrize(
    ("label", "shift", "mean", "printed", "std"),
    [
        ("S+T", "A-W", 88.78, 88.76, 1.9),
        ("So", "A-W", 89.50, None, 1.8),
        ("So+ζ", "A-W", 90.25, 90.24, 1.3),
        ("To+ζ", "A-W", 90.55, None, 1.1),
        ("So+To+ζ", "A-W", 90.75, None, 1.2),
        ("So+To+Fo+ζ", "A-W", 90.90, 90.92, 1.3),
        ("S+T", "A-D", 89.82, 89.83, 1.4),
        ("So", "A-D", 92.28, 92.26, 1.1),
        ("So+To+ζ", "A-D", 92.53, 92.52, 1.2),
        ("So+To+Fo+ζ", "A-D", 92.75, 92.73, 1.1),
    ],
)
def test_the_second_table_follows_from_its_splits(label, shift, mean, printed, std) -> None:
    found = value("office-vgg", label, shift)
    assert (round(found.value, 2), found.printed, len(found.splits)) == (mean, printed, 10)
    assert found.std == pytest.approx(std, abs=0.13)  # as printed, which is not always rounded but cut


def test_the_other_sets() -> None:
    assert [round(row.value, 2) for row in published("voc-sketch")] == [62.66, 62.46, 63.40]
    assert [(row.varied, row.value, row.gain) for row in published("rgbd-shots")] == [
        (("target_shots", 3), 1.24, True),
        (("target_shots", 5), 1.04, True),
    ]
    assert value("sigma-sensitivity", "S+T", "A-W").value == 85.9
    assert stable_ranges("sigma-sensitivity") == {"sigma1": (5e-9, 5e-8), "sigma2": (1e-6, 5e-5)}
    assert stable_ranges("voc-sketch") == {}
    assert round(value("office-rectified", "DAGE-LDA", AVERAGE, "resnet50").value, 1) == 86.8


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the name of published numbers must be one of 'office-alexnet'.*got 'magic'"):
        published("magic")
