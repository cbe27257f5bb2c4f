"""Views behind the trunk: the same whatever the place, the order and the company of an image."""

import numpy as np
import pytest
import torch
from PIL import Image

from sohot.data import AugmentedImages, ImageInputs, LabelledImages, UnreadableImage
from sohot.data.view_set import ViewSet, iter_views
from sohot.runs import RunConfig
from sohot.runs import trunk_outputs as room
from sohot.runs.run_model import build_model
from sohot.runs.trunk_store import TrunkStore
from sohot.training import Inputs
from sohot.training.ranks import Ranks

ROWS = torch.tensor([3, 0, 3, 1, 2])
DRAWN = torch.tensor([0.0, 0.99, 0.4, 0.7, 0.2])
PLACES = ("memory", "device", "disk", "shared")


@pytest.fixture
def images(tmp_path):
    random = np.random.default_rng(0)
    files = [tmp_path / f"{number}.png" for number in range(4)]
    for file in files:
        Image.fromarray(random.integers(0, 256, (16, 18, 3), dtype=np.uint8)).save(file)
    return LabelledImages(tuple(files), (0, 0, 0, 0), ("unlabelled",), tmp_path)


def config(tmp_path, **more):
    options = {"backbone": "small-cnn", "image_size": 16, "trains": "paper", "device": "cpu", "read_threads": 0}
    return RunConfig(**{**options, "out": tmp_path / "run", "pool_views": 3, **more})


class Trial:
    """A store and a network, to ask for views of either strength."""

    def __init__(self, tmp_path, place="memory", **more):
        self.config, self.place = config(tmp_path, **more), place
        self.model = build_model(self.config, 2)
        self.told, self.notes = [], []
        self.store = TrunkStore(tmp_path / "shared" if place == "shared" else None, self.tell, self.notes.append)

    def tell(self, *progress):
        self.told.append(progress)

    def views(self, images, strength, rows=None):
        return self.store.view_inputs(self.config, self.model, "target", images, self.place, strength, rows)


def expected(trial, images):
    """All views of all images, passed through the trunk one image at a time."""
    views = iter_views(images, trial.model.inputs["target"], ViewSet(trial.config.seed, 3), 1, 0)
    with torch.no_grad():
        return torch.stack([trial.model.trunk("target").eval()(one[0]) for one in views])


@pytest.mark.parametrize("place", PLACES)
def test_a_random_view_of_each_row_passed_the_trunk(images, tmp_path, place):
    trial = Trial(tmp_path, place)
    weak, strong, plain = (trial.views(images, strength) for strength in ("weak", "strong", "plain"))
    whole = expected(trial, images)
    close = {"rtol": 0, "atol": 1e-5}
    torch.testing.assert_close(weak.batch(ROWS, DRAWN), whole[ROWS, [0, 2, 1, 2, 0]], **close)
    torch.testing.assert_close(strong.batch(ROWS, DRAWN), whole[ROWS, [3, 5, 4, 5, 3]], **close)
    torch.testing.assert_close(plain.batch(ROWS), whole[ROWS, 0], **close)
    assert all(isinstance(one, Inputs) and len(one) == 4 for one in (weak, strong, plain))
    assert weak.fingerprint() != strong.fingerprint()
    assert trial.told[-1][1:] == (4, 4)
    assert "views of target images (6 each)" in trial.told[-1][0] or place == "shared"
    assert len(trial.told) == 1  # both strengths in one pass


@pytest.mark.parametrize("place", PLACES)
def test_rows_are_a_part_of_the_list(images, tmp_path, place):
    trial = Trial(tmp_path, place)
    for strength in ("weak", "strong"):
        some = trial.views(images, strength, [2, 0])
        assert len(some) == 2
        found = some.batch(torch.tensor([1, 0]), DRAWN[:2])
        assert torch.equal(found, trial.views(images, strength).batch(torch.tensor([0, 2]), DRAWN[:2]))
        alone = Trial(tmp_path / "alone", place).views(images.subset([2, 0]), strength)
        torch.testing.assert_close(alone.batch(torch.tensor([1, 0]), DRAWN[:2]), found, rtol=0, atol=1e-5)


def test_the_seed_decides_and_a_store_made_anew_gives_the_same(images, tmp_path):
    first, again, other = (Trial(tmp_path, seed=seed).views(images, "strong") for seed in (0, 0, 1))
    assert first.fingerprint() == again.fingerprint() != other.fingerprint()


def test_draws_follow_torchs_generator_and_ranks_share_them(images, tmp_path):
    weak = Trial(tmp_path).views(images, "weak")
    torch.manual_seed(1)
    drawn = weak.draw(5)
    assert ((drawn >= 0) & (drawn < 1)).all()
    whole = weak.batch(ROWS, drawn)
    torch.manual_seed(1)
    assert torch.equal(weak.batch(ROWS), whole)
    parts = [weak.batch(ranks.share(ROWS), ranks.share(drawn)) for ranks in (Ranks(2, own) for own in (0, 1))]
    assert torch.equal(torch.cat(parts), whole)
    assert len({one.numpy().tobytes() for _ in range(50) for one in weak.batch(torch.tensor([0]))}) == 3


