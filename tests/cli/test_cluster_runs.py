"""Blocks and shards give what one process gives, whenever they were computed; the cluster is this process."""

import json
import pickle
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command_line import Domains, Ended, write_images

from sohot.runs import shards
from sohot.runs.predictions import find_images
from sohot.runs.ray_blocks import BlockFailed, Done, RayBlocks
from sohot.runs.stored_head import read_head

parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow, which reads and writes Parquet, is not installed")

Command = Callable[..., Ended]
IMAGES = 81
BLOCKS = 3


class Killed(BaseException):
    """Ends a command without a word, as a kill does."""


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Compute small blocks here, the last first; give the list of those that were, which `-1` in it cuts short."""
    done: list[int] = []

    def run(_: RayBlocks, blocks, work):
        compute = work.open("cpu", 1)
        for number, block in reversed(list(blocks)):
            if done and done[0] == -1 and len(done) == 2:
                raise Killed
            done.append(number)
            yield Done(number, compute(pickle.loads(pickle.dumps(block))), 1)

    monkeypatch.setattr(RayBlocks, "run", run)
    monkeypatch.setattr(shards, "_LEAST", 32)
    return done


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Make more images than a block holds; one of them is damaged."""
    folder = write_images(tmp_path / "many", IMAGES // 3, 40, seed=7)
    (folder / "green" / "5.png").write_bytes(b"\x89PNG")
    return folder


# What one process gives


@pytest.mark.parametrize("options", [[], ["--top", "3"], ["--unknown-below", "0.6", "--top", "2"]], ids=str)
def test_labels_are_those_of_one_process_to_the_byte(
    sohot: Command, trained: tuple[Path, Domains], many: Path, tmp_path: Path, computed: list[int], options: list[str]
) -> None:
    plain = sohot("predict", trained[0], many, *options, "--out", tmp_path / "plain.csv", "--json")
    ray = sohot("predict", trained[0], many, *options, "--out", tmp_path / "ray.csv", "--engine", "ray", "--json")
    assert (tmp_path / "ray.csv").read_bytes() == (tmp_path / "plain.csv").read_bytes()
    assert ray.json == {**plain.json, "out": str(tmp_path / "ray.csv")}
    assert ray.json["labelled"] == IMAGES - 1
    assert sorted(computed) == [0, 1, 2]
    assert not (tmp_path / "ray.csv.shards").exists()


def test_shards_are_a_table_that_others_read(
    sohot: Command, trained: tuple[Path, Domains], many: Path, tmp_path: Path, computed: list[int]
) -> None:
    out = tmp_path / "labels"
    ended = sohot("predict", trained[0], many, "--top", "2", "--out", out, "--engine", "ray")
    assert ended.code == 0
    assert computed
    assert f"{IMAGES - 1} images labelled in {out}, 1 could not be read" in ended.out
    table = parquet.read_table(out)
    assert table.column_names == ["file", "label", "probability", "label_2", "probability_2"]
    sohot("predict", trained[0], many, "--top", "2", "--out", tmp_path / "plain.csv")
    files = [line.split(",")[0] for line in (tmp_path / "plain.csv").read_text().splitlines()[1:]]
    assert table.column("file").to_pylist() == files


@pytest.mark.parametrize("options", [[], ["--views", "10"], ["--no-labels"]], ids=str)
def test_features_are_those_of_one_process_to_the_byte(
    sohot: Command, many: Path, tmp_path: Path, computed: list[int], options: list[str]
) -> None:
    (many / "green" / "5.png").unlink()
    words = ["features", many, "--backbone", "small-cnn", "--image-size", "16", *options]
    plain = sohot(*words, "--out", tmp_path / "plain.npz", "--json")
    ray = sohot(*words, "--out", tmp_path / "ray.npz", "--engine", "ray", "--json")
    assert (tmp_path / "ray.npz").read_bytes() == (tmp_path / "plain.npz").read_bytes()
    assert ray.json == {**plain.json, "out": str(tmp_path / "ray.npz")}
    assert len(computed) == BLOCKS


def test_features_without_a_damaged_image_are_those_of_one_process(
    sohot: Command, many: Path, tmp_path: Path, computed: list[int]
) -> None:
    words = ["features", many, "--backbone", "small-cnn", "--image-size", "16"]
    plain = sohot(*words, "--out", tmp_path / "plain.npz", "--json")
    ray = sohot(*words, "--out", tmp_path / "ray.npz", "--engine", "ray", "--json")
    assert ray.json == {**plain.json, "out": str(tmp_path / "ray.npz")}
    assert [one["path"] for one in ray.json["left_out"]] == [str(many / "green" / "5.png")]
    with np.load(tmp_path / "plain.npz") as one, np.load(tmp_path / "ray.npz") as other:
        for name in one.files:  # other images pass the network together, which changes the last bit
            assert (
                np.allclose(one[name], other[name], atol=1e-6)
                if name == "features"
                else (one[name] == other[name]).all()
            )
    assert len(computed) == BLOCKS


def test_features_of_several_domains_keep_them_apart(
    sohot: Command, domains: Domains, tmp_path: Path, computed
) -> None:
    words = ["features", domains.source.parent, "--dataset", "domains", "--backbone", "small-cnn", "--image-size", "16"]
    sohot(*words, "--out", tmp_path / "plain.npz")
    assert sohot(*words, "--out", tmp_path / "ray.npz", "--engine", "ray").code == 0
    assert (tmp_path / "ray.npz").read_bytes() == (tmp_path / "plain.npz").read_bytes()
    assert len(computed) == 3  # one of each domain


def test_heads_label_blocks_too(sohot: Command, domains: Domains, many: Path, tmp_path: Path, computed) -> None:
    for name in ("source", "target"):
        words = ["--backbone", "small-cnn", "--image-size", "16", "--views", "10"]
        sohot("features", getattr(domains, name), *words, "--out", tmp_path / f"{name}.npz")
    files = ["--source", tmp_path / "source.npz", "--target", tmp_path / "target.npz"]
    assert sohot("fit-features", *files, "--out", tmp_path / "head").code == 0
    assert read_head(tmp_path / "head").network["views"] == 10
    for engine in ("local", "ray"):
        sohot("predict", tmp_path / "head", many, "--engine", engine, "--out", tmp_path / f"{engine}.csv")
    assert (tmp_path / "ray.csv").read_bytes() == (tmp_path / "local.csv").read_bytes()
    assert len(computed) == BLOCKS


def test_shards_of_images_give_what_their_folder_gives(
    sohot: Command, trained: tuple[Path, Domains], many: Path, tmp_path: Path, computed: list[int]
) -> None:
    (many / "green" / "5.png").unlink()
    with tarfile.open(tmp_path / "many.tar", "w") as opened:
        for file in find_images([many]):
            opened.add(file, file.relative_to(many))
    labels, features = {}, {}
    for place, engine in ((many, "local"), (tmp_path / "many.tar", "local"), (tmp_path / "many.tar", "ray")):
        key, out = (place.suffix, engine), tmp_path / f"{place.name}-{engine}"
        assert sohot("predict", trained[0], place, "--engine", engine, "--out", f"{out}.csv").code == 0
        labels[key] = Path(f"{out}.csv").read_text().replace(f"{place}/", "")
        words = ["features", place, "--backbone", "small-cnn", "--image-size", "16", "--engine", engine]
        assert sohot(*words, "--out", f"{out}.npz").code == 0
        features[key] = Path(f"{out}.npz").read_bytes()
    assert labels["", "local"] == labels[".tar", "local"] == labels[".tar", "ray"]
    assert features["", "local"] == features[".tar", "local"] == features[".tar", "ray"]
    assert len(computed) == 2 * BLOCKS


# Resuming


def test_only_what_is_missing_is_computed_again(
    sohot: Command, trained: tuple[Path, Domains], many: Path, tmp_path: Path, computed: list[int]
) -> None:
    words = ["predict", trained[0], many, "--out", tmp_path / "labels", "--engine", "ray"]
    computed.append(-1)
    with pytest.raises(Killed):
        sohot(*words)
    assert computed == [-1, 2]
    computed.clear()
    ended = sohot(*words)
    assert "1 of 3 shards are there already" in ended.err
    assert computed == [1, 0]
    computed.clear()
    again = sohot(*words)
    assert (again.code, again.out) == (0, ended.out)
    assert not computed
    assert sorted(file.name for file in (tmp_path / "labels").iterdir())[0] == "_job.json"


@pytest.mark.parametrize(
    ("change", "said"),
    [(["--top", "2"], "top 1, now 2"), (["--unknown-below", "0.5"], "unknown_below None, now 0.5")],
    ids=str,
)
def test_shards_of_another_call_are_refused(
    sohot: Command, trained: tuple[Path, Domains], many: Path, tmp_path: Path, computed: list[int], change, said: str
) -> None:
    words = ["predict", trained[0], many, "--out", tmp_path / "labels", "--engine", "ray"]
    sohot(*words)
    computed.clear()
    ended = sohot(*words, *change)
    assert ended.code == 2
    assert f"labels holds shards of another call ({said}): give another folder, or remove this one" in ended.last
    (many / "red" / "0.png").unlink()
    assert f"(images {IMAGES}, now {IMAGES - 1})" in sohot(*words).last
    assert not computed
    for shard in (tmp_path / "labels").glob("part-*"):
        shard.unlink()
    assert sohot(*words, *change).code == 0  # nothing is mixed where nothing is


# Bad input


def test_a_folder_with_other_things_is_refused(
    sohot: Command, trained: tuple[Path, Domains], many: Path, computed: list[int]
) -> None:
    ended = sohot("predict", trained[0], many, "--out", many, "--engine", "ray")
    assert (ended.code, ended.last) == (
        2,
        f"sohot: --out {many} is a folder with other things in it: give a new or an empty folder",
    )
    assert not computed


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda file: file.write_text("{"), "_job.json is damaged: give another folder, or remove this one"),
        (lambda file: file.write_text(json.dumps({"sha256": "0"})), "_job.json is damaged"),
        (
            lambda file: next(file.parent.glob("part-*")).write_bytes(b"PAR1"),
            "remove it and run the same command again",
        ),
    ],
)
def test_damaged_shards_are_named(
    sohot: Command, trained: tuple[Path, Domains], many: Path, tmp_path: Path, computed: list[int], spoil, said: str
) -> None:
    words = ["predict", trained[0], many, "--out", tmp_path / "labels", "--engine", "ray"]
    sohot(*words)
    spoil(tmp_path / "labels" / shards.JOB)
    ended = sohot(*words)
    assert ended.code == 2
    assert said in ended.last
    assert computed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--engine", "dask"], "--engine must be one of local, ray, got 'dask'"),
        (["--address", "10.0.0.1:6379"], "--address needs --engine ray"),
        (["--engine", "ray", "--address", "nowhere", "--out", "x"], "the address of a Ray cluster must be HOST:PORT"),
        (["--engine", "ray"], "--engine ray keeps what is done: give --out a file, or a folder for Parquet shards"),
        (["--engine", "ray", "--out", "-"], "--engine ray keeps what is done: give --out a file, or a folder"),
        (["--engine", "ray", "--out", "x", "--device", "mps"], "--device must be auto, cpu or cuda with --engine ray"),
        (["--engine", "ray", "--out", "x", "--top", "9"], "--top must lie in 1 … 3, the number of classes, got 9"),
        (["--engine", "ray", "--out", "/nowhere/x"], "--out /nowhere/x: the folder around it does not exist"),
        (["--engine", "ray", "--out", "/nowhere/x.csv"], "--out /nowhere/x.csv: its folder does not exist"),
    ],
    ids=str,
)
def test_wrong_options_end_in_one_sentence(
    sohot: Command, trained: tuple[Path, Domains], many: Path, computed: list[int], words: list[str], said: str
) -> None:
    ended = sohot("predict", trained[0], many, *words)
    assert ended.code == 2
    assert said in ended.last
    assert not computed


