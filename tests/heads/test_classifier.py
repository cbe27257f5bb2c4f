"""SoHoTClassifier: laws over domains and orders of rows, kinds of input, and what is refused."""

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import safetensors.torch
import scipy.sparse
import torch
from safetensors import safe_open
from sklearn.base import clone
from two_domains import two_domains

import sohot
from sohot import SoHoTClassifier, SoHoTClassifierCV
from sohot.heads import domains as tables
from sohot.methods import METHOD_NAMES, OTHER_NAMES, HeadSettings

DATA = two_domains()
SOURCE, TARGET = DATA.sample_domain > 0, DATA.sample_domain < 0


def fitted(method: str = "so", **params: Any) -> SoHoTClassifier:
    params = {"steps": 25, "random_state": 0, **params}
    return SoHoTClassifier(method, **params).fit(DATA.X, DATA.y, sample_domain=DATA.sample_domain)


def assert_same(one: SoHoTClassifier, other: SoHoTClassifier, tolerance: float = 1e-4) -> None:
    np.testing.assert_allclose(one.predict_proba(DATA.test), other.predict_proba(DATA.test), atol=tolerance)


def test_defaults_are_those_of_the_trainer() -> None:
    assert SoHoTClassifier(random_state=0).settings() == HeadSettings()


@pytest.mark.parametrize("method", [*METHOD_NAMES, *OTHER_NAMES])
def test_every_method_learns(method: str) -> None:
    classifier = fitted(method, steps=60, calibrate=False)
    assert classifier.score(DATA.test, DATA.test_labels) > 0.6
    losses = classifier.history_["loss"]
    if method in ("s", "t", "s+t"):  # the minimum, without a step
        assert len(losses) == 1
    else:
        assert len(losses) == 60
        assert losses[-1] < losses[0]


@pytest.mark.parametrize("streams", ["shared", "separate"])
@pytest.mark.parametrize("heads", ["shared", "coupled"])
@pytest.mark.parametrize("hidden", [None, 4])
def test_every_form_of_network_learns(streams: str, heads: str, hidden: int | None) -> None:
    classifier = fitted(streams=streams, heads=heads, hidden=hidden, steps=60, calibrate=False)
    assert classifier.score(DATA.test, DATA.test_labels) > 0.6
    assert classifier.score(DATA.X[SOURCE], DATA.y[SOURCE], sample_domain=1) > 0.9


def test_numbers_of_other_methods_reach_the_trainer() -> None:
    params = {"loss_weight": 0.2, "margin": 3.0, "temperature": 0.5, "l2_sp": 0.1, "head_first": 0.25}
    settings = fitted("ccsa", **params).fit_.settings
    assert {name: getattr(settings, name) for name in params} == params
    assert not np.allclose(fitted("dsne", margin=9.0).history_["loss"], fitted("dsne").history_["loss"])


def test_careful_training_does_without_a_second_domain() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = SoHoTClassifier("lp-ft", head_first=1.0, steps=5).fit(DATA.X, DATA.y).fit_
        assert not found.parameters["target.map"].any()
        assert SoHoTClassifier("l2-sp", steps=5).fit(DATA.X, DATA.y).fit_.settings.l2_sp == 0.01
        SoHoTClassifier("ccsa", steps=5).fit(DATA.X, DATA.y)


def test_the_order_of_rows_does_not_matter() -> None:
    order = np.random.default_rng(1).permutation(len(DATA.y))
    other = SoHoTClassifier("so", steps=25).fit(DATA.X[order], DATA.y[order], sample_domain=DATA.sample_domain[order])
    assert_same(fitted(), other)


def test_two_tables_are_the_same_as_one_with_domains() -> None:
    other = SoHoTClassifier("so", steps=25).fit(
        DATA.X[SOURCE], DATA.y[SOURCE], X_target=DATA.X[TARGET], y_target=DATA.y[TARGET]
    )
    assert_same(fitted(), other)


def test_several_sources_are_pooled() -> None:
    domains = np.where(SOURCE, np.arange(len(DATA.y)) % 3 + 1, -1)
    assert_same(fitted(), SoHoTClassifier("so", steps=25).fit(DATA.X, DATA.y, sample_domain=domains))


def test_a_large_offset_costs_nothing() -> None:
    far = SoHoTClassifier("so", steps=25).fit(DATA.X + 1e6, DATA.y, sample_domain=DATA.sample_domain)
    np.testing.assert_allclose(far.predict_proba(DATA.test + 1e6), fitted().predict_proba(DATA.test), atol=1e-4)


