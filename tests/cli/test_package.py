"""`sohot export --package`: a folder that labels images as `sohot predict` does, on a machine without sohot."""

import csv
import hashlib
import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
import sklearn
from command_line import Domains, Ended
from PIL import Image

from sohot.cli import main
from sohot.data import InputSpec, read_image, to_tensor
from sohot.data.decode import FORMATS, SUFFIXES
from sohot.runs import find_images
from sohot.runs.calibration_file import write_calibration
from sohot.selection.held_out import HeldOut
from sohot.training import ExportError

Sohot = Callable[..., Ended]
PHOTOS = Path(sklearn.__file__).parent / "datasets" / "images"
SURE = np.linspace(0.5, 6, 12)
FILES = {"model.onnx", "labels.json", "preprocessing.json", "predict.py", "requirements.txt", "README.md"}


@pytest.fixture(scope="module")
def run(trained: tuple[Path, Domains], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose probabilities are calibrated."""
    folder = Path(shutil.copytree(trained[0], tmp_path_factory.mktemp("calibrated") / "run"))
    write_calibration(folder, HeldOut(np.stack([SURE, -SURE, 0 * SURE - 9], 1), (np.arange(12) % 3 == 0).astype(int)))
    return folder


def write_colours(_: object, __: object, file: Path, **___: object) -> float:
    """Write a model of the mean colour in place of the run's own, whose export takes seconds."""
    weights = onnx.numpy_helper.from_array(10 * np.eye(3, dtype=np.float32)[::-1], "weights")
    nodes = [
        onnx.helper.make_node("GlobalAveragePool", ["images"], ["pixel"]),
        onnx.helper.make_node("Flatten", ["pixel"], ["colour"]),
        onnx.helper.make_node("MatMul", ["colour", "weights"], ["logits"]),
    ]
    images = onnx.helper.make_tensor_value_info("images", onnx.TensorProto.FLOAT, ["batch", 3, 16, 16])
    logits = onnx.helper.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, ["batch", 3])
    graph = onnx.helper.make_graph(nodes, "colours", [images], [logits], [weights])
    versions = onnx.helper.make_opsetid("", 18)
    file.write_bytes(onnx.helper.make_model(graph, ir_version=10, opset_imports=[versions]).SerializeToString())
    return 1e-7


@pytest.fixture(scope="module")
def package(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package of that run; not to be changed."""
    folder = tmp_path_factory.mktemp("elsewhere") / "package"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sohot.runs.loaded_run.export_onnx", write_colours)
        with pytest.raises(SystemExit) as ended:
            main(["export", str(run), "--package", str(folder)])
    assert not ended.value.code
    return folder


@pytest.fixture(scope="module")
def predict(package: Path) -> ModuleType:
    """The script of the package, as a user imports it."""
    spec = importlib.util.spec_from_file_location("predict", package / "predict.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has numpy, Pillow and onnxruntime, the very ones of this machine, and nothing else."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False)
    (packages,) = folder.glob("[Ll]ib/**/site-packages")
    for name, libraries in {"numpy": "numpy.libs", "PIL": "pillow.libs", "onnxruntime": "onnxruntime.libs"}.items():
        place = Path(next(iter(importlib.util.find_spec(name).submodule_search_locations)))
        try:
            for one in (place, place.parent / libraries):
                if one.exists():
                    (packages / one.name).symlink_to(one, target_is_directory=True)
        except OSError as error:
            pytest.skip(f"no links to installed packages can be made here: {error}")
    return next(file for file in (folder / "bin" / "python", folder / "Scripts" / "python.exe") if file.exists())


def call(python: Path, *arguments: object, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """Call Python as on a machine that knows nothing of this one."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    words = [str(python), *map(str, arguments)]
    return subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def preparing(predict: ModuleType, spec: InputSpec) -> Any:
    """A model that only prepares images."""
    model = predict.Model.__new__(predict.Model)
    names = ("size", "mean", "std", "resize", "interpolation", "channels")
    model.preprocessing = {name: getattr(spec, name) for name in names}
    return model


SPECS = [
    InputSpec(size=20, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225), resize=23),
    InputSpec(size=16, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5), resize=16, interpolation="bilinear"),
    InputSpec(size=9, mean=(0.13,), std=(0.31,), resize=12),
]