def test_feature_files_need_no_cluster(sohot: Command, tmp_path: Path, trained: tuple[Path, Domains]) -> None:
    ended = sohot("predict", trained[0], tmp_path / "x.npz", "--engine", "ray", "--out", tmp_path / "labels")
    assert ended.last == "sohot: feature files (.npz) are labelled in a moment: leave out --engine ray"


def test_images_that_a_machine_does_not_see_are_no_damage(
    sohot: Command, trained: tuple[Path, Domains], many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unmounted(_: RayBlocks, blocks, work):
        ((number, block),) = blocks
        elsewhere = [Path("/elsewhere", file.name) for file in block]
        yield Done(number, work.open("cpu", 1)(elsewhere), 1)

    monkeypatch.setattr(RayBlocks, "run", unmounted)
    ended = sohot("predict", trained[0], many, "--out", tmp_path / "labels", "--engine", "ray")
    assert "images must have the same path on every machine" in ended.last


def test_a_lost_class_is_told_as_one_process_tells_it(
    sohot: Command, many: Path, tmp_path: Path, computed: list[int]
) -> None:
    for file in (many / "green").iterdir():
        file.write_bytes(b"")
    words = ["features", many, "--backbone", "small-cnn", "--image-size", "16"]
    plain, ray = (sohot(*words, "--out", tmp_path / f"{engine}.npz", "--engine", engine) for engine in ("local", "ray"))
    assert (ray.code, ray.last) == (plain.code, plain.last)
    assert "of class 'green'" in ray.last
    assert computed


def test_what_fails_in_a_worker_is_told(
    sohot: Command, trained: tuple[Path, Domains], many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_):
        raise BlockFailed("a worker on node7 failed: out of memory")
        yield

    monkeypatch.setattr(RayBlocks, "run", fails)
    ended = sohot("predict", trained[0], many, "--out", tmp_path / "labels", "--engine", "ray")
    assert (ended.code, ended.last) == (1, "sohot: a worker on node7 failed: out of memory")