def test_names_of_classes_do_not_matter() -> None:
    names = np.array(["mug", "café", "a pen"])
    other = SoHoTClassifier("so", steps=25).fit(DATA.X, names[DATA.y], sample_domain=DATA.sample_domain)
    assert other.classes_.tolist() == ["a pen", "café", "mug"]
    assert (other.predict(DATA.test) == names[fitted().predict(DATA.test)]).all()


def test_methods_of_one_domain_do_not_see_the_other() -> None:
    noise = DATA.X + 100 * np.random.default_rng(2).normal(size=DATA.X.shape)
    for method, other in (("s", TARGET), ("t", SOURCE)):
        changed = np.where(other[:, None], noise, DATA.X)
        again = SoHoTClassifier(method, steps=25).fit(changed, DATA.y, sample_domain=DATA.sample_domain)
        assert_same(fitted(method), again)


def with_pool(model: Any, rows: np.ndarray = DATA.test) -> Any:
    """Fit on the data and on rows without a label, which lie between the others."""
    X = np.concatenate([DATA.X[:5], rows, DATA.X[5:]])
    y = np.concatenate([DATA.y[:5], np.full(len(rows), -1), DATA.y[5:]])
    domains = np.concatenate([DATA.sample_domain[:5], np.full(len(rows), -2), DATA.sample_domain[5:]])
    return model.fit(X, y, sample_domain=domains)


@pytest.mark.parametrize("model", [SoHoTClassifier(), SoHoTClassifier("means", steps=5), SoHoTClassifierCV()])
def test_unlabelled_target_rows_help_and_get_a_label(model: Any) -> None:
    found, bare = with_pool(clone(model)), clone(model).fit(DATA.X, DATA.y, sample_domain=DATA.sample_domain)
    assert "the unlabelled rows count: of 9 held-out target rows, " in found.reason_
    assert found.score(DATA.test, DATA.test_labels) >= bare.score(DATA.test, DATA.test_labels)
    assert not np.allclose(found.predict_proba(DATA.test), bare.predict_proba(DATA.test), atol=1e-3)
    assert (found.transduction_[:5] == DATA.y[:5]).all()
    assert (found.transduction_[5 + len(DATA.test) :] == DATA.y[5:]).all()
    assert (found.transduction_[5 : 5 + len(DATA.test)] == found.predict(DATA.test)).all()
    assert (bare.transduction_ == DATA.y).all()


def test_without_unlabelled_rows_nothing_is_said_about_them() -> None:
    assert fitted("s+t").reason_ is None
    assert with_pool(SoHoTClassifier(pool_weight=0)).reason_ is None
    assert_same(with_pool(SoHoTClassifier(pool_weight=0)), fitted("s+t"), 0.0)
    assert_same(with_pool(SoHoTClassifier("s")), fitted("s"), 0.0)


@pytest.mark.parametrize("none", [-1, None, "-1"])
def test_unlabelled_rows_may_be_marked_in_three_ways(none: object) -> None:
    """A source row must have a label; without domains -1 is a class."""
    names = np.array(["a", "b", "c"])[DATA.y].astype(object) if none != -1 else DATA.y.copy()
    y = names.copy()
    y[-2:] = none
    if none == "-1":
        y = y.astype(str)
    found = SoHoTClassifier().fit(DATA.X, y, sample_domain=DATA.sample_domain)
    assert found.classes_.tolist() == sorted(set(names))
    assert (found.transduction_[:-2] == names[:-2]).all()
    y[:2] = none
    with pytest.raises(ValueError, match="-1 for source rows"):
        SoHoTClassifier().fit(DATA.X, y, sample_domain=DATA.sample_domain)


def test_truth_values_are_labels() -> None:
    y = DATA.y == 1
    found = SoHoTClassifier("so", steps=2).fit(DATA.X, y, sample_domain=DATA.sample_domain)
    assert found.classes_.tolist() == [False, True]
    assert (found.transduction_ == y).all()


def test_a_pool_that_shows_something_else_does_not_count() -> None:
    noise = np.random.default_rng(3).normal(scale=0.1, size=(60, DATA.X.shape[1])) + DATA.X.mean(axis=0)
    found = with_pool(SoHoTClassifier(), noise)
    assert "the unlabelled rows do not count: they seem to show something else" in found.reason_
    assert_same(found, fitted("s+t"), 0.0)


