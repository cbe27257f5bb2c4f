"""Compare the numbers of this checkout with those of another revision, on the same machine.

    python tests/compare.py BASE [--allow SCENARIO]... [--only SCENARIO]... [--base-python PATH]

Small fixed scenarios run once with this checkout and once with BASE, each in a process of its own: fits, grids,
estimators, losses with gradients, splits. The table gives the largest absolute difference of each; 0 means equal bit
for bit. The exit code is 1 if a scenario that no --allow names differs, or does not run on both sides.

BASE is any revision. Its files and its virtual environment are made under build/compare/ and used again the next time;
with --base-python PATH that interpreter runs BASE's files instead. Scenarios use package doors and commands alone.
"""

import argparse
import ast
import contextlib
import csv
import importlib
import io
import json
import math
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from official_sets import make_digits, make_office31, make_rgbd_caltech, make_voc_sketches
from PIL import Image, ImageDraw

RENAMED: dict[str, str] = {}
"""Words of this checkout → the same in BASE, if BASE has other ones: options of commands with or without their values
("--train none"), keys of TOML files, keyword arguments, and homes of names ("sohot.losses:ScatterAlignment"). Words
that BASE's own tests/compare.py lists are new in BASE, too."""

HERE = Path(__file__).resolve().parents[1]
MACHINE = "--device cpu --threads 1 --quiet"
CLASSES = ("bar", "disc", "frame", "stripes", "wedge")
SIZE = 64

Values = dict[str, Any]
_older: dict[str, str] = {}
"""The words of the checkout that this process runs."""


def words(text: str) -> str:
    """Say what a scenario asks for in the words of the checkout that runs it."""
    for newer, older in _older.items():
        text = re.sub(rf"(?<![\w-]){re.escape(newer)}(?![\w-])", older, text)
    return text


def options(**values: Any) -> dict[str, Any]:
    """Keyword arguments."""
    return {words(name): value for name, value in values.items()}


def door(home: str) -> Any:
    """Import a name from its package, given as "sohot.losses:ScatterAlignment"."""
    package, _, name = words(home).partition(":")
    return getattr(importlib.import_module(package), name)


def sohot(command: str) -> str:
    """Run a command in this process, and return what it prints."""
    printed, told = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(told):
        try:
            door("sohot.cli:main")(words(command).split())
        except SystemExit as ended:
            if ended.code:
                reason = (told.getvalue().strip().splitlines() or [f"exit code {ended.code}"])[-1]
                raise RuntimeError(f"sohot {command}: {reason}") from None
    return printed.getvalue()


# Images and rows.


