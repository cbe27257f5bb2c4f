import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from sohot.data.crops import AREA, RATIO, draw_crops, random_crop

NUMBER = st.floats(0, 1, exclude_max=True)


@given(st.tuples(*[NUMBER] * 5), st.integers(1, 300), st.integers(1, 300))
def test_random_crops_lie_inside_and_keep_enough(numbers: tuple[float, ...], width: int, height: int) -> None:
    crop = random_crop(width, height, numbers)
    assert 0 <= crop.left < crop.right <= width
    assert 0 <= crop.top < crop.bottom <= height
    across, down = crop.right - crop.left, crop.bottom - crop.top
    if across < width and down < height:  # not narrowed
        assert AREA[0] - 1e-9 <= across * down / (width * height) <= AREA[1] + 1e-9
        assert RATIO[0] - 1e-9 <= across / down <= RATIO[1] + 1e-9


def test_draws_are_spread_evenly_over_all_that_may_be_drawn() -> None:
    assert (AREA, RATIO) == ((0.6, 1.0), (3 / 4, 4 / 3))
    torch.manual_seed(0)
    crops = [random_crop(1000, 1000, numbers) for numbers in draw_crops(4000).tolist()]
    across = torch.tensor([crop.right - crop.left for crop in crops])
    down = torch.tensor([crop.bottom - crop.top for crop in crops])
    whole = (across < 1000) & (down < 1000)
    small = whole & (across * down < 0.75e6)  # none of these is narrowed, so the ratio is as it was drawn
    ratios = (across / down)[small].log() / math.log(4 / 3)
    mirrored = torch.tensor([crop.mirrored for crop in crops]).float()
    free = torch.tensor([crop.left for crop in crops])[whole] / (1000 - across[whole])
    for values, low, high in ((ratios, -1, 1), (free, 0, 1)):
        ordered = ((values - low) / (high - low)).sort().values
        even = torch.linspace(0, 1, len(ordered))
        assert (ordered - even).abs().max() < 1.95 / math.sqrt(len(ordered))  # Kolmogorov-Smirnov, one in a thousand
    areas = (across * down)[(across / down).log().abs() < 0.01] / 1e6
    assert 0.6 <= areas.min() < 0.65 < 0.93 < areas.max() <= 1
    assert 0.47 < mirrored.mean() < 0.53
