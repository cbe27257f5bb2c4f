import pytest

from sohot.data import InputSpec

RGB = {"mean": (0.5, 0.5, 0.5), "std": (0.2, 0.2, 0.2)}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"size": 0}, "size must be an integer of at least 1, got 0"),
        ({"size": 2.5}, "size must be an integer"),
        ({"resize": 31}, "resize must be at least size=32, got 31"),
        ({"interpolation": "nearest"}, "interpolation must be one of 'bicubic', 'bilinear', got 'nearest'"),
        ({"mean": (0.5, 0.5)}, "mean and std must both hold 1 or 3 numbers, got 2 and 3"),
        ({"std": (1, 0, 1)}, "std must be above 0"),
    ],
)
def test_bad_input_is_named(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        InputSpec(**{"size": 32, "resize": 32, **RGB, **change})
