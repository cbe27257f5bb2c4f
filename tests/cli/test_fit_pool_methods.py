"""Methods that need unlabelled images, on the command line."""

import pytest
import torch

from sohot.methods import POOL_NAMES
from sohot.runs import logits_of, open_run, read_outputs
from sohot.runs.loaded_run import images_for

FEW = ("--shots", "2", "--steps", "2", "--quiet")


def test_a_run_of_minimax_entropy_is_loaded_with_its_classifier_of_directions(sohot, domains, tmp_path):
    run = tmp_path / "run"
    tested = ("--unlabelled", domains.test, "--target-test", domains.test)
    done = sohot("fit", *domains.options(), "--steps", "2", "--quiet", *tested, "--method", "mme", "--out", run)
    assert done.code == 0, done.err
    loaded, recorded = open_run(run), read_outputs(run)
    assert loaded.model.cosine == 0.05
    images = images_for(loaded, domains.test)[0]
    torch.testing.assert_close(logits_of(loaded, images), recorded.logits)


@pytest.mark.parametrize("name", POOL_NAMES)
def test_without_unlabelled_images_one_sentence_says_what_is_missing(sohot, domains, tmp_path, name):
    done = sohot("fit", *domains.options(), *FEW, "--method", name, "--out", tmp_path / "run")
    assert done.code == 2
    assert f"--method {name} learns from unlabelled target images: give their folder as --unlabelled" in done.last
    assert not (tmp_path / "run").exists()


def test_the_demo_has_no_unlabelled_images(sohot, tmp_path):
    done = sohot("demo", "--methods", "s+t,mcc", "--out", tmp_path / "demo")
    assert done.code == 2
    assert "'mcc' learns from unlabelled images, which the demo does not have" in done.last
