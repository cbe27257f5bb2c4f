"""Parts give what one process gives, whenever they were computed; the cluster is this process."""

import pickle
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import Domains, Ended, write_images

from sohot.runs import cluster, find_images, read_head
from sohot.runs.ray_data import ClusterFailed

Command = Callable[..., Ended]
IMAGES = 81
PARTS = 3


class Killed(BaseException):
    """Ends a command without a word, as a kill does."""


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Compute small parts here, the last first; give the list of those that were, which `-1` in it cuts short."""
    done: list[int] = []

    def run(_, parts, opens):
        compute = pickle.loads(pickle.dumps(opens))("cpu", 1)
        for number, part in reversed(parts.items()):
            if done and done[0] == -1 and len(done) == 2:
                raise Killed
            done.append(number)
            yield number, compute(pickle.loads(pickle.dumps(part)))

    monkeypatch.setattr(cluster, "compute", run)
    monkeypatch.setattr(cluster, "_LEAST", 32)
    return done


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Make more images than a part holds; one of them is damaged."""
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
    assert sorted(computed) == [0, 32, 64]
    assert not (tmp_path / "ray.csv.parts").exists()


@pytest.mark.usefixtures("computed")
def test_runs_are_averaged_as_in_one_process(
    sohot: Command, trained: tuple[Path, Domains], many: Path, tmp_path: Path
) -> None:
    run, domains = trained
    options = ("--shots", 2, "--steps", 3, "--seed", 1, "--quiet", "--out", tmp_path / "second")
    assert sohot("fit", *domains.options(), *options).code == 0
    words = ("predict", run, many, "--with", tmp_path / "second", "--top", 2, "--quiet", "--json", "--out")
    plain, ray = sohot(*words, tmp_path / "plain.csv"), sohot(*words, tmp_path / "ray.csv", "--engine", "ray")
    assert (tmp_path / "ray.csv").read_bytes() == (tmp_path / "plain.csv").read_bytes()
    assert ray.json == {**plain.json, "out": str(tmp_path / "ray.csv")}


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
    assert len(computed) == PARTS


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
    assert len(computed) == PARTS


def test_features_of_several_domains_keep_them_apart(
    sohot: Command, domains: Domains, tmp_path: Path, computed
) -> None:
    words = ["features", domains.source.parent, "--dataset", "domains", "--backbone", "small-cnn", "--image-size", "16"]
    sohot(*words, "--out", tmp_path / "plain.npz")
    assert sohot(*words, "--out", tmp_path / "ray.npz", "--engine", "ray").code == 0
    assert (tmp_path / "ray.npz").read_bytes() == (tmp_path / "plain.npz").read_bytes()
    assert len(computed) == 3  # one of each domain


def test_heads_label_parts_too(sohot: Command, domains: Domains, many: Path, tmp_path: Path, computed) -> None:
    for name in ("source", "target"):
        words = ["--backbone", "small-cnn", "--image-size", "16", "--views", "10"]
        sohot("features", getattr(domains, name), *words, "--out", tmp_path / f"{name}.npz")
    files = ["--source", tmp_path / "source.npz", "--target", tmp_path / "target.npz"]
    assert sohot("fit-features", *files, "--out", tmp_path / "head").code == 0
    assert read_head(tmp_path / "head").network["views"] == 10
    for engine in ("local", "ray"):
        sohot("predict", tmp_path / "head", many, "--engine", engine, "--out", tmp_path / f"{engine}.csv")
    assert (tmp_path / "ray.csv").read_bytes() == (tmp_path / "local.csv").read_bytes()
    assert len(computed) == PARTS


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
    assert len(computed) == 2 * PARTS


# Resuming


def test_only_what_is_missing_is_computed_again(
    sohot: Command, trained: tuple[Path, Domains], many: Path, tmp_path: Path, computed: list[int]
) -> None:
    out, parts = tmp_path / "labels.csv", tmp_path / "labels.csv.parts"
    words = ["predict", trained[0], many, "--out", out, "--engine", "ray"]
    computed.append(-1)
    with pytest.raises(Killed):
        sohot(*words)
    assert computed == [-1, 64]
    assert len(list(parts.iterdir())) == 1
    computed.clear()
    assert sohot(*words, "--top", "2").code == 0  # the same outputs give other columns
    assert computed == [32, 0]
    assert not parts.exists()


def test_parts_of_another_call_are_not_mixed_in(
    sohot: Command, trained: tuple[Path, Domains], many: Path, tmp_path: Path, computed: list[int]
) -> None:
    words = ["predict", trained[0], many, "--out", tmp_path / "labels.csv", "--engine", "ray"]
    computed.append(-1)
    with pytest.raises(Killed):
        sohot(*words)
    (many / "red" / "0.png").unlink()
    computed.clear()
    assert sohot(*words).code == 0
    assert sorted(computed) == [0, 32, 64]
    assert not (tmp_path / "labels.csv.parts").exists()


def test_a_damaged_part_is_named(
    sohot: Command, trained: tuple[Path, Domains], many: Path, tmp_path: Path, computed: list[int]
) -> None:
    words = ["predict", trained[0], many, "--out", tmp_path / "labels.csv", "--engine", "ray"]
    computed.append(-1)
    with pytest.raises(Killed):
        sohot(*words)
    (part,) = (tmp_path / "labels.csv.parts").glob("*.pt")
    part.write_bytes(b"PK")
    computed.clear()
    ended = sohot(*words)
    assert ended.code == 2
    assert f"{part} is damaged" in ended.last
    assert "remove it and run the same command again" in ended.last


# Bad input


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--engine", "dask"], "--engine must be one of local, ray, got 'dask'"),
        (["--address", "10.0.0.1:6379"], "--address needs --engine ray"),
        (["--engine", "ray", "--address", "nowhere", "--out", "x"], "the address of a Ray cluster must be HOST:PORT"),
        (["--engine", "ray"], "--engine ray keeps what is done: give --out a file"),
        (["--engine", "ray", "--out", "-"], "--engine ray keeps what is done: give --out a file"),
        (["--engine", "ray", "--out", "/dev/null"], "--engine ray keeps what is done: give --out a file"),
        (["--engine", "ray", "--out", "x", "--device", "mps"], "--device must be auto, cpu or cuda with --engine ray"),
        (["--engine", "ray", "--out", "x", "--top", "9"], "--top must lie in 1 … 3, the number of classes, got 9"),
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
    ended = sohot("predict", trained[0], tmp_path / "x.npz", "--engine", "ray", "--out", tmp_path / "labels.csv")
    assert ended.last == "sohot: feature files (.npz) are labelled in a moment: leave out --engine ray"


def test_images_that_a_machine_does_not_see_are_no_damage(
    sohot: Command, trained: tuple[Path, Domains], many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unmounted(_, parts, opens):
        for number, (first, images) in parts.items():
            elsewhere = tuple(Path("/elsewhere", file.name) for file in images.files)
            yield number, opens("cpu", 1)((first, replace(images, files=elsewhere)))

    monkeypatch.setattr(cluster, "compute", unmounted)
    ended = sohot("predict", trained[0], many, "--out", tmp_path / "labels.csv", "--engine", "ray")
    assert "images need the same path on all machines" in ended.last


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
        raise ClusterFailed("a worker on node7 failed: out of memory")
        yield

    monkeypatch.setattr(cluster, "compute", fails)
    ended = sohot("predict", trained[0], many, "--out", tmp_path / "labels.csv", "--engine", "ray")
    assert (ended.code, ended.last) == (1, "sohot: a worker on node7 failed: out of memory")