def test_two_tables_have_a_pool_too() -> None:
    X, y = np.concatenate([DATA.X[TARGET], DATA.test]), np.concatenate([DATA.y[TARGET], np.full(len(DATA.test), -1)])
    found = SoHoTClassifier().fit(DATA.X[SOURCE], DATA.y[SOURCE], X_target=X, y_target=y)
    assert_same(found, with_pool(SoHoTClassifier()), 1e-5)
    assert len(found.transduction_) == len(DATA.y) + len(DATA.test)


def test_a_target_without_labels_is_a_pool_with_a_warning() -> None:
    y = np.where(TARGET, -1, DATA.y)
    with pytest.warns(UserWarning, match="no target row has a label, so nothing can be aligned"):
        found = SoHoTClassifier("so", steps=25).fit(DATA.X, y, sample_domain=DATA.sample_domain)
    assert found.reason_ == "the unlabelled rows count; there is no held-out label to say whether they help"
    with pytest.warns(UserWarning, match="nothing can be aligned"):
        bare = SoHoTClassifier("so", steps=25, pool_weight=0).fit(DATA.X, y, sample_domain=DATA.sample_domain)
    assert_same(bare, SoHoTClassifier("so", steps=25).fit(DATA.X[SOURCE], DATA.y[SOURCE]))
    SoHoTClassifier("s", steps=2).fit(DATA.X, y, sample_domain=DATA.sample_domain)  # as asked for: no warning
    with pytest.raises(ValueError, match="no target row has a label"):
        SoHoTClassifier("t").fit(DATA.X, y, sample_domain=DATA.sample_domain)


def test_a_source_that_is_missing_leaves_the_target_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="trained on the target alone"):
        SoHoTClassifier(steps=2).fit(DATA.X[TARGET], DATA.y[TARGET], sample_domain=-1)
    with pytest.raises(ValueError, match="there is no source row"):
        SoHoTClassifier("s").fit(DATA.X[TARGET], DATA.y[TARGET], sample_domain=-1)


def test_rows_go_through_the_stream_of_their_domain() -> None:
    classifier = fitted(streams="separate", steps=60)
    by_row = classifier.transform(DATA.X, sample_domain=DATA.sample_domain)
    np.testing.assert_allclose(by_row[SOURCE], classifier.transform(DATA.X[SOURCE], sample_domain=3))
    np.testing.assert_allclose(by_row[TARGET], classifier.transform(DATA.X[TARGET]))
    assert not np.allclose(by_row[SOURCE], classifier.transform(DATA.X[SOURCE]), atol=1e-3)
    for name in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        call = getattr(classifier, name)
        mixed = call(DATA.X, sample_domain=DATA.sample_domain)
        np.testing.assert_array_equal(mixed[SOURCE], call(DATA.X[SOURCE], sample_domain=1))


def test_domains_with_features_of_their_own() -> None:
    """The heterogeneous case: other features, another number of them."""
    turn = np.random.default_rng(3).normal(size=(6, 9))
    classifier = SoHoTClassifier(streams="separate", steps=100).fit(
        DATA.X[SOURCE], DATA.y[SOURCE], X_target=DATA.X[TARGET] @ turn, y_target=DATA.y[TARGET]
    )
    assert (classifier.n_features_in_, classifier.n_features_target_) == (6, 9)
    assert classifier.score(DATA.test @ turn, DATA.test_labels) > 0.6
    assert classifier.score(DATA.X[SOURCE], DATA.y[SOURCE], sample_domain=1) > 0.9
    with pytest.raises(ValueError, match="X has 6 features, but TargetStream is expecting 9"):
        classifier.predict(DATA.test)
    assert len(classifier.predict((DATA.test @ turn).tolist(), sample_domain=-1)) == len(DATA.test)
    with pytest.raises(ValueError, match="one domain at a time"):
        classifier.predict(DATA.X, sample_domain=DATA.sample_domain)
    with pytest.raises(ValueError, match="streams='separate'"):
        SoHoTClassifier().fit(DATA.X[SOURCE], DATA.y[SOURCE], X_target=DATA.X[TARGET] @ turn, y_target=DATA.y[TARGET])


def test_class_weights_are_told_by_term_and_never_below_zero() -> None:
    weights = fitted("so+to+zeta", sigma1=1e3, sigma2=1e3, zeta_lr=1.0).class_weights_
    assert weights is not None
    assert list(weights) == ["means", "order2", "order3"]
    assert all(one.shape == (3,) and (one >= 0).all() for one in weights.values())
    assert any((one == 0).any() for one in weights.values())
    assert fitted("so").class_weights_ is None


