"""Selection: the best setting is found, whoever searches and whoever is killed meanwhile."""

import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import sohot
from sohot._process import Runner
from sohot.selection import AllFailed, parse_space, select
from sohot.selection import study as study_module
from sohot.selection.held_out import HeldOut
from sohot.selection.search_space import combinations
from sohot.selection.study import Tried

TRIALS = 14
WIDE = {"x": {"low": -2.0, "high": 2.0}, "rate": {"low": 1e-4, "high": 1.0, "log": True}, "orders": [[2], [2, 3, 4]]}


def wide_score(settings: dict) -> float:
    return -((settings["x"] - 1) ** 2) - (math.log10(settings["rate"]) + 2) ** 2 + 0.5 * len(settings["orders"])


def run(score, space, folder, **options):
    """Select and list what was tried."""
    tried: list[Tried] = []
    given = {"name": "test", "trials": 30, "seed": 0, **options}
    return select(score, space, folder=folder, on_trial=tried.append, **given), tried


def test_the_best_of_a_known_function_is_found(tmp_path):
    chosen, tried = run(wide_score, WIDE, tmp_path, trials=50)
    assert chosen.trials == len(tried) == 50
    assert chosen.settings["orders"] == [2, 3, 4]
    assert chosen.score == max(one.score for one in tried) > 1.0
    assert wide_score(chosen.settings) == chosen.score


def test_the_default_is_tried_first(tmp_path):
    default = {"x": -1.5, "rate": 0.3, "orders": [3]}
    _, tried = run(wide_score, WIDE, tmp_path, trials=3, default=default)
    assert [one.number for one in tried] == [0, 1, 2]
    assert tried[0].settings == default


def test_without_a_default_the_first_choice_and_the_middle_are_tried_first(tmp_path):
    _, tried = run(wide_score, WIDE, tmp_path, trials=1)
    assert tried[0].settings == {"x": 0.0, "rate": pytest.approx(1e-2), "orders": [2]}


def test_the_seed_decides_what_is_tried(tmp_path):
    def settings(folder: str, seed: int) -> list[dict]:
        return [one.settings for one in run(wide_score, WIDE, tmp_path / folder, trials=15, seed=seed)[1]]

    one, again, other = settings("one", 1), settings("again", 1), settings("other", 2)
    assert one == again
    assert one != other


def test_more_trials_go_on_and_fewer_look_at_the_first_alone(tmp_path):
    few, tried = run(wide_score, WIDE, tmp_path, trials=5)
    _, more = run(wide_score, WIDE, tmp_path, trials=12)
    assert [one.number for one in tried + more] == list(range(12))
    assert run(wide_score, WIDE, tmp_path, trials=5) == (few, [])  # what is done is not done again


@pytest.mark.parametrize("change", [{"space": {**WIDE, "x": {"low": -2.0, "high": 3.0}}}, {"name": "b"}, {"seed": 1}])
def test_another_space_name_or_seed_is_another_study(tmp_path, change):
    run(wide_score, WIDE, tmp_path, trials=3)
    given = {"space": WIDE, "trials": 3, **change}
    space = given.pop("space")
    _, tried = run(wide_score, space, tmp_path, **given)
    assert len(tried) == 3
    assert len(list(tmp_path.glob("*.journal"))) == 2


def test_a_small_space_is_tried_as_a_whole_and_each_setting_once(tmp_path):
    space = {"a": [1, 2, 3], "b": {"low": 0, "high": 3, "int": True}}
    chosen, tried = run(lambda s: s["a"] * s["b"], space, tmp_path, trials=50, default={"a": 2, "b": 1})
    assert [one.settings for one in tried[:2]] == [{"a": 2, "b": 1}, {"a": 2, "b": 0}]
    assert sorted((one.settings["a"], one.settings["b"]) for one in tried) == [
        (a, b) for a in (1, 2, 3) for b in range(4)
    ]
    assert chosen.settings == {"a": 3, "b": 3}
    assert chosen.trials == 12


def test_a_setting_that_is_proposed_again_is_not_scored_again(tmp_path):
    seen = []
    chosen, tried = run(lambda s: seen.append(s["a"]) or -s["a"], {"a": list(range(40))}, tmp_path, trials=39)
    assert len(tried) == chosen.trials == 39
    assert len(seen) == len(set(seen))


def test_of_equal_scores_the_earlier_wins(tmp_path):
    chosen, _ = run(lambda _: 1.0, WIDE, tmp_path, trials=12, default={"x": 0.5})
    assert chosen.settings["x"] == 0.5


def test_values_come_back_as_they_were(tmp_path):
    values = [1, 1.0, True, None, "1", [2, 3], {"a": 1}]
    _, tried = run(lambda _: 0.0, {"v": values}, tmp_path)
    assert [repr(one.settings["v"]) for one in tried] == [repr(value) for value in values]


