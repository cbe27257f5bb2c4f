"""What a GPU must not change, and what it does in its own way. Skipped where there is none."""

import pytest
import standin
import torch
from command_line import make_domains, overriding, weights

from sohot.cli import main
from sohot.data import AugmentedImages, InputSpec, scan_folder
from sohot.training import Diverged
from sohot.training.logs import read_csv_log
from sohot.training.run_files import checkpoint_folders
from sohot.training.trainer import READ_EVERY

from .test_resume import Stop, stop_at

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU"),
    pytest.mark.filterwarnings("ignore"),  # kernels without a deterministic form say so
]
KINDS = [
    {"method": "so+zeta"},
    {"method": "so+to", "precision": "bf16-mixed"},
    {"precision": "16-mixed", "clip_norm": 1},
]


def difference(one, other):
    first, second = one.state_dict(), other.state_dict()
    assert list(first) == list(second)
    return max(float((first[name].cpu().double() - second[name].cpu().double()).abs().max()) for name in first)


def test_a_gpu_trains_to_the_weights_of_a_processor(train):
    models = [standin.SmallStreams() for _ in range(2)]
    for model, device in zip(models, ("cpu", "cuda"), strict=True):
        model.tail[3].p = 0.0
        train(model, device=device, method="so+zeta", steps=8, batches=standin.RandomRows(24, 9))
    assert difference(*models) < 1e-4


@pytest.mark.parametrize("options", KINDS)
def test_a_resumed_run_ends_where_an_undisturbed_one_does(train, tmp_path, options):
    options = {**options, "steps": 50, "checkpoint_every": 12, "device": "cuda"}
    options["batches"] = standin.RandomRows(24, 9)
    whole = train(run_dir=tmp_path / "whole", **options)
    with pytest.raises(Stop):
        train(run_dir=tmp_path / "cut", on_step=stop_at(37), **options)
    rest = train(run_dir=tmp_path / "cut", resume=True, **options)
    assert rest.resumed_from == 36
    assert difference(whole.model, rest.model) < 1e-6
    assert whole.history[-1]["loss"] < whole.history[0]["loss"]
    assert [row["step"] for row in read_csv_log(tmp_path / "cut" / "log.csv")] == list(range(1, 51))


def test_divergence_is_seen_soon_and_never_saved(train, tmp_path):
    with pytest.raises(Diverged, match=r"the loss is \S+ at step \d+"):
        train(device="cuda", lr=1e20, steps=500, run_dir=tmp_path, checkpoint_every=50)
    assert not checkpoint_folders(tmp_path / "checkpoints")
    assert len(read_csv_log(tmp_path / "log.csv")) <= READ_EVERY


def test_compiled_streams_train_to_the_same_weights(train):
    models = [standin.SmallStreams() for _ in range(2)]
    for model, compile in zip(models, (False, True), strict=True):
        model.tail[3].p = 0.0
        train(model, device="cuda", compile=compile, steps=8)
    assert difference(*models) < 1e-4


def test_the_trunk_may_be_cached_on_the_gpu(tmp_path, capsys):
    domains = make_domains(tmp_path)
    options = ["--device", "cuda", "--shots", "2", "--steps", "25", "--quiet", "--trains", "head"]
    for cache in ("device", "memory", "disk", "off"):
        with pytest.raises(SystemExit) as ended:
            main(overriding(["fit", *domains.options(), *options, "--cache", cache, "--out", tmp_path / cache]))
        assert not ended.value.code, capsys.readouterr().err
    assert weights(tmp_path / "device") == weights(tmp_path / "memory") == weights(tmp_path / "disk")


def test_augmented_images_are_read_ahead(tmp_path, capsys):
    domains = make_domains(tmp_path)
    options = ["--device", "cuda", "--shots", "2", "--quiet", "--augment", "--checkpoint-every", "7", "--steps", "20"]
    for precision in ("32-true", "bf16-mixed", "16-mixed"):
        with pytest.raises(SystemExit) as ended:
            main(
                overriding(
                    ["fit", *domains.options(), *options, "--precision", precision, "--out", tmp_path / precision]
                )
            )
        assert not ended.value.code, capsys.readouterr().err


@pytest.mark.parametrize("gpu_room", [0, 1e9])
def test_a_gpu_crops_as_a_processor_does(tmp_path, gpu_room):
    domains = make_domains(tmp_path)
    images = scan_folder(domains.source, check=False).images
    spec = InputSpec(size=12, mean=(0.5,) * 3, std=(0.5,) * 3, resize=14)
    rows, drawn = torch.arange(len(images)), torch.rand(len(images), 5, dtype=torch.float64)
    expected = AugmentedImages(images, spec, lambda: 1e9).batch(rows, drawn)
    inputs = AugmentedImages(images, spec, lambda: 1e9, None, torch.device("cuda", 0), lambda: gpu_room)
    for _ in range(2):
        found = inputs.batch(rows, drawn)
        assert found.is_cuda
        torch.testing.assert_close(found.cpu(), expected, rtol=0, atol=2.5 / 255 / 0.5)
