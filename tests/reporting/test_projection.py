import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sohot.reporting.figures.projection import project


def rows(n: int, d: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed))


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 12), st.integers(1, 12))
def test_pca_keeps_no_more_than_the_spread_and_two_features_keep_all_distances(n: int, d: int) -> None:
    x = rows(n, d)
    plane = torch.from_numpy(project(x))
    assert plane.shape == (n, 2)
    assert (torch.cdist(plane, plane) <= torch.cdist(x, x) + 1e-4).all()
    if d <= 2:
        torch.testing.assert_close(torch.cdist(plane, plane), torch.cdist(x, x), atol=1e-4, rtol=1e-4)


def test_shifting_changes_nothing_and_the_first_direction_has_most_spread() -> None:
    x = rows(30, 8)
    np.testing.assert_allclose(project(x), project(x + 100), atol=1e-3)
    spread = project(x * torch.arange(1, 9)).std(0)
    assert spread[0] > spread[1]


@pytest.mark.parametrize("how", ["pca", "tsne"])
@pytest.mark.parametrize(("n", "d"), [(1, 3), (2, 1), (3, 5), (5, 1), (6, 4)])
def test_few_rows_and_features_are_no_trouble(how: str, n: int, d: int) -> None:
    plane = project(rows(n, d), how)
    assert plane.shape == (n, 2)
    assert np.isfinite(plane).all()


@pytest.mark.parametrize("how", ["pca", "tsne"])
def test_rows_that_are_all_the_same_lie_on_one_point(how: str) -> None:
    assert not project(torch.full((8, 3), 0.1), how).any()


def test_tsne_keeps_neighbours_and_gives_the_same_for_the_same_seed() -> None:
    x = rows(20, 60)
    x[10:] += 20
    plane = project(x, "tsne", seed=3)
    np.testing.assert_array_equal(plane, project(x, "tsne", seed=3))
    distance = np.linalg.norm(plane[:, None] - plane[None], axis=2) + 1e9 * np.eye(20)
    assert ((distance.argmin(1) < 10) == (np.arange(20) < 10)).all()


@pytest.mark.parametrize(
    ("features", "how", "message"),
    [
        (torch.zeros(0, 3), "pca", "features is empty"),
        (torch.zeros(3), "pca", "features must have the shape"),
        (torch.full((3, 2), float("nan")), "pca", "features holds NaN"),
        (torch.zeros(3, 2), "umap", "how must be one of 'pca', 'tsne', got 'umap'"),
    ],
)
def test_bad_input_is_named(features, how: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        project(features, how)
