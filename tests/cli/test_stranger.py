"""A stranger's folder in all its forms: no command runs its code, or reads and writes where it points."""

import json
import os
import shutil
from pathlib import Path

import pytest
from command_line import Domains, make_domains, newest

from sohot._files import sealed
from sohot.cli import main
from sohot.data.protocols.split import fingerprint_of
from sohot.networks import create_backbone
from sohot.reporting.pages import write_report
from sohot.runs import open_run
from sohot.runs.given_options import resolve
from sohot.runs.run_outputs import OUTPUTS
from sohot.runs.trust import UntrustedCode, refuse_code
from sohot.training.checkpoint import load_checkpoint
from sohot.training.errors import CorruptCheckpoint

NETWORK = (
    "from torch import nn\n"
    "def net(pretrained=True):\n"
    "    layers = nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 4)\n"
    "    return nn.Sequential(*layers)\n"
)


class Stranger:
    """A run whose files are intact but whose network is a file that leaves a trace when it is imported."""

    def __init__(self, root: Path, domains: Domains) -> None:
        self.run, self.domains, self.trace = root / "run", domains, root / "trace"

    def ran(self) -> bool:
        ran = self.trace.exists()
        shutil.rmtree(self.trace, ignore_errors=True)
        return ran


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Stranger:
    root = tmp_path_factory.mktemp("stranger")
    found = Stranger(root, make_domains(root))
    (root / "net.py").write_text(NETWORK)
    options = [*found.domains.options(), "--shots", "2", "--steps", "2", "--quiet"]
    options[options.index("small-cnn")] = f"{root / 'net.py'}:net"
    with pytest.raises(SystemExit) as ended:
        main(["fit", *options, "--out", str(found.run)])
    assert not ended.value.code
    (root / "net.py").write_text(f"import os\nos.makedirs({str(found.trace)!r}, exist_ok=True)\n{NETWORK}")
    return found


@pytest.mark.parametrize(
    "command",
    [
        ("evaluate", "{run}", "{test}"),
        ("predict", "{run}", "{test}"),
        ("export", "{run}", "--onnx", "{out}/model.onnx"),
        ("export", "{run}", "--package", "{out}/package"),
        ("fit", "--out", "{run}", "--resume"),
        ("fit", "--out", "{run}", "--resume", "--devices", "2"),
        ("fit", "--config", "{run}/config.toml", "--out", "{out}/again"),
    ],
)
def test_no_command_imports_the_file_that_a_run_names(sohot, stranger, tmp_path, command):
    places = {"run": stranger.run, "test": stranger.domains.test, "out": tmp_path}
    ended = sohot(*(word.format(**places) for word in command))
    assert ended.code == 2
    assert "net.py:net" in ended.last
    assert "--trust" in ended.last
    assert not stranger.ran()
    assert not list(tmp_path.iterdir())


def test_a_report_is_written_without_it(sohot, stranger, tmp_path):
    run = Path(shutil.copytree(stranger.run, tmp_path / "run"))
    assert sohot("report", run, "--out", tmp_path / "page.html").code == 0
    (run / OUTPUTS).unlink()  # now the network would have to see the images again
    assert sohot("report", run, "--out", tmp_path / "page.html").code == 0
    assert "add --trust" in (tmp_path / "page.html").read_text()
    assert not stranger.ran()


def test_trust_imports_it(sohot, stranger, tmp_path):
    assert sohot("predict", stranger.run, stranger.domains.test / "red" / "0.png", "--trust").code == 0
    assert stranger.ran()
    assert sohot("fit", "--out", stranger.run, "--resume", "--trust").code == 0
    assert stranger.ran()
    run = Path(shutil.copytree(stranger.run, tmp_path / "run"))
    (run / OUTPUTS).unlink()
    page = write_report(run, tmp_path / "page.html", images=2, trust=True)
    assert "add --trust" not in page.read_text()
    assert stranger.ran()


def test_the_users_own_word_needs_no_trust(stranger, tmp_path):
    own = {"backbone": f"{stranger.trace.parent}/net.py:net"}
    assert resolve(None, {"out": stranger.run, "resume": True, **own})[0].backbone == own["backbone"]
    shutil.copy(stranger.run / "config.toml", tmp_path / "mine.toml")
    assert resolve(tmp_path / "mine.toml", {"out": tmp_path / "new"})[0].backbone == own["backbone"]


def test_python_imports_it_only_on_request(stranger):
    with pytest.raises(UntrustedCode, match="trust=True"):
        open_run(stranger.run)
    assert not stranger.ran()
    assert open_run(stranger.run, trust=True).classes == ("blue", "green", "red")
    assert stranger.ran()


@pytest.mark.parametrize("option", ["backbone", "source_backbone"])
def test_a_configuration_alone_imports_nothing(sohot, run_copy, stranger, tmp_path, option):
    file = run_copy / "config.toml"
    lines = [line for line in file.read_text().splitlines() if not line.startswith(f"{option} ")]
    file.write_text("\n".join([*lines, f"{option} = '{stranger.trace.parent}/net.py:net'\n"]))
    sohot("report", run_copy, "--out", tmp_path / "page.html")
    assert sohot("fit", "--out", run_copy, "--resume").code == 2
    assert not stranger.ran()


@pytest.mark.parametrize("name", ["net.py:f", "/abs/net.py:f", "../net.py:f", "timm:net.py:f", "run/.py:f"])
def test_every_spelling_of_a_file_is_refused(name):
    with pytest.raises(UntrustedCode, match="--trust"):
        refuse_code({"config": [{"network": {"backbone": name}}]}, Path("run"))