def test_classes_of_one_row_and_of_one_domain_are_no_trouble() -> None:
    rows = np.r_[np.flatnonzero(SOURCE & (DATA.y != 2)), np.flatnonzero(TARGET & (DATA.y != 1))[[0, 3]]]
    classifier = SoHoTClassifier("so+to+fo+zeta", steps=20).fit(
        DATA.X[rows], DATA.y[rows], sample_domain=DATA.sample_domain[rows]
    )
    assert classifier.classes_.tolist() == [0, 1, 2]
    assert np.isfinite(classifier.predict_proba(DATA.test)).all()


def test_the_seed_decides() -> None:
    one, same, other = (fitted(hidden=5, random_state=seed) for seed in (1, np.int64(1), 2))
    np.testing.assert_array_equal(one.predict_proba(DATA.test), same.predict_proba(DATA.test))
    assert not np.allclose(one.predict_proba(DATA.test), other.predict_proba(DATA.test))
    state = np.random.RandomState(0)
    assert not np.array_equal(*(fitted(hidden=5, random_state=state).predict_proba(DATA.test) for _ in range(2)))


def test_frames_and_sparse_matrices_are_tables_too(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame(DATA.X, columns=list("abcdef"))
    classifier = SoHoTClassifier("so", steps=25).fit(
        frame, pd.Series(DATA.y), sample_domain=pd.Series(DATA.sample_domain)
    )
    assert classifier.feature_names_in_.tolist() == list("abcdef")
    assert classifier.set_output(transform="pandas").transform(frame).columns[0] == "sohotclassifier0"
    sparse = SoHoTClassifier("so", steps=25).fit(
        scipy.sparse.csr_array(DATA.X), DATA.y, sample_domain=DATA.sample_domain
    )
    assert_same(sparse, fitted())
    with pytest.raises(ValueError, match="feature names should match"):
        classifier.predict(frame[list("fedcba")])
    with pytest.raises(ValueError, match="feature names should match"):
        SoHoTClassifier().fit(frame, DATA.y, X_target=frame[list("fedcba")], y_target=DATA.y)
    monkeypatch.setattr(tables, "DENSE_LIMIT", 10)
    with pytest.raises(ValueError, match="too large to make dense"):
        SoHoTClassifier().fit(scipy.sparse.csr_array(DATA.X), DATA.y)


def test_float32_comes_back_as_float32() -> None:
    classifier = fitted()
    narrow = DATA.test.astype(np.float32)
    assert classifier.transform(narrow).dtype == np.float32
    assert classifier.transform(DATA.test).dtype == np.float64


@pytest.mark.parametrize("labels", [["mug", "café", "pen"], [3, 5, -1], [0.5 * 2, 2.0, 7.0]])
def test_a_saved_classifier_comes_back(tmp_path: Path, labels: list[Any]) -> None:
    y = np.array(labels)[DATA.y]
    domains = None if -1 in labels else DATA.sample_domain
    saved = SoHoTClassifier("so+zeta" if domains is not None else "so", steps=10, orders=(2, 3)).fit(DATA.X, y, domains)
    saved.save(tmp_path / "model.safetensors")
    loaded = SoHoTClassifier.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict(DATA.test), saved.predict(DATA.test))
    np.testing.assert_array_equal(loaded.predict_proba(DATA.test), saved.predict_proba(DATA.test))
    assert loaded.get_params() == saved.get_params()
    assert loaded.classes_.dtype == saved.classes_.dtype
    clone(loaded).fit(DATA.X, y, domains)
    with pytest.raises(ValueError, match="X has 2 features"):
        loaded.predict([[1.0, 2.0]])


def test_a_saved_classifier_of_frames_with_their_own_columns_comes_back(tmp_path: Path) -> None:
    source, target = pd.DataFrame(DATA.X, columns=list("abcdef")), pd.DataFrame(DATA.X[:, :4], columns=list("wxyz"))
    saved = SoHoTClassifier(streams="separate", steps=5).fit(source, DATA.y, X_target=target, y_target=DATA.y)
    saved.save(tmp_path / "model.safetensors")
    loaded = SoHoTClassifier.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict(target), saved.predict(target))
    np.testing.assert_array_equal(loaded.predict(source, sample_domain=1), saved.predict(source, sample_domain=1))
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(target[list("zyxw")])


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        SoHoTClassifier.load(tmp_path / "none")
    (tmp_path / "text").write_text("no tensors")
    with pytest.raises(ValueError, match="is not a classifier saved by sohot"):
        SoHoTClassifier.load(tmp_path / "text")
    with pytest.raises(FileNotFoundError, match="folder does not exist"):
        fitted(steps=1).save(tmp_path / "none" / "model")


