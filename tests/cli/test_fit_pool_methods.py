"""Methods that need unlabelled images, on the command line."""

import pytest

from sohot.methods import POOL_NAMES

FEW = ("--shots", "2", "--steps", "2", "--quiet")


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