def draw(name: str, sketch: bool, random: np.random.Generator, side: int = 40) -> Image.Image:
    """Draw one shape, filled on a dark ground or as a faint line on a light one."""
    ground, colour = (tuple(int(x) for x in random.integers(*ends, 3)) for ends in ((30, 130), (90, 220)))
    if sketch:
        ground, colour = (235, 235, 225), (150, 150, 160)
    picture = Image.new("RGB", (side, side), ground)
    pen = ImageDraw.Draw(picture)
    left, top = (int(x) for x in random.integers(2, side // 3, 2))
    width, height = (int(x) for x in random.integers(side // 3, side // 2, 2))
    right, bottom = left + width, top + height
    fill = None if sketch else colour
    if name == "bar":
        pen.rectangle((left, top, right, top + height // 3), fill, colour)
    elif name == "disc":
        pen.ellipse((left, top, right, bottom), fill, colour)
    elif name == "frame":
        pen.rectangle((left, top, right, bottom), None, colour, 2)
    elif name == "stripes":
        for x in range(left, right, 5):
            pen.line((x, top, x, bottom), colour, 1)
    else:
        pen.polygon([(left, bottom), (right, bottom), (left, top)], fill, colour)
    pixels = np.asarray(picture) + random.normal(0, 35, (side, side, 3))
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def draw_domains(root: Path, photos: int = 7, sketches: int = 8, seed: int = 0) -> None:
    """Draw two folders of images with five classes each, `photo` and `sketch`."""
    for number, (domain, count) in enumerate({"photo": photos, "sketch": sketches}.items(), start=seed):
        random = np.random.default_rng(number)
        for name in CLASSES:
            (root / domain / name).mkdir(parents=True)
            for number in range(count):
                draw(name, domain == "sketch", random).save(root / domain / name / f"{number:02}.png")


class Rows(NamedTuple):
    """Made-up features of two domains, with unlabelled target rows (−1) and test rows."""

    features: np.ndarray
    labels: np.ndarray
    domain: np.ndarray
    test: np.ndarray


def make_rows(pool: int = 0, classes: int = 4, size: int = 8) -> Rows:
    random = np.random.default_rng(5)
    centres, moved = 2 * random.normal(size=(classes, size)), 1.5 * random.normal(size=size)

    def rows(per_class: int, shift: float) -> np.ndarray:
        noise = random.normal(size=(classes * per_class, size))
        return noise * random.uniform(0.5, 2, size) + np.repeat(centres, per_class, 0) + shift * moved

    parts = [rows(12, 0), rows(3, 1), rows(pool, 1)]
    names = np.arange(classes)
    labels = np.concatenate([names.repeat(12), names.repeat(3), np.full(classes * pool, -1)])
    domain = np.repeat([1, -1], [classes * 12, classes * (3 + pool)])
    return Rows(np.concatenate(parts), labels, domain, rows(5, 1))


# What the scenarios read of results.


def numbers_of(content: Any, *names: str) -> Values:
    """Take the numbers under these keys of a JSON object, as far as it has them."""
    picked = ((name, content.get(name)) for name in names)
    return {name: value for name, value in picked if value is not None}


def read_run(run: Path, images: Path | None = None) -> Values:
    """Read the results of a finished run, and what it says of images."""
    from safetensors.numpy import load_file

    report = json.loads((run / "report.json").read_text())
    found: Values = {"accuracy": numbers_of(report["accuracy"], "micro", "macro", "confusion")}
    found["temperature"] = (report["accuracy"].get("calibration") or {}).get("temperature")
    if (run / "log.csv").exists():
        found["log"] = numbers_of(read_table(run / "log.csv"), "loss", "cross_entropy", "alignment")
    outputs = load_file(run / "test_outputs.safetensors")
    found |= {name: outputs[name] for name in ("logits", "pool.logits", "test.before", "test.after") if name in outputs}
    found["split"] = read_split(json.loads((run / "split.json").read_text()))
    if images is not None:
        found["predictions"] = labelled(run, images)
    return found


def labelled(run: Path | str, images: Path | str) -> Values:
    """Label images, or rows of features, with a run."""
    sohot(f"predict {run} {images} --out {run}.csv --top {len(CLASSES)} {MACHINE}")
    return read_table(Path(f"{run}.csv"))


def read_table(file: Path) -> Values:
    """Read the columns of a CSV file, those of numbers as numbers."""
    with file.open() as opened:
        rows = list(csv.DictReader(opened))
    columns = {"path" if name == "file" else name: [row[name] for row in rows] for name in rows[0]}
    return {name: [as_number(cell) for cell in cells] for name, cells in columns.items()}


def as_number(cell: str) -> float | str:
    """Read a number, NaN from an empty cell."""
    try:
        return float(cell or "nan")
    except ValueError:
        return cell


def read_split(content: Mapping[str, Any]) -> Values:
    """Take the files and labels of each side of a split."""
    sides = {name: numbers_of(side, "files", "labels", "groups", "boxes") for name, side in content["sides"].items()}
    return {"classes": content["classes"], **sides}


def read_grid(printed: str, out: Path) -> Values:
    """Read the table of a grid and the stored results of its cells."""
    content = json.loads(printed)
    found: Values = {
        f"{table['pool']} {row['label']} {row['values']}": [
            {**numbers_of(cell, "mean"), **cell["splits"]} for cell in row["cells"].values()
        ]
        for table in (content["tables"].values() if "tables" in content else [content["table"]])
        for row in table["rows"]
    }
    for cell, result in stored_cells(out):
        settings = json.dumps(cell["settings"], sort_keys=True)
        named = f"{cell['shift']} {cell['split']} {cell['method']} {cell['pool']} {settings}"
        found[named] = {
            "accuracy": numbers_of(result["accuracy"], "micro", "macro", "confusion"),
            **{f"curve {name}": values for name, values in result["curve"].items()},
            **{f"zeta {name}": values for name, values in (result["zeta"] or {}).items()},
        }
    return found


def stored_cells(out: Path) -> Iterator[tuple[Any, Any]]:
    """Yield the cells that a grid's folder holds, with their results: a file each, in 9d26b0e rows of a database."""
    if (out / "results.sqlite").exists():
        with contextlib.closing(sqlite3.connect(out / "results.sqlite")) as database:
            for cell, result in database.execute("SELECT cell, result FROM attempts WHERE result IS NOT NULL"):
                yield json.loads(cell), json.loads(result)
    for file in sorted(out.rglob("*.json")):
        content = json.loads(file.read_text())
        for attempt in content.get("attempts", []) if isinstance(content, dict) else []:
            if attempt["result"] is not None:
                yield content["cell"], attempt["result"]


# The scenarios. Each works in the current folder, which is empty, and returns what is compared.

SCENARIOS: dict[str, Callable[[], Values]] = {}


def scenario(run: Callable[[], Values]) -> Callable[[], Values]:
    SCENARIOS[run.__name__.replace("_", "-")] = run
    return run


def fit(run: str, extra: str, network: str = f"lite0 --image-size {SIZE}") -> Values:
    """Fit to photographs and three sketches per class; label all sketches."""
    places = f"--source photo --target sketch --shots 3 --out {run}"
    sohot(f"fit {places} --backbone {network} --loggers none {MACHINE} {extra}")
    return read_run(Path(run), Path("sketch"))


@scenario
def fit_labels() -> Values:
    """A classifier on frozen features; suggestions and an evaluation with it."""
    draw_domains(Path())
    found = fit("run", "--trains head")
    sohot(f"suggest run sketch --count 6 --out suggested.csv {MACHINE}")
    found["suggested"] = numbers_of(read_table(Path("suggested.csv")), "path", "label", "probability")
    draw_domains(Path("new"), seed=9)
    tested = json.loads(sohot(f"evaluate run new/photo {MACHINE} --json"))
    found["evaluated"] = numbers_of(tested["accuracy"], "micro", "macro", "confusion")
    return found


@scenario
def fit_default() -> Values:
    """What a user gets who gives no options but a number of steps."""
    draw_domains(Path())
    return fit("run", "--steps 4")


@scenario
def fit_layers() -> Values:
    """Layers of a pre-trained network trained, with class scatters aligned."""
    draw_domains(Path())
    trained = "--keep layers --trains paper --batch-norm fixed"
    return {
        "so": fit("so", f"{trained} --method so --steps 5"),
        "streams": fit(
            "streams", f"{trained} --method so+to+zeta --streams separate --heads coupled --steps 4 --lr 0.01"
        ),
        "augment": fit("augment", f"{trained} --method s+t --steps 3 --augment"),
    }


@scenario
def fit_pool_labels() -> Values:
    """A classifier on frozen features that learns from unlabelled images."""
    draw_domains(Path())
    return fit("run", "--trains head --unlabelled rest")


@scenario
def fit_pool_layers() -> Values:
    """Layers trained with unlabelled images, half of which test."""
    draw_domains(Path())
    trained = "--keep layers --trains paper --batch-norm fixed --method s+t --steps 5"
    return fit("run", f"{trained} --unlabelled rest --protocol inductive")


@scenario
def fit_paper() -> Values:
    """The paper's method with its own settings."""
    draw_domains(Path())
    return fit("run", "--method paper --steps 5")


@scenario
def fit_scratch() -> Values:
    """A network from scratch, with every method."""
    draw_domains(Path())
    methods = "s t s+t m so so+to+fo+zeta means variance ccsa dsne dage supcon l2-sp lp-ft"
    return {
        method: fit(method, f"--steps 6 --lr 0.01 --method {method}", "small-cnn --image-size 24")
        for method in methods.split()
    }


@scenario
def fit_features() -> Values:
    """Features of images in files, and classifiers on them."""
    draw_domains(Path())
    for domain in ("photo", "sketch"):
        sohot(f"features {domain} --backbone lite0 --image-size {SIZE} --out {domain}.npz {MACHINE}")
    ways = {
        "labels": "",
        "pool": "--unlabelled rest",
        "so": "--method so --steps 20",
        "hidden": "--method so+to+zeta --hidden 6 --streams separate --components 12 --steps 20",
    }
    found: Values = {name: np.load(f"{name}.npz")["features"] for name in ("photo", "sketch")}
    for name, extra in ways.items():
        places = f"--source photo.npz --target sketch.npz --shots 3 --out {name}"
        printed = sohot(f"fit-features {places} --device cpu --quiet --json {extra}")
        found[name] = numbers_of(json.loads(printed)["accuracy"], "micro", "macro", "confusion")
        found[f"{name} predictions"] = labelled(name, "sketch.npz")
    return found


def grid(text: str, command: str) -> Values:
    """Compute a small grid of one's own on the drawn images."""
    draw_domains(Path("data"))
    head = 'title = "Small"\ndataset = "domains"\nprotocol = "k-shot"\nshifts = ["photo-sketch"]\n'
    Path("small.toml").write_text(words(head + text))
    printed = sohot(f"experiment small.toml --data data --out out --device cpu --workers 1 --quiet --json {command}")
    return read_grid(printed, Path("out"))


DRAWN = "[settings]\ntarget_shots = 3\nsource_shots = 5\n"


@scenario
def grid_images() -> Values:
    """Cells that train layers of a pre-trained network, with and without a pool."""
    cells = 'backbone = "lite0"\nsplits = 1\nmethods = ["s+t", "so+zeta"]\n'
    return grid(f"{cells}{DRAWN}image_size = {SIZE}\nsteps = 4\n", "--pool supervised,inductive")


@scenario
def grid_scratch() -> Values:
    """Cells that train a small network, with settings that vary."""
    cells = 'backbone = "small-cnn"\nsplits = 2\nmethods = ["t", "so"]\n'
    settings = "image_size = 24\nsteps = 5\nlr = 0.01\n[vary]\nsigma1 = [0.1, 1.0]\n"
    return grid(f"{cells}{DRAWN}{settings}", "")


@scenario
def grid_frozen() -> Values:
    """Cells on frozen features."""
    cells = 'backbone = "lite0"\nsplits = 2\nmethods = ["s+t", "so+zeta", "ccsa"]\n'
    return grid(f"{cells}{DRAWN}image_size = {SIZE}\n[frozen]\nsteps = 20\n", "--frozen")


@scenario
def estimators() -> Values:
    """The scikit-learn estimators on made-up rows, with and without a pool."""
    found: Values = {}
    one, average = door("sohot:SoHoTClassifier"), door("sohot:SoHoTClassifierCV")
    methods = "s t s+t m so so+to+fo+zeta means variance ccsa dsne dage supcon l2-sp lp-ft"
    makers: dict[str, Callable[[], Any]] = {
        method: lambda method=method: one(method, **options(steps=20, random_state=0)) for method in methods.split()
    }
    makers["separate"] = lambda: one(
        "so+zeta", **options(streams="separate", heads="coupled", hidden=5, steps=20, random_state=0)
    )
    makers["average"] = average
    makers["choice"] = lambda: average(one(steps=20, random_state=0), {"method": ["so", "s+t"]})
    for pool in (0, 6):
        rows = make_rows(pool)
        for name in makers if pool == 0 else ("s+t", "so", "average"):
            fitted = makers[name]().fit(rows.features, rows.labels, sample_domain=rows.domain)
            said: Values = {"probabilities": fitted.predict_proba(rows.test)}
            for part in ("class_weights_", "temperature_", "history_", "weights_", "transduction_"):
                value = getattr(fitted, part, None)
                said |= {} if value is None else {part.rstrip("_"): value}
            found[f"{name}{', pool' if pool else ''}"] = said
    return found


def losses(dtype: str) -> Values:
    """Every loss, with its gradient with respect to features and to class weights."""
    import torch

    torch.set_num_threads(1)
    random = torch.Generator().manual_seed(3)
    kind = getattr(torch, dtype)
    labels = torch.arange(5).repeat_interleave(torch.tensor([7, 4, 1, 2, 6]))  # sizes differ; one class of one row
    target_labels = torch.tensor([0, 0, 1, 2, 3, 3, 3, 1, 0])  # class 4 is in the source alone
    base = torch.randn(len(labels), 12, generator=random, dtype=torch.float64) * 1.5 + 3
    near = torch.randn(len(target_labels), 12, generator=random, dtype=torch.float64) + 2
    align = door("sohot.losses:ScatterAlignment")
    modules = {
        **{f"order {order}": {"orders": (order,)} for order in (2, 3, 4)},
        "orders": {"orders": (2, 3, 4), "sigma1": (0.5, 0.1, 0.02), "sigma2": 0.3},
        "means": {"sigma1": 0.0},
        "marginal": {"orders": (2, 3), "scope": "marginal"},
        "unbiased": {"orders": (2, 3, 4), "estimator": "unbiased"},
        "learned": {"orders": (2, 4), "class_weights": "learned", "alpha1": 0.2, "alpha2": 0.3},
        "closed form": {"orders": (2, 3), "class_weights": "closed-form"},
        "initial scale": {"orders": (2, 3), "feature_scale": "initial"},
        "unit scale": {"orders": (2, 3), "feature_scale": "unit"},
        "several sources": {"orders": (2, 3), "num_sources": 2, "class_weights": "learned"},
    }
    made = {name: align(5, **options(**given)) for name, given in modules.items()}
    for name in (
        "ContrastiveSemanticAlignment",
        "GraphEmbeddingAlignment",
        "StochasticNeighborhoodAlignment",
        "SupervisedContrastive",
        "VariancePenalty",
    ):
        made[name] = door(f"sohot.losses:{name}")(5)
    found: Values = {}
    for name, module in made.items():
        module.to(kind)
        for call in range(2 if name == "unit scale" else 1):
            source, target = (x.to(kind).requires_grad_() for x in (base + call, near))
            if name == "several sources":
                loss = module([source[:11], source[11:]], [labels[:11], labels[11:]], target, target_labels)
            else:
                loss = module(source, labels, target, target_labels)
            loss.backward()
            found[f"{name} loss {call}"] = loss.item()
            found[f"{name} gradients {call}"] = [source.grad.numpy(), target.grad.numpy()]
        gradients = {key: weight.grad.numpy() for key, weight in module.named_parameters() if weight.grad is not None}
        found |= {f"{name} gradient of {key}": value for key, value in gradients.items()}
        found |= {f"{name} {key}": value.numpy() for key, value in module.named_buffers()}
    rows, others = base[:9].to(kind), near.to(kind)
    for order in (2, 3):
        found[f"tensor {order}"] = door("sohot:scatter_tensor")(rows, order).numpy()
        for method in ("gram", "explicit"):
            found[f"distance {order} {method}"] = door("sohot:scatter_distance")(
                rows, others, order, method=method
            ).item()
    return found


@scenario
def losses_float64() -> Values:
    return losses("float64")


@scenario
def losses_float32() -> Values:
    return losses("float32")


@scenario
def from_python() -> Values:
    """`sohot.fit` with images in memory, and what the run then says."""
    random = np.random.default_rng(2)
    images = {
        sketch: [np.asarray(draw(name, sketch, random)) for name in CLASSES for _ in range(5)]
        for sketch in (False, True)
    }
    labels = [name for name in CLASSES for _ in range(5)]
    run = door("sohot:fit")(
        (images[False], labels),
        (images[True], labels),
        shots=3,
        **options(
            trains="head", image_size=SIZE, device="cpu", threads=1, loggers="none", progress=False, out=Path("run")
        ),
    )
    found = read_run(Path("run"))
    said = door("sohot:load")("run").predict(images[True], top=3)
    return {**found, "labels": said.labels, "probability": said.probabilities, "accuracy again": run.accuracy}


@scenario
def splits() -> Values:
    """Every protocol, pool and data set."""
    make_office31(Path("office31"), {"amazon": 24, "dslr": 10, "webcam": 12})
    make_rgbd_caltech(Path("rgbd-caltech"))
    make_voc_sketches(Path("voc-sketches"))
    make_digits(Path("digits"))
    draw_domains(Path("domains"))
    few = "--protocol k-shot --target-shots 2 --source-shots 3"
    calls = [
        *(f"office31 office31 --shift {shift} --split {n}" for shift in ("A-W", "D-A") for n in (1, 2)),
        *(f"office31 office31 --shift A-W --protocol paper-folds --split {split}" for split in (1, 2, 3)),
        "office31 office31 --shift A-W --protocol rectified",
        *(f"office31 office31 --shift A-W --pool {pool}" for pool in ("transductive", "inductive")),
        "rgbd-caltech rgbd-caltech --target-shots 3",
        "rgbd-caltech rgbd-caltech --target-shots 3 --pool inductive",
        "voc-sketches voc-sketches",
        "voc-sketches voc-sketches --option whole=true",
        f"digits digits --shift M-U {few}",
        f"domains domains --shift photo-sketch {few} --validation-shots 1",
        f"domains domains --shift sketch-photo {few} --pool inductive --split 4",
    ]
    found: Values = {}
    for call in calls:
        sohot(f"data split {call} --out split.json")
        found[call] = read_split(json.loads(Path("split.json").read_text()))
    return found


# Comparing.


def flatten(value: Any, name: str = "") -> Iterator[tuple[str, np.ndarray]]:
    """Yield the arrays of nested values, each with its name; text as text, None as NaN."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from flatten(part, f"{name} {key}".strip())
        return
    if isinstance(value, list | tuple) and any(isinstance(part, Mapping | np.ndarray | list | tuple) for part in value):
        for number, part in enumerate(value):
            yield from flatten(part, f"{name} {number}".strip())
        return
    if isinstance(value, list | tuple) and any(part is None for part in value):
        value = [math.nan if part is None else part for part in value]
    array = np.asarray(math.nan if value is None else value)
    yield name, array.astype(str) if array.dtype == object else array


def difference(one: np.ndarray, other: np.ndarray) -> float:
    """Return the largest absolute difference; infinite between texts, shapes or kinds that differ."""
    if one.shape != other.shape or (one.dtype.kind in "US") != (other.dtype.kind in "US"):
        return math.inf
    if one.dtype.kind in "US":
        return 0.0 if np.array_equal(one, other) else math.inf
    here, there = one.astype(np.float64), other.astype(np.float64)
    same = (here == there) | (np.isnan(here) & np.isnan(there))
    gaps = np.where(same, 0.0, np.abs(here - there))
    return float(np.where(np.isnan(gaps), math.inf, gaps).max(initial=0.0))


class Side(NamedTuple):
    """A checkout: its files, the interpreter that runs them, and its older words."""

    root: Path
    python: Path
    older: Mapping[str, str]


class Row(NamedTuple):
    """A line of the table."""

    name: str
    compared: str
    largest: float
    notes: str


Result = dict[str, np.ndarray] | str


def run_scenario(name: str, side: Side) -> Result:
    """Run a scenario with a checkout in a process of its own; return its arrays, or why it failed."""
    source = side.root / "src"
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    with tempfile.TemporaryDirectory(prefix="compare-") as scratch:
        file = Path(scratch) / "values.npz"
        asked = [side.python, __file__, "--run", name, "--out", file, "--source", source]
        (Path(scratch) / "work").mkdir()
        done = subprocess.run(
            [*map(str, asked), "--words", json.dumps(dict(side.older))],
            cwd=Path(scratch) / "work",
            env=environment,
            capture_output=True,
            text=True,
        )
        if done.returncode or not file.exists():
            return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        with np.load(file) as stored:
            return dict(stored)


def run_here(name: str, source: Path, out: Path) -> None:
    """Run a scenario in this process, and store its arrays."""
    home = Path(importlib.import_module("sohot").__file__ or "")
    if not home.is_relative_to(source):
        raise RuntimeError(f"sohot is imported from {home}, not from {source}")
    np.savez(out, **dict(flatten(SCENARIOS[name]())))


def compare(name: str, here: Result, base: Result) -> Row:
    """Compare the two results of a scenario."""
    if isinstance(here, str) or isinstance(base, str):
        failures = [f"{side}: {said}" for side, said in (("here", here), ("BASE", base)) if isinstance(said, str)]
        return Row(name, "", math.inf, "; ".join(failures))
    gaps = {key: difference(here[key], base[key]) for key in here if key in base}
    notes = [
        f"only {where}: {len(missing)} values ({', '.join(missing[:2])})"
        for where, missing in (("here", sorted(set(here) - set(base))), ("in BASE", sorted(set(base) - set(here))))
        if missing
    ]
    different = sorted((key for key, gap in gaps.items() if gap), key=gaps.__getitem__, reverse=True)
    if different:
        notes.insert(0, f"{len(different)} of {len(gaps)} values differ, most: {', '.join(different[:3])}")
    largest = math.inf if len(gaps) < len(here.keys() | base.keys()) else max(gaps.values(), default=math.inf)
    entries = sum(here[key].size for key in gaps)
    texts = sum(here[key].size for key in gaps if here[key].dtype.kind in "US")
    return Row(name, f"{len(gaps)} values: {entries - texts} numbers, {texts} texts", largest, "; ".join(notes))


def show(rows: Sequence[Row]) -> str:
    """Lay out the table."""
    lines = [("scenario", "compared", "largest difference", "notes")]
    for row in rows:
        largest = "0" if row.largest == 0 else "differs" if math.isinf(row.largest) else f"{row.largest:.3g}"
        lines.append((row.name, row.compared, largest, row.notes))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = (map(str.ljust, line, widths) for line in lines)
    return "\n".join("  ".join(cells).rstrip() for cells in padded)


# The other checkout.


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=HERE, check=True, capture_output=True, text=True).stdout


def checkout(base: str, python: Path | None) -> Side:
    """Unpack a revision, and make its environment unless there is an interpreter."""
    sha = git("rev-parse", "--verify", f"{base}^{{commit}}").strip()
    root = HERE / "build" / "compare" / sha / "files"
    if not root.exists():
        packed = subprocess.run(["git", "archive", sha], cwd=HERE, check=True, capture_output=True).stdout
        unfinished = root.with_name("unfinished")
        unfinished.mkdir(parents=True, exist_ok=True)
        subprocess.run(["tar", "-x", "-C", str(unfinished)], input=packed, check=True)
        unfinished.rename(root)
    if python is None:
        python = make_environment(root.with_name("venv"), root)
    return Side(root, python.absolute(), older_words(root / "tests" / "compare.py"))


def make_environment(folder: Path, root: Path) -> Path:
    """Install a checkout with its pinned dependencies, unless that is done."""
    python = folder / "bin" / "python"
    done = folder / ".installed"
    if not done.exists():
        venv.create(folder, clear=True, with_pip=True)
        asked = [str(python), "-m", "pip", "install", "-q", "-c", "constraints.txt", "-e", ".[dev]"]
        subprocess.run(asked, cwd=root, check=True, stdout=sys.stderr)
        done.touch()
    return python


def older_words(script: Path) -> dict[str, str]:
    """Return the words that are new here: those of the map that BASE's own map does not have."""
    new_there: dict[str, str] = {}
    if script.exists():
        for node in ast.parse(script.read_text()).body:
            if isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == "RENAMED" and node.value:
                new_there = ast.literal_eval(node.value)
    return {newer: older for newer, older in RENAMED.items() if newer not in new_there}


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", nargs="?", help="revision to compare with")
    parser.add_argument("--allow", action="append", default=[], choices=SCENARIOS, help="scenario that may differ")
    parser.add_argument("--only", action="append", default=[], choices=SCENARIOS, help="run this scenario alone")
    parser.add_argument("--base-python", type=Path, help="interpreter that runs BASE, instead of a new environment")
    for name in ("--run", "--out", "--source", "--words"):  # of the processes that this one starts
        parser.add_argument(name, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.run:
        _older.update(json.loads(asked.words))
        run_here(asked.run, Path(asked.source), Path(asked.out))
        return 0
    if asked.base is None:
        parser.error("give the revision to compare with")
    base = checkout(asked.base, asked.base_python)
    started = time.monotonic()
    rows = []
    with ThreadPoolExecutor(2) as pool:
        for name in asked.only or SCENARIOS:
            results = pool.map(run_scenario, (name, name), (Side(HERE, Path(sys.executable), {}), base))
            rows.append(compare(name, *results))
            print(f"{len(rows)}. {name}", file=sys.stderr)
    print(f"{show(rows)}\n{len(rows)} scenarios, {time.monotonic() - started:.0f} s, BASE {base.root.parent.name[:7]}")
    return int(any(row.largest for row in rows if row.name not in asked.allow))


if __name__ == "__main__":
    sys.exit(main())