@pytest.mark.parametrize("name", ["os:system", "net:f", "net.PY:f", "net.py", "timm:hf-hub:a/b", "timm:local-dir:run"])
def test_no_other_name_finds_code(name):
    with pytest.raises(ValueError, match="backbone"):
        create_backbone(name)


def test_the_grid_of_an_experiment_imports_nothing(sohot, stranger, tmp_path):
    (tmp_path / "results.sqlite").touch()
    grid = (
        f'dataset = "domains"\nprotocol = "k-shot"\n[settings]\nsource_backbone = "{stranger.trace.parent}/net.py:net"'
    )
    (tmp_path / "grid.toml").write_text(grid)
    ended = sohot("experiment", tmp_path / "grid.toml", "--data", stranger.domains.source.parent, "--dry-run")
    assert ended.code == 2
    assert "--trust" in ended.last
    assert not stranger.ran()


@pytest.mark.parametrize(
    "name", ["run.json", "config.toml", "report.json", "log.csv", "checkpoints/{}/checkpoint.json"]
)
@pytest.mark.parametrize("kind", ["pipe", "deep", "device"])
def test_no_file_of_a_run_makes_a_command_hang_or_fail_unexpectedly(sohot, run_copy, tmp_path, name, kind):
    file = run_copy / name.format(newest(run_copy).name)
    file.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "device":
        file.symlink_to("/dev/zero")
    else:
        file.write_text("[" * 10**5 if file.suffix == ".json" else f"a = {'[' * 10**5}")
    for command in (("info", run_copy), ("report", run_copy, "--images", 0, "--out", tmp_path / "page.html")):
        ended = sohot(*command)
        assert "unexpected" not in ended.err
        assert ended.code in (0, 2)


def test_tensors_are_regular_files_of_the_checkpoint(sohot, run_copy):
    checkpoint = newest(run_copy)
    (checkpoint / "model.safetensors").unlink()
    os.mkfifo(checkpoint / "model.safetensors")
    ended = sohot("export", run_copy, "--onnx", run_copy / "model.onnx")
    assert ended.code == 2
    assert "model.safetensors" in ended.last


@pytest.mark.parametrize("name", ["/dev/zero", "../../../net.py", "checkpoint.json/../model.safetensors"])
def test_a_checkpoint_lists_only_its_own_files(run_copy, name):
    file = newest(run_copy) / "checkpoint.json"
    content = json.loads(file.read_text())
    content["files"] = {name: content["files"]["model.safetensors"]}
    file.write_text(json.dumps(sealed({key: value for key, value in content.items() if key != "sha256"})))
    with pytest.raises(CorruptCheckpoint, match="leads out of the folder"):
        load_checkpoint(file.parent)


def test_a_pipe_among_images_is_left_out(sohot, trained, tmp_path):
    run, domains = trained
    images = Path(shutil.copytree(domains.test, tmp_path / "images"))
    os.mkfifo(images / "red" / "pipe.png")
    ended = sohot("predict", run, images, "--json")
    assert ended.json["labelled"] == 12
    assert "not a regular file" in ended.json["unreadable"][0]["reason"]
    assert sohot("evaluate", run, images, "--json").json["accuracy"]["rows"] == 12


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("run.json", ["versions"], []),
        ("run.json", ["config", "network"], "x"),
        ("run.json", ["config", "data", "classes"], 3),
        ("report.json", ["data"], [1]),
        ("report.json", ["data", "target"], {"a": 1}),
        ("report.json", ["selection"], {"a": 1}),
        ("report.json", ["accuracy", "interval95"], None),
    ],
)
def test_an_edited_description_ends_in_a_sentence(sohot, run_copy, tmp_path, name, place, value):
    content = json.loads((run_copy / name).read_text())
    inner = content
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    content.pop("sha256", None)
    (run_copy / name).write_text(json.dumps(content))
    for command in (("info", run_copy), ("report", run_copy, "--images", 0, "--out", tmp_path / "page.html")):
        ended = sohot(*command)
        assert ended.code == 2
        assert "is damaged" in ended.last
        assert "unexpected" not in ended.last


def test_a_report_names_the_folders_it_searches_and_searches_no_disk(sohot, run_copy, trained, tmp_path, monkeypatch):
    (run_copy / OUTPUTS).unlink()
    ended = sohot("report", run_copy, "--out", tmp_path / "page.html")
    assert f"looking for images in {trained[1].target}" in ended.err
    assert "can no longer be found" not in (tmp_path / "page.html").read_text()
    monkeypatch.setattr("sohot.reporting.pages.run_images.MOST_SEARCHED", 10)
    sohot("report", run_copy, "--out", tmp_path / "page.html")
    assert "holds more than 10 files" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("name", ["/etc/passwd", "../secret.png"])
def test_a_run_lists_only_images_in_the_folders_it_names(sohot, run_copy, tmp_path, name):
    content = json.loads((run_copy / "split.json").read_text())
    content["sides"]["target_test"]["files"][0] = name
    (run_copy / "split.json").write_text(json.dumps({**content, "fingerprint": fingerprint_of(content)}))
    assert sohot("report", run_copy, "--out", tmp_path / "page.html").code == 0
    assert "names files outside its folder" in (tmp_path / "page.html").read_text()
