"""The configuration: from text and TOML, to TOML, to a command, and back."""

from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sohot._files import write_toml
from sohot.methods import FitSettings
from sohot.runs.config import RunConfig, known_key
from sohot.runs.description import command, read_config

# What a path may hold: no control characters but DEL and the tab, no surrogates, no NUL.
texts = st.text(st.characters(exclude_categories=["Cs", "Cc"], include_characters="\x7f\t\n"), min_size=1)


@given(texts, st.floats(0, 1e9), st.lists(st.integers(2, 9), min_size=1, unique=True), st.booleans())
def test_what_is_stored_is_what_is_read(tmp_path_factory, name, sigma2, orders, leave_out):
    config = RunConfig(source=Path("/") / name, sigma2=sigma2, orders=tuple(orders), leave_out=leave_out)
    file = tmp_path_factory.mktemp("config") / "config.toml"
    write_toml(file, config.stored(), "heading")
    assert RunConfig.from_values(read_config(file)) == config


def test_the_command_asks_for_the_configuration():
    config = RunConfig(source=Path("/a b"), sigma1=(0.1, 0.2), method="so+to", leave_out=True, steps=7)
    expected = "sohot fit --source '/a b' --leave-out --method so+to --sigma1 0.1,0.2 --steps 7 --out new"
    assert command(config, "new") == expected


def test_the_command_names_the_method_even_where_it_is_the_default():
    assert command(RunConfig(method="means", sigma1=0.5), "new") == "sohot fit --method means --sigma1 0.5 --out new"


def test_every_setting_of_training_can_be_given():
    derived = {"from_trunk"}  # follows from --cache
    assert {one.name for one in fields(FitSettings)} - derived <= {one.name for one in fields(RunConfig)}


def test_defaults_are_those_of_training():
    assert RunConfig().settings() == FitSettings()
    found = RunConfig().settings()
    assert (found.method, found.steps, found.lr, found.sigma2) == ("means", 100, 0.003, 0.1)


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("orders", "2, 3", (2, 3)),
        ("orders", [2, 3], (2, 3)),
        ("sigma1", "0.5", 0.5),
        ("sigma1", [0.1, 0.2], (0.1, 0.2)),
        ("sigma2", 1, 1.0),
        ("loggers", [], ()),
        ("source", "photos", Path("photos")),
    ],
)
def test_values_of_each_kind(name, value, read):
    assert getattr(RunConfig.from_values({name: value}), name) == read


@pytest.mark.parametrize(
    ("name", "value"),
    [("steps", True), ("steps", 1.0), ("leave_out", 1), ("method", 3), ("sigma1", "a"), ("source", "\udce9")],
)
def test_values_of_another_kind_are_refused_by_name(name, value):
    with pytest.raises(ValueError, match=f"--{name.replace('_', '-')} must be"):
        RunConfig.from_values({name: value})


def test_unknown_keys_are_refused_with_the_nearest():
    assert known_key("target-test") == "target_test"
    with pytest.raises(ValueError, match="unknown option 'stream'; did you mean 'streams'"):
        known_key("stream")