def test_failed_settings_count_but_are_not_chosen(tmp_path):
    def score(settings: dict) -> float:
        if settings["x"] < 0:
            raise ArithmeticError("the loss is no number")
        return math.nan if settings["x"] > 1 else settings["x"]

    asked = {"trials": 25, "default": {"x": -1.0}, "failures": (ArithmeticError,)}
    chosen, tried = run(score, {"x": {"low": -2.0, "high": 2.0}}, tmp_path, **asked)
    assert 0 <= chosen.settings["x"] <= 1
    assert chosen.trials == 25
    assert {one.failure for one in tried} == {None, "the loss is no number", "the score is nan"}
    assert all(one.score == -math.inf for one in tried if one.failure)
    assert run(score, {"x": {"low": -2.0, "high": 2.0}}, tmp_path, **asked) == (chosen, [])


def test_if_all_fail_it_says_why(tmp_path):
    with pytest.raises(AllFailed, match=r"^all 3 settings tried have failed; the first failure: the score is"):
        run(lambda _: math.nan, {"x": [1, 2, 3]}, tmp_path)


def test_an_error_that_is_no_failure_of_the_setting_stops_and_leaves_it_to_be_tried(tmp_path):
    with pytest.raises(FileNotFoundError, match="no images"):
        run(_no_images, {"x": [1, 2]}, tmp_path)
    assert run(lambda s: s["x"], {"x": [1, 2]}, tmp_path)[0].trials == 2


def _no_images(_: dict) -> float:
    raise FileNotFoundError("no images")


def test_a_half_written_line_is_cut_and_the_study_goes_on(tmp_path):
    run(wide_score, WIDE, tmp_path, trials=4)
    (file,) = tmp_path.glob("*.journal")
    with open(file, "ab") as stream:
        stream.write(b'{"op_code":4,"wor')
    _, tried = run(wide_score, WIDE, tmp_path, trials=6)
    assert [one.number for one in tried] == [4, 5]
    assert run(wide_score, WIDE, tmp_path, trials=6)[0].trials == 6


def test_a_damaged_file_is_named(tmp_path):
    run(wide_score, WIDE, tmp_path, trials=2)
    (file,) = tmp_path.glob("*.journal")
    file.write_bytes(b"nonsense\n" * 3)
    with pytest.raises(ValueError, match=f"^{file} is damaged .*: delete it to restart the selection$"):
        run(wide_score, WIDE, tmp_path, trials=2)


@pytest.mark.parametrize(("silent_for", "tried_again"), [(10.0, []), (100.0, [0])])
def test_a_machine_that_is_silent_for_a_minute_is_taken_for_dead(tmp_path, monkeypatch, silent_for, tried_again):
    space, pulse = parse_space({"x": [1, 2, 3]}), tmp_path / "pulse.alive"
    pulse.touch()
    os.utime(pulse, (pulse.stat().st_atime, pulse.stat().st_mtime - silent_for))
    with study_module.SharedStudy(tmp_path, "test", space, 3, 0) as elsewhere, monkeypatch.context() as patch:
        patch.setattr(elsewhere, "_me", Runner("elsewhere", 1, "1"))
        patch.setattr(elsewhere, "_signature", lambda: {"runner": vars(elsewhere._me), "pulse": pulse.name})
        elsewhere.take()
    here: list[int] = []
    with study_module.SharedStudy(tmp_path, "test", space, 3, 0) as study:
        while len(here) < 2 + len(tried_again):
            attempt = study.take()
            here.append(attempt.number)
            attempt.finish(0.0)
    assert here == [*tried_again, 1, 2]


