"""Reports as text: what they say, what they never do, and that half a folder is enough."""

import json
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
import torch
from made_up_results import CLASSES, EVIL_CLASS, EVIL_ERROR, EVIL_FILE, make_experiment, make_run, result
from PIL import Image
from safetensors.torch import save

from sohot.demo import run_demo
from sohot.experiments import Store
from sohot.experiments.cell import Cell
from sohot.experiments.grid import write_grid
from sohot.experiments.result import ChosenSettings
from sohot.methods import METHOD_NAMES, OTHER_NAMES, POOL_NAMES
from sohot.reporting import write_outputs
from sohot.reporting.figures.canvas import plain
from sohot.reporting.figures.curves import lines_figure
from sohot.reporting.pages import render, write_report
from sohot.reporting.pages.blocks import Chart, Number, Page, Section, Table, Words, embed_pictures
from sohot.reporting.pages.confusion import class_sections
from sohot.reporting.pages.experiment_page import load_experiments
from sohot.reporting.pages.run_page import run_page
from sohot.reporting.pages.run_pictures import Sample, choose_samples
from sohot.reporting.pages.words import accuracy_in_words, difference_in_words, method_in_words
from sohot.reporting.statistics import paired_difference
from sohot.training import Evaluation, evaluate


class Seen(HTMLParser):
    """What a browser would make of a page: its elements, their attributes, its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.source = text
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._inside = tag

    def handle_endtag(self, tag):
        if tag == self._inside:
            self._inside = ""

    def handle_data(self, data):
        if not self._inside:
            self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def read(file: Path) -> Seen:
    return Seen(file.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def run_report(run: Path) -> Seen:
    return read(write_report(run))


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_experiment(tmp_path_factory.mktemp("experiment") / "out", published="office-alexnet")


@pytest.fixture(scope="module")
def experiment_report(experiment: Path) -> Seen:
    return read(write_report(experiment))


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    run_demo(folder, splits=2, steps=2, methods=["s+t", "so+zeta"])
    return folder


@pytest.mark.parametrize("kind", ["run", "experiment"])
def test_nothing_is_loaded_and_no_name_becomes_an_element(kind: str, request: pytest.FixtureRequest) -> None:
    seen: Seen = request.getfixturevalue(f"{kind}_report")
    for _, attributes in seen.elements:
        assert not any(name.startswith("on") for name in attributes)
        for name in ("src", "href", "xlink:href", "action", "srcset", "data"):
            assert (attributes.get(name) or "#").startswith(("data:", "#"))
    assert len(seen.named("script")) == 1
    assert len(seen.named("svg")) > 3
    assert not [one for one in seen.named("img") if one.get("src") == "x"]
    assert not {"iframe", "object", "embed", "form", "base"} & {name for name, _ in seen.elements}


def test_the_policy_lets_nothing_in_but_what_the_page_brings(run_report: Seen) -> None:
    policy = next(one["content"] for one in run_report.named("meta") if one.get("http-equiv"))
    assert policy.startswith("default-src 'none'")
    script = re.search(r"script-src ([^;]*)", policy).group(1)
    assert re.fullmatch(r"'sha256-[A-Za-z0-9+/=]+'", script)
    assert "http" not in policy


def test_a_run_tells_what_was_trained_how_well_and_how_to_repeat_it(run: Path, run_report: Seen) -> None:
    text, report = run_report.text, json.loads((run / "report.json").read_text())
    assert "A classifier of 3 classes with small-cnn" in text
    assert "18 labelled images of the source (source) and 6 labelled images of the target (target)" in text
    assert f"{100 * report['accuracy']['micro']:.1f} %" in text
    assert "95 % interval" in text
    assert report["command"] in text
    titles = [
        heading for heading in ("Accuracy by class", "Mistakes", "Samples", "Features", "Training") if heading in text
    ]
    assert len(titles) == 5
    for words in ("Learned class weights", "Configuration", "version of torch", "weight decay"):
        assert words in text
    levels = [int(name[1]) for name, _ in run_report.elements if re.fullmatch(r"h\d", name)]
    assert levels[0] == 1
    assert set(levels[1:]) == {2}


def test_samples_are_small_pictures_with_words_for_them(run_report: Seen) -> None:
    pictures = run_report.named("img")
    assert pictures
    assert all(one["src"].startswith("data:image/jpeg;base64,") and one["alt"] for one in pictures)
    assert EVIL_CLASS in run_report.text
    assert any(EVIL_FILE in one["alt"] for one in pictures)  # all 18 test images are shown


def test_test_images_that_are_gone_are_not_shown_but_features_are(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    split = tmp_path / "run" / "split.json"
    split.write_text(split.read_text().replace(str(run.parent), str(tmp_path / "gone")))
    seen = read(write_report(tmp_path / "run"))
    assert "18 of 18 test images can no longer be found. Samples are not shown." in seen.text
    assert not seen.named("img")
    assert "t-SNE" in seen.text
    assert "Accuracy by class" in seen.text
    assert "Samples" not in read(write_report(tmp_path / "run", images=0)).text


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("split.json", b"{", "is not JSON"),
        ("split.json", b'{"format": 1}', "is damaged"),
        ("test_outputs.safetensors", b"no", "is damaged"),
        ("test_outputs.safetensors", save({"logits": torch.zeros(3, 3)}), "belong to other images"),
    ],
)
def test_damaged_files_of_a_run_are_named(run: Path, tmp_path: Path, file: str, content: bytes, words: str) -> None:
    shutil.copytree(run, tmp_path / "run")
    (tmp_path / "run" / file).write_bytes(content)
    text = read(write_report(tmp_path / "run")).text
    assert re.search(f"Samples and features cannot be shown: .*{words}", text)
    assert "Accuracy by class" in text


def forget_outputs(run: Path) -> Path:
    """Make a run look as if it had been stopped before its test."""
    for name in ("split.json", "test_outputs.safetensors", "predictions.csv"):
        (run / name).unlink()
    return run


def test_a_run_that_stored_no_outputs_is_shown_the_same(run: Path, run_report: Seen, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    stages: list[str] = []
    file = write_report(forget_outputs(tmp_path / "run"), progress=lambda stage, *_: stages.append(stage))
    seen = read(file)
    assert "testing" in stages
    assert {one["alt"] for one in seen.named("img")} == {one["alt"] for one in run_report.named("img")}
    of = re.compile(r"of \d+ images of all classes")
    assert of.search(seen.text).group() == of.search(run_report.text).group()
    config = tmp_path / "run" / "config.toml"
    config.write_text(config.read_text().replace(str(run.parent), str(tmp_path / "gone")))
    seen = read(write_report(tmp_path / "run"))
    assert "The images of the run can no longer be found" in seen.text
    assert not seen.named("img")


def test_changed_images_are_not_shown_as_unseen(tmp_path: Path) -> None:
    run = forget_outputs(make_run(tmp_path))
    (tmp_path / "source" / "mug" / "0.png").rename(tmp_path / "source" / "mug" / "new.png")
    assert "The source images have changed since the run" in read(write_report(run)).text


def test_labelled_shots_are_marked_and_legends_have_the_order_of_the_classes(run: Path) -> None:
    features = next(one for one in run_page(run, 4).sections if one.title == "Features")
    charts = [block for block in features.blocks if isinstance(block, Chart)]
    assert [chart.title for chart in charts] == ["PCA", "t-SNE"]
    for chart in charts:
        legend = [text.get_text() for text in chart.figure.legends[0].get_texts()]
        assert legend == [
            *(plain(name, 22) for name in sorted(CLASSES)),
            *("source, trained on", "target, unseen", "target, trained on"),
        ]
        for axes in chart.figure.axes:
            marks = [(line.get_marker(), len(line.get_xdata())) for line in axes.lines if len(line.get_xdata())]
            assert [rows for mark, rows in marks if mark == "*"] == [2, 2, 2]  # the shots
            assert sum(rows for mark, rows in marks if mark == "o") == 18  # all source images


def test_a_class_table_has_precision_and_f1_and_the_summary_says_where_it_fails(run: Path, run_report: Seen) -> None:
    found = json.loads((run / "report.json").read_text())["accuracy"]
    confusion, names = found["confusion"], list(found["per_class"])
    taken = [sum(row[place] for row in confusion) for place in range(len(names))]
    rows = class_sections(Evaluation.from_json(found))[0].blocks[0].rows
    for place, row in enumerate(rows):
        right, of = confusion[place][place], sum(confusion[place])
        shares = [right / of, right / taken[place] if taken[place] else None, 2 * right / (of + taken[place])]
        assert [cell.value for cell in (row[1], row[3], row[4])] == [one and 100 * one for one in shares]
    mistakes = Evaluation.from_json(found).mistakes()
    assert mistakes
    assert f"It {mistakes[0]}" in run_report.text


def test_a_class_that_is_never_predicted_has_no_precision() -> None:
    never = evaluate(torch.eye(2)[[0, 0]], torch.tensor([0, 1]), ["a", "b"])
    rows = class_sections(never)[0].blocks[0].rows
    assert [cell.text for cell in (rows[1][1], rows[1][3], rows[1][4])] == ["0.0", "–", "0.0"]
    assert "It takes 1 of 1 b for a." in accuracy_in_words(never, 2)[0]
    perfect = evaluate(torch.eye(2), torch.tensor([0, 1]), ["a", "b"])
    assert accuracy_in_words(perfect, 2)[0].endswith("It made no mistakes.")


def test_a_run_under_way_says_so(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    for name in ("report.json", "log.csv"):
        (tmp_path / "run" / name).unlink()
    text = read(write_report(tmp_path / "run", images=0)).text
    assert "not finished: trained, 6 steps, but not tested" in text
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    assert "0 of 6 steps done" in read(write_report(tmp_path / "run")).text


def test_nothing_to_test_on(tmp_path: Path) -> None:
    seen = read(write_report(make_run(tmp_path, shots=None, method="s+t")))
    assert "No target images were left for testing" in seen.text
    assert "Learned class weights" not in seen.text
    assert "Features" in seen.text


def test_a_demo_is_told_with_its_pictures(demo: Path) -> None:
    seen = read(write_report(demo, demo / "page.html"))
    assert (demo / "page.html").is_file()
    assert [one["src"][:14] for one in seen.named("img")] == ["data:image/png"] * 3
    for words in ("From printed to handwritten digits", "so+zeta", "Learned weights of each digit", "Every split"):
        assert words in seen.text
    assert "no command repeats it" in seen.text  # two steps are no option of the command


def test_a_demo_whose_pictures_are_gone_or_whose_file_is_damaged(demo: Path, tmp_path: Path) -> None:
    shutil.copytree(demo, tmp_path / "demo")
    (tmp_path / "demo" / "zeta.png").unlink()
    assert "zeta.png" in read(write_report(tmp_path / "demo")).text
    kept = json.loads((demo / "demo.json").read_text())
    for content, words in (
        ("{", "is damaged"),
        ("[]", "format 1"),
        ('{"format": 1}', "is damaged"),
        ('{"format": 2}', "format 1"),
        (json.dumps({**kept, "methods": {}}), "no method"),
        (json.dumps({**kept, "methods": {"so": {"mean": "high", "std": 0, "splits": [1]}}}), "high"),
        (json.dumps({**kept, "settings": {"splits": 2}}), "missing"),
    ):
        (tmp_path / "demo" / "demo.json").write_text(content)
        with pytest.raises(ValueError, match=f"demo.json.*{words}"):
            write_report(tmp_path / "demo")


def test_an_experiment_says_what_is_more_than_chance(experiment_report: Seen) -> None:
    text = experiment_report.text
    assert re.search(r"so is better than s\+t: \+\d\.\d points over 4 splits, 95 % interval", text)
    assert "not distinguishable" in text  # so+zeta
    assert "no interval or p here is corrected for that" in text
    assert "published" in text
    assert "AlexNet" in text
    assert EVIL_ERROR in text
    assert "--retry" in text
    assert "sohot experiment" in text


def test_experiments_that_have_hardly_begun(tmp_path: Path) -> None:
    every = [
        (method, shift, split) for method in ("s+t", "so", "so+zeta") for shift in ("A-W", "W-A") for split in (1, 2, 3)
    ]
    empty = make_experiment(tmp_path / "empty", splits=3, skip=frozenset(every))
    text = read(write_report(empty)).text
    assert "Nothing can be compared yet" in text
    assert "0 of 18 cells are done" in text
    one = make_experiment(tmp_path / "one", splits=3, skip=frozenset(every[1:]))
    text = read(write_report(one)).text
    assert "1 of 18 cells are done" in text
    assert "1 accuracy by shift" in text
    assert "± 0.0" not in text  # one split has no spread
    pair = make_experiment(tmp_path / "pair", splits=1, shifts=("A-W",), methods=("s+t", "so"))
    assert "not enough to rule out chance" in read(write_report(pair)).text
    assert "There is no s+t to compare" in read(write_report(make_experiment(tmp_path / "lone", methods=("so",)))).text


def test_a_narrower_grid_in_the_same_folder_leaves_no_stale_figures(tmp_path: Path) -> None:
    out = make_experiment(tmp_path / "out", splits=1, figures=("curves",), methods=("s+t", "so"))
    wide = load_experiments(out)[0]
    write_outputs(wide.records, wide.grid, out)
    Image.new("RGB", (8, 8)).save(out / "figures" / "curves-mine.png")
    drawn = {file.name for file in (out / "figures").iterdir()}
    assert "curves-W-A.png" in drawn
    grid = replace(wide.grid, shifts=("A-W",), methods=("s+t",))
    write_grid(grid, out / "grid.toml")  # as the narrower experiment does before its first cell
    assert "W-A" not in read(write_report(out)).text
    write_outputs([one for one in wide.records if one.cell.shift == "A-W"], grid, out)
    left = {file.name for file in (out / "figures").iterdir()}
    assert left == {name for name in drawn if "W-A" not in name}
    assert "curves-mine.png" in left  # not ours
    write_outputs(wide.records, replace(grid, figures=()), out)
    assert {file.name for file in (out / "figures").iterdir()} == {"curves-mine.png", ".written.json"}


@pytest.mark.parametrize("content", ["{", "7", '["../table.csv", "table.csv", 3]'])
def test_a_damaged_list_of_figures_removes_nothing_else(tmp_path: Path, content: str) -> None:
    out = make_experiment(tmp_path / "out", splits=1, figures=(), methods=("s+t",))
    (out / "figures").mkdir()
    (out / "figures" / ".written.json").write_text(content)
    (out / "figures" / "table.csv").touch()
    experiment = load_experiments(out)[0]
    write_outputs(experiment.records, experiment.grid, out)
    assert (out / "table.csv").is_file()
    assert (out / "figures" / "table.csv").is_file()


def test_pages_are_small_and_the_same_for_the_same_folder(run: Path, experiment: Path, tmp_path: Path) -> None:
    for folder in (run, experiment):
        page = write_report(folder).read_bytes()
        assert len(page) < 500_000
        assert write_report(folder, tmp_path / "again.html").read_bytes() == page


def test_names_stay_text_wherever_they_stand() -> None:
    evil = "</script></svg><script>alert(1)</script><!--"
    charts = [Chart(lines_figure({evil: ([1, 2], [1, 2]), "b": ([1], [1])}, evil), evil, evil) for _ in range(2)]
    page = Page(evil, "run", [evil], [], [Section(evil, [Words(evil), Table(evil, [evil], [[evil]]), *charts])])
    seen = Seen(render(page))
    assert len(seen.named("script")) == 1
    assert len(seen.named("svg")) == 2
    assert seen.text.count(evil) >= 12


def test_columns_of_numbers_carry_their_values() -> None:
    rows = [["a", Number("9.5 ± 1", 9.5)], ["b", Number("–", None)]]
    text = render(Page("t", "run", [], [], [Section("s", [Table("c", ["name", "value"], rows)])]))
    assert 'data-value="9.5"' in text
    assert 'data-value=""' in text


@pytest.mark.parametrize(("most", "wrong", "right"), [(4, 2, 2), (10, 3, 7), (0, 0, 0), (12, 3, 9)])
def test_half_of_the_samples_are_wrong_ones_if_there_are_as_many(most: int, wrong: int, right: int) -> None:
    samples = [Sample(row, "mug", "mug" if row % 4 else "pen", 0.5) for row in range(12)]
    chosen = choose_samples(samples, most)
    assert [sum(not one.right for one in chosen), sum(one.right for one in chosen)] == [wrong, right]
    assert len({one.row for one in chosen}) == len(chosen)


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (-0.5, 1.5, "not distinguishable"),
        (0.0, 1.0, "not distinguishable"),
        (0.1, 0.9, "so is better"),
        (-0.9, -0.1, "so is worse"),
    ],
)
def test_an_interval_that_holds_zero_is_no_difference(low: float, high: float, words: str) -> None:
    difference = paired_difference({1: 81.0, 2: 82.0}, {1: 80.0, 2: 80.0})
    difference = replace(difference, mean=(low + high) / 2, low=low, high=high, p_t=0.03, pairs=6)
    assert words in difference_in_words("so", "s+t", difference)


def test_bad_arguments_are_named(run: Path, tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="out must be a file"):
        write_report(run, tmp_path)
    with pytest.raises(ValueError, match="images must be an integer of at least 0, got -1"):
        write_report(run, images=-1)


def test_what_is_varied_is_drawn_and_counted(tmp_path: Path) -> None:
    folder = make_experiment(tmp_path / "out", splits=2, vary={"sigma1": [0.01, 0.1, 1.0]}, methods=("s+t", "so"))
    experiment = load_experiments(folder)[0]
    assert experiment.progress() == (8, 0, 2 * 2 * (1 + 3))  # s+t ignores sigma1
    assert "8 of 16 cells are done" in read(write_report(folder)).text
    values, shifts = (0.01, 1.0), ("A-W", "W-A")
    cells = [Cell("office31", shift, 1, "so", "lite0", settings={"sigma1": one}) for one in values for shift in shifts]
    with Store(folder) as store:
        store.plan([*(record.cell for record in store.records()), *cells])
        for cell in cells:
            store.finish(cell, replace(result(160, "so"), chosen=ChosenSettings({"lr": 0.1}, 0.5, 4)))
    text = read(write_report(folder)).text
    assert "Accuracy against sigma1" in text
    assert "lr = 0.1" in text


def test_the_cost_of_the_kernel_form_is_told(tmp_path: Path) -> None:
    rows = [
        {"order": 2, "features": size, "stated": None, "formula": size / 8, "measured": size / 9, "gram_seconds": 1e-3}
        | {"explicit_seconds": 1e-3 * size / 9}
        for size in (64, 128)
    ]
    formula = {"order": 2, "features": 4096, "stated": 52, "formula": 52.3, "measured": None}
    rows.append({**formula, "gram_seconds": None, "explicit_seconds": None})
    content = {"name": "complexity", "title": "Costs", "source": 20, "target": 3, "rows": rows}
    content |= {"dtype": "float32", "rounds": 3, "versions": {"torch": "2.13.0"}}
    (tmp_path / "table.json").write_text(json.dumps(content))
    text = read(write_report(tmp_path)).text
    assert "14 ×" in text
    assert "sohot experiment complexity" in text
    (tmp_path / "table.json").write_text("{")
    with pytest.raises(ValueError, match=r"table\.json is damaged"):
        write_report(tmp_path)


def test_no_id_stands_twice(tmp_path):
    page = write_report(make_experiment(tmp_path / "experiment")).read_text(encoding="utf-8")
    ids = [found for _, attributes in Seen(page).elements if (found := attributes.get("id"))]
    assert "splits" in ids
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("name", [*METHOD_NAMES, *OTHER_NAMES, *POOL_NAMES])
def test_every_method_can_be_said_in_words(name):
    assert "trained on" in method_in_words(name)


def test_links_and_broken_files_are_no_figures(tmp_path):
    figures = tmp_path / "figures"
    figures.mkdir()
    Image.new("RGB", (4, 4)).save(figures / "good.png")
    (tmp_path / "private").write_bytes((figures / "good.png").read_bytes())
    (figures / "link.png").symlink_to(tmp_path / "private")
    (figures / "broken.png").write_bytes(b"secret")
    (tmp_path / "linked").symlink_to(figures)
    pictures, left_out = embed_pictures({file: file.stem for file in sorted(figures.iterdir())})
    assert [picture.alt for picture in pictures] == ["good"]
    assert left_out == ["broken.png", "link.png"]
    assert embed_pictures({tmp_path / "linked" / "good.png": "good"})[0] == []
