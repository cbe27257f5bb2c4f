"""studies/digits/variants.py: its losses, its table and its command line, without a whole training."""

import importlib.util
import json
from functools import cache
from pathlib import Path

import pytest
import torch

from sohot import ScatterAlignment
from sohot.experiments.digit_splits import NUM_CLASSES, draw_split
from sohot.experiments.digit_training import SIGMA, fit_digits, settings_for
from sohot.training import objective

_spec = importlib.util.spec_from_file_location(
    "digit_variants", Path(__file__).parents[2] / "studies" / "digits" / "variants.py"
)
study = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(study)
BUILT = {name: variant for name, variant in study.VARIANTS.items() if variant.loss is not None}


draw = cache(draw_split)  # of every split drawn here the fonts are set once


@pytest.fixture(autouse=True)
def draw_once(monkeypatch):
    monkeypatch.setattr(study, "draw_split", draw)


def batch(seed=0):
    """Shuffled rows of both domains, five and three of each class, that gradients flow to."""
    made = torch.Generator().manual_seed(seed)
    domains = []
    for rows, spread in ((5, 1.0), (3, 2.0)):
        labels = torch.arange(NUM_CLASSES).repeat(rows)[torch.randperm(NUM_CLASSES * rows, generator=made)]
        features = spread * torch.randn(len(labels), 6, generator=made, dtype=torch.float64) + labels[:, None]
        domains += [features.requires_grad_(), labels]
    return domains


def gradients(loss, given):
    value, parts = loss(*given, return_parts=True)
    return value, parts, torch.autograd.grad(value, [given[0], given[2]])


@pytest.mark.parametrize("name", BUILT)
def test_a_loss_is_finite_and_has_gradients(name):
    loss = BUILT[name].loss()
    for seed in (0, 1):  # the second batch has the scale of the first
        value, _, found = gradients(loss, batch(seed))
        assert value.shape == ()
        assert torch.isfinite(value)
        assert all(torch.isfinite(one).all() and one.abs().sum() > 0 for one in found)


def test_the_plain_loss_is_that_of_so():
    plain = study.Plain()
    product = ScatterAlignment(NUM_CLASSES, sigma1=SIGMA, sigma2=SIGMA, feature_scale="initial")
    for seed in (0, 1):
        (value, _, found), (expected, _, of_product) = gradients(plain, batch(seed)), gradients(product, batch(seed))
        torch.testing.assert_close(value, expected)
        torch.testing.assert_close(found, of_product)


def test_scatters_that_are_all_alike_are_the_same_pooled_or_shrunk():
    rows = torch.randn(1, 5, 6).expand(NUM_CLASSES, -1, -1), torch.randn(1, 3, 6).expand(NUM_CLASSES, -1, -1)
    expected = study.Plain().scatters(*rows)
    torch.testing.assert_close(study.Pooled().scatters(*rows), expected)
    torch.testing.assert_close(study.Shrunk().scatters(*rows), expected)


def test_relative_distances_do_not_depend_on_the_size_of_features():
    source, target = torch.randn(NUM_CLASSES, 5, 6), torch.randn(NUM_CLASSES, 3, 6)
    loss = study.Relative()
    for part in (loss.means, loss.scatters):
        torch.testing.assert_close(part(10 * source, 10 * target), part(source, target))


def test_order_two_under_its_root_is_the_distance_of_covariances():
    source, target = torch.randn(NUM_CLASSES, 5, 6), torch.randn(NUM_CLASSES, 3, 6)
    loss = study.Rooted()
    loss.orders, loss.raw.data = (2,), torch.zeros(1)
    first, second = ([torch.cov(rows.T, correction=0) for rows in domain] for domain in (source, target))
    distances = torch.stack(first) - torch.stack(second)
    torch.testing.assert_close(loss.scatters(source, target), distances.flatten(1).norm(dim=1).mean())


def test_weights_of_orders_are_learned_where_they_shall_be():
    for name, learned in (("rooted", False), ("learned-orders", True)):
        loss = BUILT[name].loss()
        loss(*batch()).backward()
        assert (loss.raw.grad is not None) == learned


