"""One way to train and test: for runs, folds and cells alike."""

import pytest
import torch
from experiment_work import write_domains

from sohot.data.datasets import open_dataset
from sohot.runs import RunConfig, RunData
from sohot.runs.train_and_test import Fold, train_and_test, train_fold
from sohot.runs.trunk_store import TrunkStore
from sohot.selection.choice import FoldScore
from sohot.training import Diverged

FOLD = Fold(train=(0, 1, 6, 7, 12, 13), held=(2, 8, 14))


@pytest.fixture
def data(tmp_path):
    domains = open_dataset("domains", write_domains(tmp_path / "data")).domains
    return RunData(domains["photos"].classes, domains["photos"], domains["sketches"], None)


def config(**more):
    values = {"method": "so", "backbone": "small-cnn", "image_size": 16, "trains": "paper", "steps": 3}
    return RunConfig(**{**values, "device": "cpu", "read_threads": 0, **more})


def weights(trained):
    return list(trained.model.state_dict().values())


@pytest.mark.parametrize("cache", ["memory", "off"])
def test_a_fold_trains_and_tests_as_its_rows_alone(data, cache):
    asked = config(cache=cache)
    in_fold = train_and_test(asked, data, TrunkStore(), fold=FOLD)
    target = data.target
    alone = RunData(data.classes, data.source, target.subset(FOLD.train), target.subset(FOLD.held))
    trained = train_and_test(asked, alone, TrunkStore())
    assert in_fold.sizes == trained.sizes == (len(data.source), 6, 3)
    for left, right in zip(weights(in_fold), weights(trained), strict=True):
        torch.testing.assert_close(left, right)
    assert in_fold.tested().confusion == trained.tested().confusion
    score = train_fold(asked, data, FOLD, TrunkStore())
    assert (score.right, score.held, score.failure) == (in_fold.tested().correct, 3, None)
    assert score.held_out.labels.tolist() == [target.labels[row] for row in FOLD.held]
    torch.testing.assert_close(torch.tensor(score.held_out.logits).float(), trained.logits)


def test_a_domain_that_the_method_leaves_aside_is_not_trained_on(data):
    sizes = {method: train_and_test(config(method=method), data, TrunkStore()).sizes for method in ("s", "t")}
    assert sizes == {"s": (len(data.source), 0, 0), "t": (0, len(data.target), 0)}


def test_without_images_to_test_on_there_is_no_evaluation(data):
    trained = train_and_test(config(epochs=2, steps=None, batch_rows=8), data, TrunkStore())
    assert trained.evaluation is None
    assert trained.result.steps == trained.settings.steps > 2
    with pytest.raises(ValueError, match="no images to test on"):
        trained.tested()


def test_a_refusal_comes_before_images_pass_the_trunk(data, monkeypatch, tmp_path):
    monkeypatch.setattr("sohot.runs.trunk_store.trunk_outputs", lambda *_: pytest.fail("too late"))

    def refuse(_model, _settings):
        raise ValueError("another run")

    with pytest.raises(ValueError, match="another run"):
        train_and_test(config(out=tmp_path / "run"), data, TrunkStore(), begin=refuse)


def test_a_fold_that_diverges_has_a_score_with_the_reason(data, monkeypatch):
    def diverge(*_, **__):
        raise Diverged("on purpose")

    monkeypatch.setattr("sohot.runs.train_and_test.fit", diverge)
    score = train_fold(config(), data, FOLD, TrunkStore())
    assert score == FoldScore(0, 3, "on purpose")
