"""Parts give what one process gives, whenever they were computed; the cluster is this process."""

import pickle
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import Domains, Ended, write_images

from sohot.runs import cluster, find_images
from sohot.runs.ray_data import ClusterFailed

Command = Callable[..., Ended]
IMAGES = 81
PARTS = 3
NETWORK = ("--backbone", "small-cnn", "--image-size", "16")


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


@pytest.fixture
def same(sohot: Command, tmp_path: Path) -> Callable[..., dict]:
    """Run a command in one process and on the cluster, and require the same result to the byte."""

    def call(suffix: str, *words: object) -> dict:
        plain, ray = (tmp_path / f"{engine}.{suffix}" for engine in ("plain", "ray"))
        expected = sohot(*words, "--out", plain, "--json").json
        found = sohot(*words, "--out", ray, "--engine", "ray", "--json").json
        assert ray.read_bytes() == plain.read_bytes()
        assert found == {**expected, "out": str(ray)}
        assert not Path(f"{ray}.parts").exists()
        return found

    return call


# What one process gives


@pytest.mark.parametrize("options", ["", "--top 3", "--unknown-below 0.6 --top 2"])
def test_labels_are_those_of_one_process(same, trained: tuple[Path, Domains], many: Path, computed, options: str):
    assert same("csv", "predict", trained[0], many, *options.split())["labelled"] == IMAGES - 1
    assert sorted(computed) == [0, 32, 64]


@pytest.mark.usefixtures("computed")
def test_runs_are_averaged_as_in_one_process(
    same, sohot: Command, trained: tuple[Path, Domains], many: Path, tmp_path: Path
) -> None:
    run, domains = trained
    options = ("--shots", 2, "--steps", 3, "--seed", 1, "--quiet", "--out", tmp_path / "second")
    assert sohot("fit", *domains.options(), *options).code == 0
    same("csv", "predict", run, many, "--with", tmp_path / "second", "--top", 2)


@pytest.mark.parametrize("options", ["", "--views 10", "--no-labels"])
def test_features_are_those_of_one_process(same, many: Path, computed, options: str):
    (many / "green" / "5.png").unlink()
    same("npz", "features", many, *NETWORK, *options.split())
    assert len(computed) == PARTS


def test_features_without_a_damaged_image_are_those_of_one_process(
    sohot: Command, many: Path, tmp_path: Path, computed: list[int]
) -> None:
    words = ["features", many, *NETWORK]
    plain = sohot(*words, "--out", tmp_path / "plain.npz", "--json")
    ray = sohot(*words, "--out", tmp_path / "ray.npz", "--engine", "ray", "--json")
    assert ray.json == {**plain.json, "out": str(tmp_path / "ray.npz")}
    assert [one["path"] for one in ray.json["left_out"]] == [str(many / "green" / "5.png")]
    with np.load(tmp_path / "plain.npz") as one, np.load(tmp_path / "ray.npz") as other:
        for name in one.files:  # other images pass the network together, which changes the last bit
            near = name == "features" and np.allclose(one[name], other[name], atol=1e-6)
            assert near or (one[name] == other[name]).all()
    assert len(computed) == PARTS


def test_features_of_several_domains_keep_them_apart(same, domains: Domains, computed) -> None:
    same("npz", "features", domains.source.parent, "--dataset", "domains", *NETWORK)
    assert len(computed) == 3  # one of each domain


def test_heads_label_parts_too(same, sohot: Command, domains: Domains, many: Path, tmp_path: Path, computed) -> None:
    files = []
    for name in ("source", "target"):
        files += [f"--{name}", tmp_path / f"{name}.npz"]
        sohot("features", getattr(domains, name), *NETWORK, "--views", "10", "--out", files[-1])
    assert sohot("fit-features", *files, "--out", tmp_path / "head").code == 0
    same("csv", "predict", tmp_path / "head", many)
    assert len(computed) == PARTS


def test_shards_of_images_give_what_their_folder_gives(
    same, sohot: Command, trained: tuple[Path, Domains], many: Path, tmp_path: Path, computed
) -> None:
    (many / "green" / "5.png").unlink()
    shard = tmp_path / "many.tar"
    with tarfile.open(shard, "w") as opened:
        for file in find_images([many]):
            opened.add(file, file.relative_to(many))
    same("csv", "predict", trained[0], shard)
    same("npz", "features", shard, *NETWORK)
    assert len(computed) == 2 * PARTS
    sohot("predict", trained[0], many, "--out", tmp_path / "folder.csv")
    sohot("features", many, *NETWORK, "--out", tmp_path / "folder.npz")
    assert (tmp_path / "ray.csv").read_text().replace(f"{shard}/", "") == (tmp_path / "folder.csv").read_text().replace(
        f"{many}/", ""
    )
    assert (tmp_path / "ray.npz").read_bytes() == (tmp_path / "folder.npz").read_bytes()


# Resuming


@pytest.fixture
def killed(sohot: Command, trained: tuple[Path, Domains], many: Path, tmp_path: Path, computed) -> list[object]:
    """The words of a command that was killed when one part was done."""
    words = ["predict", trained[0], many, "--out", tmp_path / "labels.csv", "--engine", "ray"]
    computed.append(-1)
    with pytest.raises(Killed):
        sohot(*words)
    assert computed == [-1, 64]
    assert len(list((tmp_path / "labels.csv.parts").iterdir())) == 1
    computed.clear()
    return words


def test_only_what_is_missing_is_computed_again(sohot: Command, killed, tmp_path: Path, computed) -> None:
    assert sohot(*killed, "--top", "2").code == 0  # the same outputs give other columns
    assert computed == [32, 0]
    assert not (tmp_path / "labels.csv.parts").exists()


def test_parts_of_another_call_are_not_mixed_in(sohot: Command, killed, many: Path, tmp_path: Path, computed) -> None:
    (many / "red" / "0.png").unlink()
    assert sohot(*killed).code == 0
    assert sorted(computed) == [0, 32, 64]
    assert not (tmp_path / "labels.csv.parts").exists()


def test_a_damaged_part_is_named(sohot: Command, killed, tmp_path: Path) -> None:
    (part,) = (tmp_path / "labels.csv.parts").glob("*.pt")
    part.write_bytes(b"PK")
    ended = sohot(*killed)
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
        (
            ["x.npz", "--engine", "ray", "--out", "x"],
            "feature files (.npz) are labelled in a moment: leave out --engine",
        ),
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
    words = ["features", many, *NETWORK]
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
