"""The configuration: from text and TOML, to TOML, to a command, and back."""

from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sohot._files import write_toml
from sohot.methods import FitSettings
from sohot.runs import RunConfig, read_config
from sohot.runs.config import known_key
from sohot.runs.description import command

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


@pytest.mark.parametrize("kind", [RunConfig, FitSettings])
@pytest.mark.parametrize("value", [object(), [object()], {"a": 1}, b"x", 1.5, True, [[1]], None, float("nan"), "x"])
def test_whatever_a_field_is_given_it_ends_in_a_sentence(kind, value):
    spelt = [one.name.replace("_", "-") if kind is RunConfig else one.name for one in fields(kind)]
    for one, name in zip(fields(kind), spelt, strict=True):
        try:
            kind(**{one.name: value})
        except (TypeError, ValueError) as error:
            sentence = str(error)
        else:
            continue
        assert name in sentence.split(" must ")[0], sentence


def test_paths_may_be_text():
    config = RunConfig(source="photos", out="run")
    assert (config.source, config.out) == (Path("photos"), Path("run"))
    assert config == RunConfig(source=["photos"], out=Path("run"))
    assert RunConfig(source=["photos", Path("art")]).sources() == (Path("photos"), Path("art"))
    assert (
        command(RunConfig(source=["/a", "/b"]), "new") == "sohot fit --source /a --source /b --method means --out new"
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "--source is missing: give a folder"),
        ({"method": "t"}, "--target is missing: give a folder"),
        ({"method": "auto", "target": "."}, "--source is missing"),
        ({"source": ["gone", "."]}, "--source gone: there is no such folder"),
        ({"source": __file__}, "--source .*: it is not a folder"),
        ({"source": ".", "target": ".", "target_test": "gone"}, "--target-test gone: there is no such folder"),
        ({"source": ".", "target": ".", "weights": "."}, "--weights .: it is not a file"),
        ({"split": "gone.json"}, "--split gone.json: there is no such file"),
    ],
)
def test_missing_places_are_named(options, words):
    with pytest.raises((ValueError, FileNotFoundError), match=words):
        RunConfig(out="run", **options).require_places()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("method", "meens", "auto, paper or another sum of so, to, fo and zeta, got 'meens'; did you mean 'means'?"),
        ("method", "Papr", "did you mean 'paper'?"),
        ("backbone", "resnet", "--backbone must be one of lite0, .* did you mean 'resnet50'?"),
        ("source_backbone", "vgg-16", "--source-backbone must be one of lite0, .* did you mean 'vgg16'?"),
        ("optimizer", "adam", "did you mean 'adamw'?"),
    ],
)
def test_a_misspelt_choice_is_guessed(name, value, words):
    with pytest.raises(ValueError, match=words.replace("?", r"\?")):
        RunConfig(**{name: value})


def test_unknown_keys_are_refused_with_the_nearest():
    assert known_key("target-test") == "target_test"
    with pytest.raises(ValueError, match="unknown option 'stream'; did you mean 'streams'"):
        known_key("stream")