def test_the_weight_rises_or_falls():
    given = batch()
    whole = study.Plain()(*given).item()
    for name, first, last in (("warm-up", 1 / 60, 1.0), ("decay", 1.0, 0.0)):
        loss = BUILT[name].loss()
        values = [loss(*given).item() / whole for _ in range(study.STEPS)]
        assert (values[0], values[-1]) == pytest.approx((first, last), abs=1e-3)


def test_so_is_the_product_and_the_loss_of_others_is_theirs():
    expected = fit_digits(draw(3, half="development"), settings_for("so", seed=3, steps=4)).accuracy
    own = objective.make_alignment
    assert study.train(study.VARIANTS["so"], 3, steps=4) == expected
    with study.aligning_by(study.Pooled()):
        assert isinstance(objective.make_alignment(), study.Pooled)
    assert objective.make_alignment is own


@pytest.mark.parametrize("name", ["after-relu", "separate", "learned-orders"])
def test_a_variant_can_be_trained(name):
    assert 0 <= study.train(study.VARIANTS[name], 3, steps=2) <= 100


def test_the_demos_half_is_never_drawn(monkeypatch):
    halves = []
    monkeypatch.setattr(study, "draw_split", lambda split, half: halves.append(half) or draw(split, half=half))
    study.train(study.VARIANTS["so"], 3, steps=1)
    assert halves == ["development"]


def test_the_table():
    found = {"s+t": {1: 80.0, 2: 82.0}, "so": {1: 84.0, 2: 85.0}, "pooled": {1: 83.4, 2: 85.4}, "shrunk": {}}
    lines = study.table(found)
    assert [line.count("|") for line in lines] == [9] * 5
    assert lines[2].endswith("| 81.0 ± 1.0 | −3.5 ± 0.5 | 0.090 |  |  | 2 |")
    assert lines[3].endswith("| 84.5 ± 0.5 |  |  | +3.5 ± 0.5 | 0.090 | 2 |")
    assert lines[4].startswith("| `pooled` | one scatter per domain")
    assert lines[4].endswith("| 84.4 ± 1.0 | −0.1 ± 0.5 | 0.874 | +3.4 ± 0.0 | – | 2 |")


def test_a_single_split_has_no_spread():
    assert study.table({"so": {1: 84.0}, "m": {1: 85.0}})[3].endswith("| 85.0 ± 0.0 | +1.0 | – | – | – | 1 |")


def test_a_stopped_run_goes_on(tmp_path, monkeypatch):
    store, trained = tmp_path / "store.jsonl", []
    monkeypatch.setattr(study, "train", lambda variant, split: trained.append((variant.method, split)) or 50.0)
    store.write_text(json.dumps({"variant": "so", "split": 1, "accuracy": 90.0}) + "\n")
    found = study.train_all(store, ["s+t", "so"], range(1, 3))
    assert found == {"s+t": {1: 50.0, 2: 50.0}, "so": {1: 90.0, 2: 50.0}}
    assert trained == [("s+t", 1), ("s+t", 2), ("so", 2)]
    assert study.train_all(store, ["s+t", "so"], range(1, 3)) == found
    assert len(trained) == 3


def test_a_store_that_is_none_is_told(tmp_path):
    store = tmp_path / "store.jsonl"
    store.write_text('{"variant": "so"}\n')
    with pytest.raises(SystemExit, match="line 1 is not the record of a training"):
        study.read_store(store, ["so"], [1])


def test_the_command_line():
    given = study.options(["--splits", "200-205", "--out", "x/y.md", "--only", "pooled"])
    assert given.names == ["s+t", "so", "pooled"]
    assert given.splits == range(200, 206)
    assert given.store == Path("x/y.md.jsonl")
    assert study.options(["--splits", "7", "--out", "y.md"]).names == list(study.VARIANTS)


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("--only", "pooled,poled", "--only does not know 'poled'; known are s+t, so, so+zeta"),
        ("--splits", "5-3", "argument --splits: invalid numbers value: '5-3'"),
        ("--splits", "all", "argument --splits: invalid numbers value: 'all'"),
    ],
)
def test_a_mistyped_option_ends_in_a_sentence(option, value, sentence, capsys):
    given = {"--splits": "1-2", "--out": "y.md", option: value}
    with pytest.raises(SystemExit):
        study.options([word for pair in given.items() for word in pair])
    assert sentence in capsys.readouterr().err
