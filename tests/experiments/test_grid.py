"""Grids: what comes with sohot can be read, what is written can be read back, and what is wrong is named."""

from dataclasses import replace

import pytest
from experiment_work import small_grid

from sohot.experiments import Grid, read_grid
from sohot.experiments.grid import builtin_names, write_grid
from sohot.experiments.grid_keys import parse_splits

MINIMAL = 'dataset = "office31"\n'


def test_the_papers_grids_are_built_in():
    assert {
        "office-alexnet",
        "office-vgg",
        "voc-sketch",
        "zeta-histogram",
        "rgbd-shots",
        "sigma-sensitivity",
    } == set(builtin_names())


@pytest.mark.parametrize("name", builtin_names())
def test_a_built_in_grid_reads_and_survives_being_written(name, tmp_path):
    grid = read_grid(name)
    assert grid.title
    write_grid(grid, tmp_path / "again.toml")
    assert read_grid(tmp_path / "again.toml") == grid


def test_all_parts_survive_being_written(tmp_path):
    grid = small_grid(
        title='quote " and ζ',
        vary={"sigma1": [0.1, 1.0], "orders": [[2], [2, 3]]},
        method_settings={"s+t": {"lr": 0.01}},
        shift_settings={"so": {"A-W": {"lr": 0.1, "sigma1": 1.0}, "W-A": {"lr": 0.2}}},
        space={"lr": [0.1, 0.2], "sigma1": {"low": 0.1, "high": 1.0, "log": True}},
        figures=("sigma",),
        pool=("transductive", "inductive"),
    )
    write_grid(grid, tmp_path / "grid.toml")
    assert read_grid(tmp_path / "grid.toml") == grid


def test_names_are_brought_to_one_spelling_and_repeats_are_dropped():
    grid = Grid("mine", dataset="office31", methods=("T+S", "so+zeta", "s+t"), settings={"batch-rows": 9})
    assert grid.methods == ("s+t", "so+zeta")
    assert grid.settings == {"batch_rows": 9}
    assert grid.pool == ("supervised",)


def test_a_pool_is_a_word_or_a_list_of_words(tmp_path):
    for text in ('"inductive"', '["inductive", "inductive"]'):
        (tmp_path / "grid.toml").write_text(f"{MINIMAL}pool = {text}\n")
        assert read_grid(tmp_path / "grid.toml").pool == ("inductive",)


def test_what_is_set_wins_over_everything():
    grid = small_grid(vary={"sigma1": [1, 2], "lr": [0.1]}, method_settings={"so": {"sigma1": 5, "steps": 9}})
    grid = replace(grid, shift_settings={"so": {"A-W": {"sigma1": 7, "lr": 0.2}}})
    changed = grid.changed({"sigma1": "0.5"}, methods=("so",), splits=None)
    assert changed.settings["sigma1"] == 0.5
    assert (dict(changed.vary), changed.methods, changed.splits) == ({"lr": [0.1]}, ("so",), grid.splits)
    assert changed.method_settings == {"so": {"steps": 9}}
    assert changed.shift_settings == {"so": {"A-W": {"lr": 0.2}}}


@pytest.mark.parametrize("text", ["x", "1-2-3", "", "1,,x", "0", "3-1", "1" + "0" * 12, "1-1" + "0" * 12])
def test_splits_that_make_no_sense_are_refused(text):
    with pytest.raises(ValueError, match="splits must"):
        parse_splits(text)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("dataset = [", "is not TOML"),
        ("title = 'x'", "'dataset' is missing"),
        ("dataset = 'ofice31'", "dataset must be one of"),
        (MINIMAL + "metods = ['so']", "unknown key 'metods'; did you mean 'methods'"),
        (MINIMAL + "methods = ['soo']", "method must be one of"),
        (MINIMAL + "methods = []", "methods must name at least one"),
        (MINIMAL + "methods = 'so'", "methods must be a list of strings"),
        (MINIMAL + "protocol = 'papr'", "protocol must be one of"),
        (MINIMAL + "figures = ['pie']", "each of figures must be one of"),
        (MINIMAL + "settings = 3", "settings must be a table"),
        (MINIMAL + "splits = 2.5", "splits must be"),
        (MINIMAL + "splits = 1000000000000", "splits must be at most 100000, got 1000000000000"),
        (MINIMAL + "splits = [1, 10000000000]", "each of splits must be below 2147483648"),
        (MINIMAL + "[settings]\ntarget_shots = 10000000000", "target_shots must be below 2147483648"),
        (MINIMAL + "[settings]\nsigma_1 = 3", "settings: unknown setting 'sigma_1'; did you mean 'sigma1'"),
        (MINIMAL + "[settings]\nlr = 'fast'", "--lr must be a number, got 'fast'"),
        (MINIMAL + "[settings]\nbackbone = 'lite0'", "is not a setting but a key of the grid"),
        (MINIMAL + "[settings]\ndevice = 'cpu'", "unknown setting 'device'"),
        (MINIMAL + "[settings]\nsource_shots = 2", "unknown setting 'source_shots'"),  # the paper's are fixed
        (MINIMAL + "[settings]\ntarget_shots = 'x'", "target_shots must be an integer"),
        (MINIMAL + "pool = 3", 'pool must be a string such as "inductive", or a list of them, got 3'),
        (MINIMAL + "pool = ['half']", "pool must be one of 'supervised', 'transductive', 'inductive', got 'half'"),
        (MINIMAL + "pool = []", "pool must name at least one"),
        (MINIMAL + "protocol = 'inductive'", "give 'inductive' as pool"),
        (MINIMAL + "[settings]\npool = 'inductive'", "settings: 'pool' is not a setting but a key of the grid"),
        (MINIMAL + "[vary]\nsigma1 = 3", "vary.sigma1 must be a list"),
        (MINIMAL + "[vary]\nsigma1 = []", "vary.sigma1 must be a list"),
        (MINIMAL + "[space]\ntarget_shots = [3]", "space: unknown setting 'target_shots'"),
        (MINIMAL + "[space]\nlr = { low = 1, hihg = 2 }", "did you mean 'high'"),
        (MINIMAL + "[method.sooo]\nlr = 1", "method must be one of"),
        (MINIMAL + "baseline = 'sooo'", "method must be one of"),
        (MINIMAL + "baseline = 'auto'", "'auto' is for `sohot fit`"),
        (MINIMAL + "baseline = 1", "baseline must be a string"),
        (MINIMAL + "[method]\nso = 1", 'method."so" must be a table'),
        (MINIMAL + "[method.so]\nshift = 1", "must hold a table per shift"),
        (MINIMAL + "[method.so.shift]\nlr = 1", "must hold a table per shift"),
        (MINIMAL + '[method.so.shift]\n"A-W" = { sigma_1 = 1 }', 'method."so".shift."A-W": unknown setting'),
    ],
)
def test_what_is_wrong_in_a_file_is_named_with_the_file(tmp_path, text, sentence):
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"mine\.toml") as error:
        read_grid(file)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_a_name_that_is_not_there_gets_the_nearest(tmp_path):
    with pytest.raises(ValueError, match="did you mean 'office-vgg'"):
        read_grid("ofice-vgg")
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        read_grid(tmp_path / "none.toml")


def test_a_range_that_is_none_is_refused_with_the_grid():
    with pytest.raises(ValueError, match="low"):
        Grid("mine", dataset="domains", space={"lr": {"low": 1.0, "high": 0.1}})
