"""Features in one file: what is written comes back, and other files are refused."""

import io
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from command_line import make_domains
from PIL import Image

from sohot.data import load_batch, take_shots
from sohot.networks import create_backbone
from sohot.runs.feature_extraction import extract, find_domains
from sohot.runs.feature_set import FeatureSet, read_features, read_rows, write_features
from sohot.runs.feature_split import split_features, with_classes


def some_features(rows: int = 12, seed: int = 0, domain: str = "photos") -> FeatureSet:
    labels = np.arange(rows) % 3
    features = np.random.default_rng(seed).normal(size=(rows, 4)).astype(np.float32)
    return FeatureSet(
        features,
        labels,
        ("bike", "mug", "café"),
        tuple(f"{label}/{row}.png" for row, label in enumerate(labels)),
        tuple(f"{domain} {seed} {row}" for row in range(rows)),
        np.zeros(rows, dtype=np.int64),
        (domain,),
        {"backbone": "tiny", "input": {"size": 8}},
    )


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    written = some_features()
    write_features(tmp_path / "a.npz", written)
    read = read_features(tmp_path / "a.npz")
    for name in ("features", "labels", "domains"):
        np.testing.assert_array_equal(getattr(read, name), getattr(written, name))
    for name in ("classes", "files", "contents", "domain_names", "network"):
        assert getattr(read, name) == getattr(written, name)
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no such feature file"):
        read_features(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("no zip")
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    np.savez(tmp_path / "pickle.npz", format=np.array([{}], dtype=object))
    write_features(tmp_path / "cut.npz", some_features())
    (tmp_path / "cut.npz").write_bytes((tmp_path / "cut.npz").read_bytes()[:900])
    for name in ("text", "other", "pickle", "cut"):
        with pytest.raises(ValueError, match=f"{name}.npz is not a feature file"):
            read_features(tmp_path / f"{name}.npz")


def test_damaged_and_hostile_files_end_in_a_sentence(tmp_path: Path) -> None:
    write_features(tmp_path / "good.npz", some_features())
    with np.load(tmp_path / "good.npz") as arrays:
        good = dict(arrays)
    np.save(tmp_path / "array.npy", np.zeros(3))
    (tmp_path / "array.npy").rename(tmp_path / "array.npz")
    for name in good:
        np.savez(tmp_path / f"no-{name}.npz", **{key: array for key, array in good.items() if key != name})
        for place, odd in enumerate((np.zeros((2, 2, 2)), np.zeros(0), np.asarray("x"), np.asarray(["{}"] * 3))):
            np.savez(tmp_path / f"odd-{name}-{place}.npz", **{**good, name: odd})
    np.savez(tmp_path / "deep.npz", **{**good, "network": np.asarray("[" * 10**5)})
    content = (tmp_path / "good.npz").read_bytes()
    for place in range(0, len(content), len(content) // 40):
        flipped = content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :]
        (tmp_path / f"flipped-{place}.npz").write_bytes(flipped)
    for file in sorted(tmp_path.iterdir()):
        try:
            read_features(file)
        except ValueError as error:
            assert f"{file} is not a feature file written by `sohot features`: " in str(error)  # noqa: PT017
        else:
            assert file.name.startswith(("good", "flipped", "odd")), file.name


def test_what_unpacks_to_more_than_the_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header = io.BytesIO()
    about = {"descr": "<f4", "fortran_order": False, "shape": (10**6, 10**6)}
    np.lib.format.write_array_header_1_0(header, about)
    write_features(tmp_path / "good.npz", some_features())
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w") as new, zipfile.ZipFile(tmp_path / "good.npz") as old:
        for info in old.infolist():
            new.writestr(info, header.getvalue() if info.filename == "features.npy" else old.read(info))
    with pytest.raises(ValueError, match=r"bomb\.npz is not a feature file"):
        read_features(tmp_path / "bomb.npz")
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=100))
    with pytest.raises(ValueError, match="GB of memory are free"):
        read_features(tmp_path / "good.npz")


