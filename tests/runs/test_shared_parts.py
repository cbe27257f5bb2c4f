"""What trainings share: made once, and nobody's training changes what the next one gets."""

import pytest
import torch
from pretrained import write_weights

from sohot.data import LabelledImages
from sohot.runs import RunConfig
from sohot.runs import shared_parts as module
from sohot.runs.run_model import build_model
from sohot.runs.run_outputs import Shown
from sohot.runs.shared_parts import MOST, MOST_STARTS, SharedParts


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    weights = write_weights(tmp_path_factory.mktemp("weights"))
    return RunConfig(backbone="small-cnn", image_size=16, weights=weights, device="cpu", trains="head")


def same(one, other):
    pairs = zip(one.state_dict().items(), other.state_dict().items(), strict=True)
    return all(name == again and left.equal(right) for (name, left), (again, right) in pairs)


def test_a_network_is_the_one_that_would_be_built_whatever_became_of_others(config):
    parts = SharedParts()
    first = parts.network(config, 3)
    assert same(first, build_model(config, 3))
    with torch.no_grad():
        for parameter in [*first.tails.parameters(), *first.heads.parameters()]:
            parameter.add_(1)
    second = parts.network(config, 3)
    assert same(second, build_model(config, 3))
    assert second.trunk("target") is first.trunk("target")  # it never changes
    strides = [x.stride() for x in build_model(config, 3).parameters()]
    assert [x.stride() for x in second.parameters()] == strides


def test_a_training_in_float64_has_a_trunk_of_its_own(config):
    parts = SharedParts()
    networks = [parts.network(RunConfig(**{**vars(config), "precision": "64-true"}), 3) for _ in range(2)]
    networks[0].double()
    assert networks[1].trunk("target") is not networks[0].trunk("target")
    assert same(networks[1], build_model(config, 3))


def test_each_network_is_built_once_while_it_is_in_use(config, monkeypatch):
    built = []
    monkeypatch.setattr(module, "build_model", lambda *given: built.append(given[1]) or build_model(*given))
    parts = SharedParts()
    for classes in (2, 3, 2, 3, *range(4, 4 + MOST), 2):
        parts.network(config, classes)
    assert built == [2, 3, *range(4, 4 + MOST), 2]


def test_a_classifier_is_solved_once_for_its_images_and_options(config):
    parts, solved = SharedParts(), []
    shown = [Shown(LabelledImages([f"{number}.png"], [0], ["mug"])) for number in range(MOST_STARTS)]
    for _ in range(2):
        for one in shown:
            parts.start(config, one, Shown(), None, lambda one=one: solved.append(one) or one)
    assert solved == shown
    changed = RunConfig(**{**vars(config), "head_decay": 0.5})
    parts.start(changed, shown[0], Shown(), None, lambda: solved.append("again") or shown[0])
    parts.start(changed, shown[0], Shown(), shown[1], lambda: solved.append("with a pool") or shown[0])
    assert solved == [*shown, "again", "with a pool"]
