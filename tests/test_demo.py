import json
import os
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from sohot.demo import METHODS, DemoProgress, describe, run_demo
from sohot.experiments.demo_result import DemoResult, DemoSettings, SplitAccuracies, read_demo
from sohot.experiments.digit_splits import content_hash, draw_split
from sohot.methods import OTHER_NAMES, method

PICTURES = ["samples.png", "scatters.png", "zeta.png"]


def run_tiny(out: Path, methods=("s+t", "so+zeta"), **options):
    return run_demo(out, **{"splits": 1, "methods": methods, "steps": 2, **options})


class Tiny(NamedTuple):
    result: DemoResult
    told: list[DemoProgress]
    folder: Path


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    """All methods of the demo on one split, two steps each."""
    folder, told = tmp_path_factory.mktemp("demo") / "new" / "folder", []
    return Tiny(run_tiny(folder, methods=None, on_progress=told.append), told, folder)


def test_the_result_has_its_form_and_fits_into_json(tiny: Tiny) -> None:
    result = tiny.result.as_json()
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert set(result) == {"methods", "seconds", "pictures"}
    assert tuple(result["methods"]) == METHODS == ("s", "t", "s+t", "m", "means", "so", "so+zeta", "so+to+fo+zeta")
    for values in result["methods"].values():
        assert set(values) == {"mean", "std", "splits"}
        assert values["splits"] == [values["mean"]]
        assert values["std"] == 0
        assert 0 <= values["mean"] <= 100


def test_progress_is_told_after_each_network(tiny: Tiny) -> None:
    assert [one.method for one in tiny.told] == list(METHODS)
    assert [(one.done, one.total, one.split) for one in tiny.told] == [(done, 8, 0) for done in range(1, 9)]
    assert [one.accuracy for one in tiny.told] == [values.mean for values in tiny.result.methods.values()]


def test_pictures_are_whole_png_files_with_nothing_beside_them_but_the_result(tiny: Tiny) -> None:
    files = [Path(file) for file in tiny.result.pictures]
    assert [file.name for file in files] == PICTURES
    assert sorted(os.listdir(tiny.folder)) == ["demo.json", *PICTURES]
    assert all(file.read_bytes().startswith(b"\x89PNG") and b"IEND" in file.read_bytes()[-12:] for file in files)


def test_the_result_is_kept_with_curves_and_class_weights(tiny: Tiny) -> None:
    kept = read_demo(tiny.folder)
    assert kept.result.methods == tiny.result.methods
    assert kept.result.pictures == PICTURES
    assert kept.settings == DemoSettings(splits=1, seed=0, steps=2, shots=3, source_per_class=100)
    first = kept.first_split
    assert list(first) == list(METHODS)
    assert all(one.curve["step"] == [1, 2] and len(one.curve["loss"]) == 2 for one in first.values())
    assert {name for name, one in first.items() if one.zeta} == {"so+zeta", "so+to+fo+zeta"}
    assert {name: len(values) for name, values in first["so+to+fo+zeta"].zeta.items()} == {
        "means": 10,
        "order2": 10,
        "order3": 10,
        "order4": 10,
    }
    assert str(tiny.folder) not in (tiny.folder / "demo.json").read_text()


def test_the_command_is_kept_where_one_repeats_the_demo(tiny: Tiny, tmp_path: Path, monkeypatch) -> None:
    assert read_demo(tiny.folder).command is None  # the steps are no option of the command
    monkeypatch.setattr("sohot.experiments.demo_result.STEPS", 2)
    run_tiny(tmp_path / "demo", methods=["t"], seed=3)
    command = read_demo(tmp_path / "demo").command
    assert command == f"sohot demo --splits 1 --seed 3 --methods t --out {tmp_path / 'demo'}-again"


def test_the_same_seed_gives_the_same_result_whatever_runs_beside_and_before(tiny: Tiny, tmp_path: Path) -> None:
    torch.manual_seed(123)
    again = run_tiny(tmp_path / "again", methods=["so+zeta", "t"]).methods
    assert again == {name: tiny.result.methods[name] for name in ("so+zeta", "t")}
    assert (tmp_path / "again" / "samples.png").read_bytes() == (tiny.folder / "samples.png").read_bytes()
    assert run_tiny(tmp_path / "other", methods=["t"], seed=5).methods["t"] != again["t"]