def changed(content: Any, odd: tuple[Any, ...]) -> Iterator[Any]:
    """Yield the content with one entry left out or replaced, for all entries and replacements."""
    for key, value in content.items() if isinstance(content, dict) else []:
        yield {name: one for name, one in content.items() if name != key}
        yield from ({**content, key: one} for one in odd)
        yield from ({**content, key: one} for one in changed(value, odd))


def test_an_edited_file_works_or_ends_in_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    fitted("so+zeta", steps=2).save(file)
    tensors = safetensors.torch.load(file.read_bytes())
    with safe_open(file, framework="pt") as stored:
        metadata = stored.metadata()
    content = json.loads(metadata["content"])
    texts = [json.dumps(one) for one in changed(content, (None, "x", -1))] + ["", "[" * 10**5]
    texts.append(json.dumps({**content, "label_type": "<U1000000000"}))
    edited = [(tensors, text) for text in texts] + [
        (one, metadata["content"]) for one in changed(tensors, (torch.zeros(0), torch.zeros(2, 3, 4)))
    ]
    refused = 0
    for parts, text in edited:
        file.write_bytes(safetensors.torch.save(parts, {**metadata, "content": text}))
        try:
            SoHoTClassifier.load(file).predict(DATA.test)
        except ValueError as error:
            refused += 1
            assert f"{file} is not a classifier saved by sohot: " in str(error), text  # noqa: PT017
            assert not str(error).endswith(": "), text  # noqa: PT017
    assert refused > len(edited) // 3  # a setting of training may be missing or odd


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"method": "svm"}, "method must be one of"),
        ({"sigma1": (0.1, 0.2)}, "sigma1 must hold one number for each"),
        ({"device": "toaster"}, "device must be"),
        ({"method": "s+t", "orders": (2,)}, "needs a method that aligns"),
    ],
)
def test_bad_parameters_end_in_a_sentence(params: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        SoHoTClassifier(**params).fit(DATA.X, DATA.y)


def test_bad_calls_end_in_a_sentence() -> None:
    with pytest.raises(ValueError, match="without X_target"):
        SoHoTClassifier().fit(DATA.X, DATA.y, y_target=DATA.y)
    with pytest.raises(ValueError, match="not both"):
        SoHoTClassifier().fit(DATA.X, DATA.y, DATA.sample_domain, X_target=DATA.X, y_target=DATA.y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        SoHoTClassifier().fit(DATA.X, DATA.y, X_target=DATA.X, y_target=DATA.y[:3])
    with pytest.raises(ValueError, match="NaN"):
        fitted(steps=1).predict(np.full((1, 6), np.nan))


ROWS = len(DATA.y)


@pytest.mark.parametrize(
    ("domains", "sentence"),
    [
        ([1, -1], f"one integer for each of {ROWS} rows"),
        ([0] * ROWS, "got 0"),
        ([0.5] * ROWS, "must hold integers"),
        (["a"] * ROWS, "must hold integers"),
        ([np.nan] * ROWS, "must hold integers"),
        ([np.inf] * ROWS, "must hold integers"),
        ([1j] * ROWS, "sample_domain holds complex numbers"),
    ],
)
def test_bad_domains_end_in_a_sentence(domains: list[object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        SoHoTClassifier().fit(DATA.X, DATA.y, sample_domain=domains)


def test_bad_labels_end_in_a_sentence() -> None:
    with pytest.raises(ValueError, match="only one class"):
        SoHoTClassifier().fit(DATA.X, np.where(SOURCE, 0, -1), sample_domain=DATA.sample_domain)
    with pytest.raises(ValueError, match="y has no labels: every row"):
        SoHoTClassifier().fit(DATA.X, np.full(ROWS, -1), sample_domain=-1)
    with pytest.raises(ValueError, match="different types"):
        SoHoTClassifier().fit(DATA.X, DATA.y.astype(str), X_target=DATA.X, y_target=DATA.y)


def test_divergence_is_told() -> None:
    with warnings.catch_warnings(), pytest.raises(sohot.training.Diverged, match="lower lr"):
        fitted(optimizer="sgd", lr=1e12, steps=60)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
def test_a_gpu_finds_the_same() -> None:
    assert_same(fitted(), fitted(device="cuda"), 1e-3)


def test_any_machine_has_an_automatic_device() -> None:
    assert fitted(device="auto", steps=60).score(DATA.test, DATA.test_labels) > 0.6
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="no CUDA GPU"):
            fitted(device="cuda")
