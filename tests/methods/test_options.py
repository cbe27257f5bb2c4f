"""Options are declared once: what takes them agrees on names, defaults and ranges."""

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import get_type_hints

import numpy as np
import pytest
import torch

from sohot import SoHoTClassifier
from sohot.methods import METHOD_NAMES, OTHER_NAMES, POOL_NAMES, FitSettings, HeadSettings, method
from sohot.methods.options import GROUPS, Allowed, flag, in_groups, kinds_of
from sohot.methods.records import METHOD_OPTIONS
from sohot.runs import RunConfig


def defaults(kind: type) -> dict[str, object]:
    return {declared.name: declared.default for declared in fields(kind)}


def test_the_estimator_takes_the_settings_of_training_on_features() -> None:
    of_settings = defaults(HeadSettings)
    taken = inspect.signature(SoHoTClassifier).parameters
    named = {name: one.default for name, one in taken.items() if one.kind is not one.VAR_KEYWORD}
    assert {name: named[name] for name in of_settings if name != "seed"} == {
        name: value for name, value in of_settings.items() if name != "seed"
    }
    assert set(named) - set(of_settings) == {"calibrate", "device", "random_state"}
    assert all(f"{name}: " in SoHoTClassifier.__doc__ for name in named)


def test_an_option_of_images_and_features_means_the_same() -> None:
    images, features = ({one.name: one for one in fields(kind)} for kind in (RunConfig, HeadSettings))
    other_default = {name for name in images.keys() & features if images[name].default != features[name].default}
    trained_otherwise = {"method", "head_decay", "optimizer", "lr", "weight_decay", "steps", "streams", "target_weight"}
    assert other_default == trained_otherwise
    for name in (images.keys() & features.keys()) - {"steps", "streams"}:
        assert images[name].metadata["group"] == features[name].metadata["group"]
        assert images[name].metadata["within"] == features[name].metadata["within"]


@pytest.mark.parametrize("kind", [RunConfig, FitSettings, HeadSettings])
def test_every_option_has_a_group_a_help_and_a_default_within_its_range(kind: type) -> None:
    for declared in in_groups(kind):
        about = declared.metadata
        assert about["group"] in GROUPS
        assert about["help"].endswith(".")
        if declared.default is None:
            assert about["optional"]
        elif isinstance(about["within"], Allowed):
            about["within"].check(declared.default, declared.name)


def numeric(kind: type) -> list[str]:
    hints = get_type_hints(kind)
    return [one.name for one in in_groups(kind) if {int, float} & set(kinds_of(hints[one.name]))]


OUT_OF_RANGE = (10**31, 10**400, 1e39, 1e300, float("inf"), float("nan"), -1, -0.5)


@pytest.mark.parametrize(("kind", "spell"), [(RunConfig, flag), (FitSettings, str), (HeadSettings, str)])
@pytest.mark.parametrize("value", OUT_OF_RANGE)
def test_a_number_that_no_one_can_mean_is_refused_by_name(
    kind: type, spell: Callable[[str], str], value: float
) -> None:
    for name in set(numeric(kind)) - {"channels", "source_channels"}:  # the network says which it takes
        with pytest.raises(ValueError, match=f"^{spell(name)} must be "):
            kind(**{name: value})


def test_the_largest_numbers_fit_in_float32() -> None:
    largest = FitSettings(lr=1e30, head_factor=1e6, sigma1=1e30, sigma2=1e30, seed=2**63 - 1, steps=10**7)
    assert np.isfinite(np.float32(largest.lr * largest.head_factor))
    assert torch.Generator().manual_seed(largest.seed).initial_seed() == largest.seed


@pytest.mark.parametrize("orders", [(101,), (2, 10**30), (1,), ()])
def test_orders_that_take_forever_are_refused(orders: tuple[int, ...]) -> None:
    for kind in (FitSettings, HeadSettings):
        with pytest.raises(ValueError, match="orders must"):
            kind(method="so", orders=orders)


def test_the_estimator_names_its_own_parameter() -> None:
    with pytest.raises(ValueError, match=f"random_state must be at most {2**63 - 1}, got {10**30}"):
        SoHoTClassifier(random_state=10**30).settings()


def test_a_number_of_a_file_that_no_float_holds_is_refused() -> None:
    with pytest.raises(ValueError, match="--lr must be a number"):
        RunConfig.from_values({"lr": 10**400})


@pytest.mark.parametrize("name", [*METHOD_NAMES, *OTHER_NAMES, *POOL_NAMES])
def test_a_method_looks_at_options_that_exist(name: str) -> None:
    record, of_images = method(name), set(defaults(FitSettings))
    known = of_images & set(defaults(HeadSettings))
    assert set(record.looks_at) <= set(METHOD_OPTIONS) <= known
    assert set(record.search) <= (of_images if record.needs_pool else known)
    assert not set(record.looks_at) & set(record.ignored())
    assert record.label
    assert record.sentence