def test_views_on_disk_and_shared_ones_are_used_again(images, tmp_path, monkeypatch):
    for place in ("disk", "shared"):
        first = Trial(tmp_path, place).views(images, "weak")
        with monkeypatch.context() as patch:
            patch.setattr("sohot.runs.trunk_folder.iter_views", lambda *_: iter([]))  # not to be read again
            again = Trial(tmp_path, place).views(images, "weak")
        assert torch.equal(again.batch(ROWS, DRAWN), first.batch(ROWS, DRAWN))


def test_each_list_has_a_file_of_its_own(images, tmp_path):
    trial = Trial(tmp_path, "disk")
    for rows in ([0, 1], [2]):
        part = images.subset(rows)
        trial.views(part, "weak")
        trial.store.inputs(trial.config, trial.model, "target", part, "disk")
    names = {file.name for file in (tmp_path / "run" / "cache").iterdir()}
    assert names == {f"target{kind}{n}.safetensors" for kind in ("", "-views") for n in ("", "-2")}


@pytest.mark.parametrize(
    ("place", "free"), [("memory", "_free_memory"), ("device", "_free_memory"), ("disk", "_free_disk")]
)
@pytest.mark.parametrize(("views", "kept"), [(2.5, 2), (0, 1), (99, 3)])
def test_fewer_views_where_not_all_fit(images, tmp_path, monkeypatch, place, free, views, kept):
    trial = Trial(tmp_path, place)
    size = 8 * room.output_bytes(trial.model.trunk("target"), trial.model.inputs["target"])
    monkeypatch.setattr(room, free, lambda *_: (1 if place == "disk" else 2) * views * size)
    weak, strong = (trial.views(images, strength) for strength in ("weak", "strong"))
    assert len(weak.views) == len(strong.views) == kept
    asked = "views of each kind that --pool-views asks for"
    note = f"{place} has room for {kept} of the 3 {asked}, for each target image"
    assert trial.store.notes == trial.notes == ([] if kept == 3 else [note])


def test_a_resumed_run_finds_its_views_although_they_fill_the_disk(images, tmp_path, monkeypatch):
    Trial(tmp_path, "disk").views(images, "weak")
    monkeypatch.setattr(room, "_free_disk", lambda _: 0)
    assert len(Trial(tmp_path, "disk").views(images, "weak").views) == 3


@pytest.mark.parametrize("place", PLACES)
def test_source_images_have_weak_views_only(images, tmp_path, place):
    trial, views = Trial(tmp_path, place), []
    for domain in ("source", "target"):
        views.append(trial.store.view_inputs(trial.config, trial.model, domain, images, place, "weak"))
    source, target = views
    torch.testing.assert_close(source.batch(ROWS, DRAWN), target.batch(ROWS, DRAWN), rtol=0, atol=1e-5)
    assert (source.tensors[0].shape[1], target.tensors[0].shape[1]) == (3, 6)
    with pytest.raises(ValueError, match="these images have weak views only"):
        trial.store.view_inputs(trial.config, trial.model, "source", images, place, "strong")


@pytest.mark.parametrize("frozen", [False, True])
def test_without_a_trunk_views_are_made_anew(images, tmp_path, frozen):
    options = {"augment": True} if frozen else {"augment": True, "trains": "all"}
    trial = Trial(tmp_path, "off" if frozen else "memory", **options)
    weak, strong = (trial.views(images, strength, [2, 0, 1]) for strength in ("weak", "strong"))
    assert isinstance(weak, AugmentedImages)
    assert weak._pictures is strong._pictures
    assert weak.draw(3).shape == (3, 5)
    assert strong.draw(3).shape == (3, 13)
    assert weak.batch(torch.arange(3)).shape == strong.batch(torch.arange(3)).shape == (3, 3, 16, 16)


def test_without_augmentation_only_strong_views_of_images_are_random(images, tmp_path):
    trial = Trial(tmp_path, trains="all")
    weak, plain = trial.views(images, "weak", [1, 3]), trial.views(images, "plain", [1, 3])
    assert isinstance(weak, ImageInputs)
    assert torch.equal(weak.batch(torch.arange(2)), plain.batch(torch.arange(2)))
    strong = trial.views(images, "strong", [1, 3])
    assert not torch.equal(strong.batch(torch.arange(2)), strong.batch(torch.arange(2)))


@pytest.mark.parametrize("place", PLACES)
def test_an_image_that_cannot_be_read_is_named(images, tmp_path, place):
    images.files[3].write_bytes(b"")
    with pytest.raises(UnreadableImage, match=r"3\.png cannot be read: the file is empty"):
        Trial(tmp_path, place).views(images, "weak")