def images_of_every_mode(width: int, height: int) -> list[Image.Image]:
    levels = np.random.default_rng(width).integers(0, 256, (height, width, 4), dtype=np.uint8)
    image = Image.fromarray(levels)
    modes = [image.convert("RGB").convert(mode) for mode in ("RGB", "L", "1", "P", "CMYK", "YCbCr")]
    deep = Image.fromarray(levels[..., 0].astype(np.uint16) * 257), Image.fromarray(levels[..., 0] / np.float32(255))
    return [image, image.convert("LA"), *modes, *deep]


@pytest.mark.parametrize("spec", SPECS)
def test_images_are_prepared_as_by_sohot_to_the_bit(predict: ModuleType, spec: InputSpec) -> None:
    model = preparing(predict, spec)
    for size in ((16, 16), (23, 23), (40, 31), (31, 40), (5, 200), (12, 9), (17, 16), (99, 24)):
        for image in images_of_every_mode(*size):
            assert np.array_equal(model.prepare(image), to_tensor(image, spec).numpy()), (image.mode, size)


def test_files_are_read_as_by_sohot_to_the_bit(predict: ModuleType, tmp_path: Path) -> None:
    with Image.open(PHOTOS / "china.jpg") as photo, Image.open(PHOTOS / "flower.jpg") as flower:
        exif = Image.Exif()
        exif[0x0112] = 6  # the camera was turned
        photo.save(tmp_path / "turned.jpg", exif=exif)
        photo.convert("CMYK").save(tmp_path / "ink.jpg")
        photo.save(tmp_path / "photo.webp")
        flower.resize((61, 43)).save(tmp_path / "moving.gif", save_all=True, append_images=[photo.resize((61, 43))])
        flower.resize((61, 43)).quantize(16).save(tmp_path / "key.png", transparency=3)
        Image.fromarray(np.asarray(flower.convert("L")).astype(np.uint16) * 200).save(tmp_path / "deep.png")
    files = [PHOTOS / "china.jpg", PHOTOS / "flower.jpg", *tmp_path.iterdir()]
    assert len(files) == 8
    lite0 = InputSpec(size=224, mean=(0.498, 0.498, 0.498), std=(0.502, 0.502, 0.502), resize=256)
    for spec in (*SPECS, lite0):  # JPEGs are decoded at an eighth, …, at full size
        for file in files:
            ours = to_tensor(read_image(file, spec.channels, at_least=2 * spec.resize), spec)
            assert np.array_equal(preparing(predict, spec).read(file), ours.numpy()), file


def test_the_same_files_count_as_images_in_the_same_order(predict: ModuleType, tmp_path: Path) -> None:
    assert (predict.FORMATS, predict.SUFFIXES) == (FORMATS, SUFFIXES)
    for name in ("b10.png", "B2.JPG", "a/é.tif", "a/e9/1.webp", "A3/x.png", ".hidden.png", ".git/x.png", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).touch()
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    given = [tmp_path / "notes.txt", tmp_path, tmp_path / "b10.png"]
    assert predict.find_images(given) == find_images(given)
    assert len(find_images(given)) == 6


def test_a_bare_machine_gives_the_labels_of_sohot(
    sohot: Sohot, trained: tuple[Path, Domains], run: Path, bare: Path, tmp_path: Path
) -> None:
    shutil.copytree(trained[1].test, tmp_path / "images")
    for photo in PHOTOS.glob("*.jpg"):
        shutil.copy(photo, tmp_path / "images")
    expected = rows_of(sohot("predict", run, tmp_path / "images", "--top", 3, "--quiet").out)
    there = tmp_path / "there"
    result = sohot("export", run, "--package", there, "--json").json
    assert (result["package"], result["largest_difference"] <= 1e-4) == (str(there), True)
    ended = call(bare, there / "predict.py", "images", "--top", 3, "--threads", 1, cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "14 images labelled, 0 could not be read\n")
    found = rows_of(ended.stdout)
    assert [tmp_path / row["path"] for row in found] == [Path(row["path"]) for row in expected]
    for name in ("label", "label_2", "label_3"):
        assert [row[name] for row in found] == [row[name] for row in expected]
    for name in ("probability", "probability_2", "probability_3"):
        ours = [float(row[name]) for row in expected]
        np.testing.assert_allclose([float(row[name]) for row in found], ours, rtol=0, atol=1e-4)

    program = """
import importlib.util, json, sys
from predict import Model
answers = list(Model(threads=1).predict(sys.argv[1:]))
absent = ["torch", "sohot", "onnx", "scipy", "pip", "safetensors"]
print(json.dumps([[one.labels[0] for one in answers], [name for name in absent if importlib.util.find_spec(name)]]))
"""
    images = [tmp_path / row["path"] for row in found[:5]]
    labels, present = json.loads(call(bare, "-c", program, *images, cwd=there).stdout)
    assert labels == [row["label"] for row in expected[:5]]
    assert present == []