def test_features_of_views_are_the_average_of_the_parts(tmp_path: Path) -> None:
    folder = make_domains(tmp_path).target
    for number in range(2):
        half = np.random.default_rng(number).integers(0, 256, (16, 9, 3), dtype=np.uint8)
        symmetric = np.concatenate([half, half[:, ::-1]], axis=1)
        Image.fromarray(symmetric).save(folder / "red" / f"symmetric-{number}.png")
    torch.manual_seed(0)
    backbone = create_backbone("small-cnn", size=16).eval()
    domains, _ = find_domains(folder)
    images = domains["target"]
    found = {views: extract(domains, backbone, views=views) for views in (1, 2, 7)}
    np.testing.assert_array_equal(found[1].features, extract(domains, backbone).features)
    for views in (2, 7):
        with torch.no_grad():
            parts = backbone(load_batch(images, range(len(images)), backbone.input, views=views).flatten(0, 1))
        expected = parts.view(len(images), views, -1).mean(1).numpy()
        np.testing.assert_allclose(found[views].features, expected, atol=1e-6)
        assert found[views].network == {**found[1].network, "views": views}
    mirrored = np.asarray(["symmetric" in file for file in found[1].files])
    np.testing.assert_allclose(found[1].features[mirrored], found[2].features[mirrored], atol=1e-6)
    assert np.abs(found[1].features[~mirrored] - found[2].features[~mirrored]).max() > 1e-3
    with pytest.raises(ValueError, match=r"different networks made .* views 2 and 1"):
        split_features(found[2], found[1])


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"a": np.eye(3)}, "no array 'features'"),
        ({"features": np.asarray([["a"]])}, "rows and columns"),
        ({"features": np.zeros((0, 3))}, "shape"),
        ({"features": np.full((2, 3), np.nan)}, "finite"),
    ],
)
def test_tables_of_other_programs_hold_rows_of_finite_numbers(
    tmp_path: Path, arrays: dict[str, np.ndarray], sentence: str
) -> None:
    np.savez(tmp_path / "odd.npz", **arrays)
    with pytest.raises(ValueError, match=f"odd.npz is not a file of features: .*{sentence}"):
        read_rows(tmp_path / "odd.npz")


def test_nothing_both_trains_and_tests() -> None:
    split = split_features(some_features(30), some_features(15, 1, "art"), shots=2)
    assert len(split.target) == 6
    assert split.test is not None
    assert len(split.test) == 9
    assert not set(split.target.contents) & set(split.test.contents)
    assert np.bincount(split.target.labels).tolist() == [2, 2, 2]


def test_a_copy_of_a_training_image_does_not_test() -> None:
    target = some_features(15, 1)
    test = replace(some_features(6, 2), contents=(*target.contents[:2], "new 1", "new 2", "new 3", "new 4"))
    split = split_features(some_features(30), target, test)
    assert split.test is not None
    assert len(split.test) == 4
    assert any("2 images byte-identical" in note for note in split.notes)


def test_the_choice_is_that_of_the_images() -> None:
    target = some_features(15, 1)
    chosen, _ = take_shots(target.images(), 2, seed=5)
    split = split_features(some_features(30), target, shots=2, seed=5)
    names = {chosen.name(row) for row in range(len(chosen))}
    assert set(split.target.files) == names


def test_classes_meet_by_name_not_by_number() -> None:
    turned = replace(some_features(9), classes=("mug", "café", "bike"))
    same = with_classes(turned, ("bike", "café", "mug"))
    assert (same.names() == turned.names()).all()
    assert same.classes == ("bike", "café", "mug")


def test_what_does_not_fit_ends_in_a_sentence() -> None:
    source, target = some_features(12), some_features(12, 1)
    other = replace(target, network={"backbone": "huge", "input": {"size": 8}})
    with pytest.raises(
        ValueError, match="different networks made the features of --source and --target: backbone 'tiny'"
    ):
        split_features(source, other)
    assert split_features(source, other, any_network=True).test is None
    with pytest.raises(ValueError, match="--target and --test"):
        split_features(source, target, other, any_network=True)
    with pytest.raises(ValueError, match="5 shots per class"):
        split_features(source, target, shots=5)
    renamed = replace(target, classes=("bike", "mug", "tea"))
    with pytest.raises(ValueError, match="in the source 'café'; in the target 'tea'; leave them out"):
        split_features(source, renamed)
    assert split_features(source, renamed, leave_out=True).classes == ("bike", "mug")
    with pytest.raises(ValueError, match="test classes that were not trained: 'tea'"):
        split_features(source, target, renamed)
    some = replace(target, labels=np.where(target.labels == 1, -1, target.labels))
    with pytest.raises(ValueError, match="--test: 4 rows have no label"):
        split_features(source, target, some)
    with pytest.raises(ValueError, match="share 0 classes"):
        split_features(source, replace(target, classes=("a", "b", "c")))