@pytest.fixture(scope="module")
def seen(tmp_path_factory) -> dict:
    """What one worker process, which starts and kills the others, has seen."""
    if not hasattr(os, "fork"):
        pytest.skip("this system has no fork")
    worker = Path(__file__).with_name("selection_worker.py")
    paths = [str(Path(sohot.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, str(worker), str(tmp_path_factory.mktemp("selection"))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_killed_and_started_again_it_tries_the_same_and_chooses_the_same(seen):
    assert seen["deaths"] == [-signal.SIGKILL] * 3
    assert seen["resumed"] == seen["alone"]
    tried = [json.dumps(one) for one in seen["resumed_scored"]]
    assert len(tried) == TRIALS + 3  # what was being tried when the process died, once more; nothing else
    assert list(dict.fromkeys(tried)) == [json.dumps(one) for one in seen["alone_scored"]]


def test_processes_share_the_trials_and_choose_the_same(seen):
    assert seen["ends"] == [0, 0, 0]
    assert seen["together"][0] == seen["together"][1] == seen["together"][2]
    assert seen["together"][0]["trials"] == sum(seen["shares"]) == TRIALS
    assert sum(share > 0 for share in seen["shares"]) >= 2
    assert seen["left_over"] == []  # no lock, no pulse


def test_what_a_dead_process_tried_is_tried_by_another(seen):
    assert seen["orphan_ends"] == [-signal.SIGKILL, 0]
    assert seen["survivor"]["trials"] == TRIALS
    assert seen["orphan_scored"] == TRIALS + 1


def test_combinations_are_listed_up_to_a_limit():
    space = parse_space({"a": [1, 2, 3], "b": {"low": 1, "high": 4, "int": True}})
    assert len(combinations(space, 12)) == 12
    assert combinations(space, 11) is None
    assert combinations(parse_space({"a": {"low": 0.0, "high": 1.0}}), 10**9) is None


@pytest.mark.parametrize(
    ("space", "sentence"),
    [
        ({}, "the search space is empty"),
        ([1], "the search space must be a table that maps names to choices or ranges"),
        ({"a": []}, "a: the list of choices is empty"),
        ({"a": "abc"}, "a: give a list of choices or a range"),
        ({"a": 3}, "a: give a list of choices or a range"),
        ({"a": [1, 1]}, "a: the choices list 1 twice"),
        ({"a": [math.nan]}, "a: JSON cannot hold the choice nan"),
        ({"a": [object]}, "a: JSON cannot hold the choice <class 'object'>"),
        ({"a": {"low": 1}}, "a: high must be a number, got None"),
        ({"a": {"low": True, "high": 2}}, "a: low must be a number, got True"),
        ({"a": {"low": 0, "high": math.inf}}, "a: high must be a number, got inf"),
        ({"a": {"low": 2, "high": 2}}, "a: low must be below high, got 2 and 2"),
        ({"a": {"low": 0, "high": 1, "log": True}}, "a: low must be above 0 for log = true, got 0"),
        ({"a": {"low": 0, "high": 1.5, "int": True}}, "a: low and high must be whole numbers for int = true"),
        ({"a": {"low": 0, "high": 1, "log": 1}}, "a: log must be true or false, got 1"),
        ({"a": {"low": 0, "high": 1, "step": 1}}, "a: a range has low, high, log and int, not 'step'"),
    ],
)
def test_bad_spaces_are_refused(space, sentence):
    with pytest.raises((ValueError, TypeError)) as error:
        parse_space(space)
    assert str(error.value).startswith(sentence)


def test_a_default_must_lie_in_its_range():
    with pytest.raises(ValueError, match=r"^a: the default 5 must lie in the search range, 0 to 1$"):
        parse_space({"a": {"low": 0, "high": 1}}, {"a": 5})
    with pytest.raises(ValueError, match=r"^a: the default 1.5 must lie in .* 0 to 3, and be a whole number$"):
        parse_space({"a": {"low": 0, "high": 3, "int": True}}, {"a": 1.5})
    assert parse_space({"a": [1.0, 2.0]}, {"a": 2}) == parse_space({"a": [2.0, 1.0]})
    with pytest.raises(ValueError, match=r"^a: JSON cannot hold the choice"):
        parse_space({"a": [1]}, {"a": object()})


@pytest.mark.parametrize(
    ("name", "bad", "sentence"),
    [
        *[("trials", bad, "an integer of") for bad in (0, 1.5, True)],
        ("seed", -1, "an integer of"),
        ("trials", 10**12, "at most "),
        ("seed", 10**30, "at most "),
    ],
)
def test_bad_numbers_are_refused(tmp_path, name, bad, sentence):
    with pytest.raises(ValueError, match=f"^{name} must be {sentence}"):
        run(wide_score, WIDE, tmp_path, **{name: bad})


def held_out(margins):
    return HeldOut([[margin, 0.0] for margin in margins], [0] * len(margins))


def test_held_out_rows_keep_the_default_unless_another_is_clearly_better(tmp_path):
    rows = {1: [0.9, 1.0, 1.1, -0.1] * 6, 2: [1.2, 0.8, 1.3, -0.3] * 6, 3: [3.0, 3.1, 3.2, 2.9] * 6}
    given = {"folder": tmp_path, "trials": 9, "seed": 0}
    nearly = select(lambda one: held_out(rows[one["x"]]), {"x": [1, 2]}, name="nearly", **given)
    clearly = select(lambda one: held_out(rows[one["x"]]), {"x": [1, 2, 3]}, name="clearly", **given)
    assert (nearly.settings, nearly.accuracy) == ({"x": 1}, 0.75)
    assert (clearly.settings, clearly.accuracy) == ({"x": 3}, 1.0)
    again = select(lambda _: pytest.fail("known already"), {"x": [1, 2, 3]}, name="clearly", **given)
    assert again == clearly


def test_logits_that_are_not_finite_are_a_failure(tmp_path):
    rows = {1: [float("nan")] * 4, 2: [0.1] * 4}
    chosen = select(lambda one: held_out(rows[one["x"]]), {"x": [1, 2]}, name="nan", folder=tmp_path, trials=2, seed=0)
    assert chosen.settings == {"x": 2}