def test_what_is_missing_is_named_and_help_does_without(
    predict: ModuleType, package: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(SystemExit, match="0"):
        predict.main(["--help"])
    assert "Exit codes: 0 all images have a label" in " ".join(capsys.readouterr().out.split())
    assert predict.main([str(package / "README.md")]) == 2
    assert capsys.readouterr().err == "predict.py: onnxruntime is missing: pip install -r requirements.txt\n"


def test_the_package_lists_its_files_with_checksums(package: Path, run: Path) -> None:
    about = json.loads((package / "package.json").read_text())
    assert {file.name for file in package.iterdir()} - {"__pycache__"} == {*FILES, "package.json"}
    assert set(about["files"]) == FILES
    for name, stamp in about["files"].items():
        content = (package / name).read_bytes()
        assert stamp == {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    assert about["temperature"] == json.loads((run / "calibration.json").read_text())["temperature"] != 1
    needed = (package / "requirements.txt").read_text().split()
    assert needed == [f"{name}=={version(name)}" for name in ("numpy", "pillow", "onnxruntime")]


def test_the_card_says_what_the_run_says(package: Path, trained: tuple[Path, Domains]) -> None:
    card = (package / "README.md").read_text(encoding="utf-8")
    for told in (
        "- 18 labelled source images",
        "- 9 labelled target images",
        "| red | 6 | 3 | 2 | 100.0 % |",
        "- Backbone: small-cnn",
        "Accuracy 100.0 % of 6 test images (Wilson's 95 % interval: 61.0 % to 100.0 %)",
        "calibrated by 12 held-out target images",
        "also one that shows something else",
        "licence of the weights is not recorded",
    ):
        assert told in card
    assert str(trained[0].parent) not in card  # packages are passed on


def test_damaged_images_are_named_and_skipped(
    predict: ModuleType,
    trained: tuple[Path, Domains],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    good = trained[1].test / "red" / "0.png"
    (tmp_path / "empty.png").touch()
    (tmp_path / "short.png").write_bytes(good.read_bytes()[:300])
    (tmp_path / "text.jpg").write_text("no image")
    out = tmp_path / "labels.csv"
    assert predict.main([str(tmp_path), str(good), "--out", str(out)]) == 1
    assert [row["label"] for row in rows_of(out.read_text())] == ["red"]
    told = capsys.readouterr().err.splitlines()
    assert told[0] == f"skipped {tmp_path / 'empty.png'}: the file is empty"
    assert "short.png: " in told[1]
    assert told[2] == f"skipped {tmp_path / 'text.jpg'}: it is not an image in a supported format"
    assert told[3] == "1 images labelled, 3 could not be read"
    out.unlink()
    assert predict.main([str(tmp_path), "--out", str(out)]) == 2
    assert capsys.readouterr().err.endswith("predict.py: none of the 3 files can be read\n")
    assert not [file for file in tmp_path.iterdir() if file.suffix in (".csv", ".tmp")]


@pytest.mark.skipif(os.name != "posix", reason="only here may names hold such characters")
def test_no_name_fakes_a_line_or_controls_a_terminal(
    predict: ModuleType, trained: tuple[Path, Domains], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    names = [
        "=1+1.png",
        "a,b.png",
        "x\nb.png,red,1.0\n.png",
        "\x1b[2J.png",
        os.fsdecode(b"caf\xe9.png"),
        "\u202egnp.png",
    ]
    for name in names:
        shutil.copy(trained[1].test / "blue" / "0.png", tmp_path / name)
    (tmp_path / "\x1b[2Jbad.png").touch()
    assert predict.main([*names, "\x1b[2Jbad.png"]) == 1
    said = capsys.readouterr()
    shown = [row[0] for row in csv.reader(said.out.splitlines())][1:]
    assert shown == [
        "./=1+1.png", "a,b.png", "x\\u000ab.png,red,1.0\\u000a.png", "\\u001b[2J.png", "caf\\xe9.png", "\\u202egnp.png"
    ]  # fmt: skip
    assert "\x1b" not in said.out + said.err
    assert "\\u001b[2Jbad.png: the file is empty" in said.err
    assert predict.main([*names, "--format", "jsonl", "--out", "-"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.isascii() and line.isprintable() for line in lines)
    assert [json.loads(line)["path"] for line in lines] == [*names[:4], "caf\\xe9.png", names[5]]


def test_batches_change_no_answer_and_labels_are_escaped(
    package: Path, predict: ModuleType, trained: tuple[Path, Domains]
) -> None:
    model, files = predict.Model(package), find_images([trained[1].test])
    whole, parts = (list(model.predict(files, top=2, batch=size)) for size in (32, 5))
    assert [answer.labels for answer in whole] == [answer.labels for answer in parts]
    shares = [[answer.probabilities for answer in answers] for answers in (whole, parts)]
    np.testing.assert_allclose(*shares, atol=1e-6)
    odd = predict.Answer(Path("a.png"), ("=cmd\n", "b"), (0.75, 0.25))
    assert predict.csv_cells(odd) == ["a.png", "'=cmd\\u000a", "0.750000", "b", "0.250000"]
    assert json.loads(predict.json_line(odd))["label"] == "=cmd\n"


@pytest.mark.parametrize("name", ["labels.json", "model.onnx", "preprocessing.json"])
def test_a_damaged_package_is_refused(package: Path, predict: ModuleType, tmp_path: Path, name: str) -> None:
    copy = Path(shutil.copytree(package, tmp_path / "copy"))
    (copy / name).write_bytes((copy / name).read_bytes() + b" ")
    with pytest.raises(ValueError, match=f"{name} is not the file that package.json lists: copy the package again"):
        predict.Model(copy)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nowhere.png"], "nowhere.png: there is no such file or folder"),
        ([".", "--top", "4"], "top must lie in 1 … 3, the number of labels, got 4"),
        (["empty"], "empty holds no images"),
        ([".", "--out", "nowhere/labels.csv"], "No such file or directory"),
    ],
)
def test_wrong_calls_of_the_script(
    predict: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, words: list[str], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    Image.new("RGB", (20, 20)).save(tmp_path / "one.png")
    assert predict.main(words) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert sentence in said.err


@pytest.mark.parametrize("words", [(), ("--onnx", "model.onnx", "--package", "folder")])
def test_export_writes_one_thing(sohot: Sohot, run: Path, words: tuple[str, ...]) -> None:
    ended = sohot("export", run, *words)
    assert (ended.code, ended.last) == (2, "sohot: export writes one thing: give --onnx FILE or --package DIR")


@pytest.mark.parametrize("make", [lambda there: (there / "mine").mkdir(parents=True), Path.touch, Path.symlink_to])
def test_what_is_there_is_not_replaced(sohot: Sohot, run: Path, tmp_path: Path, make: Callable[..., Any]) -> None:
    there = tmp_path / "there"
    make(*(there, "nowhere") if make is Path.symlink_to else [there])
    ended = sohot("export", run, "--package", there)
    sentence = f"sohot: --package {there} exists already: give a new or an empty folder"
    assert (ended.code, ended.last) == (2, sentence)


def test_an_export_that_fails_leaves_nothing(
    sohot: Sohot, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object, __: object, file: Path, **___: object) -> float:
        file.write_bytes(b"half")
        raise ExportError(f"{file} was not written: onnxruntime differs")

    monkeypatch.setattr("sohot.runs.loaded_run.export_onnx", fail)
    (tmp_path / "package").mkdir()
    ended = sohot("export", run, "--package", tmp_path / "package")
    written = tmp_path / "package" / "model.onnx"
    assert (ended.code, ended.last) == (1, f"sohot: {written} was not written: onnxruntime differs")
    assert [list(folder.iterdir()) for folder in (tmp_path, tmp_path / "package")] == [[tmp_path / "package"], []]