def test_without_learned_weights_there_is_no_picture_of_them(tmp_path: Path) -> None:
    assert [Path(file).name for file in run_tiny(tmp_path, methods=["t"]).pictures] == PICTURES[:2]


def test_other_methods_are_compared_where_they_are_named(tmp_path: Path) -> None:
    assert set(OTHER_NAMES) & set(METHODS) == {"means"}  # which is the default of `sohot fit`
    result = run_tiny(tmp_path, methods=["s+t", *OTHER_NAMES])
    assert tuple(result.methods) == ("s+t", *OTHER_NAMES)
    text = describe(result)
    assert all(method(name).label in text for name in OTHER_NAMES)


def test_mean_and_std_are_those_of_the_splits(tmp_path: Path) -> None:
    values = run_tiny(tmp_path, methods=["t"], splits=3).methods["t"]
    splits = torch.tensor(values.splits, dtype=torch.float64)
    assert len(set(values.splits)) > 1
    assert values.mean == pytest.approx(splits.mean().item())
    assert values.std == pytest.approx(splits.std(correction=0).item())


def test_no_test_image_is_ever_trained_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sohot.experiments import digit_training

    trained: set[bytes] = set()
    tested: set[bytes] = set()
    real_fit, real_predict = digit_training.fit, digit_training.predict_logits

    def spy_fit(model, source, source_labels, target, *rest, **options):
        trained.update(content_hash((image + 1) / 2) for image in target.tensor)
        return real_fit(model, source, source_labels, target, *rest, **options)

    def spy_predict(model, inputs):
        tested.update(content_hash((image + 1) / 2) for image in inputs.tensor)
        return real_predict(model, inputs)

    monkeypatch.setattr(digit_training, "fit", spy_fit)
    monkeypatch.setattr(digit_training, "predict_logits", spy_predict)
    run_tiny(tmp_path, methods=["s+t"])
    assert (len(trained), len(tested)) == (30, 841)
    assert not trained & tested
    development = draw_split(0, half="development")
    assert not (trained | tested) & {content_hash(i) for i in torch.cat([development.target, development.test])}


def test_the_number_of_threads_is_left_as_it_was(tmp_path: Path) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        run_tiny(tmp_path, methods=["t"])
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"splits": 0}, "splits must be an integer of at least 1, got 0"),
        ({"splits": 2.5}, "splits must be an integer"),
        ({"seed": -1}, "seed must be an integer of at least 0, got -1"),
        ({"steps": True}, "steps must be an integer of at least 1, got True"),
        ({"methods": []}, "methods is empty"),
        ({"methods": ["so", "S+T", "t+s"]}, "methods names s\\+t more than once"),
        ({"methods": ["magic"]}, "method must be one of .* got 'magic'"),
        ({"methods": "so"}, "methods must be a list of names, got the string 'so'"),
    ],
)
def test_bad_arguments_are_named_before_anything_is_made(tmp_path: Path, options, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        run_tiny(tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_a_file_in_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match=r"out must be a folder, but .*file is a file"):
        run_tiny(tmp_path / "file")
    with pytest.raises(NotADirectoryError, match=r"out cannot be created: .*file.deeper"):
        run_tiny(tmp_path / "file" / "deeper")


RESULT = DemoResult(
    {"s+t": SplitAccuracies(80.0, 2.0, [78.0, 82.0]), "so": SplitAccuracies(81.5, 1.5, [83.0, 80.0])},
    seconds=61.4,
    pictures=["demo/samples.png"],
)


def test_the_text_compares_split_by_split_and_says_what_is_next() -> None:
    text = describe(RESULT)
    assert "80.0 ± 2.0" in text
    assert "+1.5 ± 3.5, better in 1 of 2 splits, p 0.742" in text
    for part in (
        "61 s",
        "demo/samples.png",
        "sohot fit --source DIR --target DIR --shots 3",
        "sohot demo --json",
        "sohot report demo",
    ):
        assert part in text
    assert "from sohot import ScatterAlignment" in text
    assert max(map(len, text.splitlines())) <= 110
