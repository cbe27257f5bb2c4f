import math
from dataclasses import replace

import pytest
import torch
from made_rows import made_rows

from sohot.classifiers import AverageOptions, Rows, fit_average

ANY = AverageOptions.for_any_rows()


def shuffled(rows: Rows, seed: int = 1) -> Rows:
    return rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))]


def accuracy(fit, rows, truth):
    pool = rows.labels < 0
    return float((fit.average(rows.features[pool]).argmax(1) == truth[pool]).float().mean())


def strangers(rows: Rows) -> Rows:
    """Replace the pool by rows that lie elsewhere."""
    features = rows.features.clone()
    pool = rows.labels < 0
    elsewhere = torch.Generator().manual_seed(9)
    features[pool] = 5 * torch.randn(features[pool].shape, generator=elsewhere)
    return replace(rows, features=features)


@pytest.mark.parametrize("passes", [1, 2])
def test_the_order_of_rows_changes_nothing(passes):
    rows, _ = made_rows(passes=passes)
    one, other = fit_average(rows, 4), fit_average(shuffled(rows), 4)
    assert torch.equal(one.average(rows.features), other.average(rows.features))
    assert one.facts == other.facts


def test_a_pool_without_rows_is_no_pool():
    rows, _ = made_rows()
    labelled = rows[rows.labels >= 0]
    alone = fit_average(labelled, 4).average(rows.features)
    assert torch.equal(alone, fit_average(rows, 4, AverageOptions(learn_from_pool=False)).average(rows.features))


def test_a_pool_of_a_few_rows_has_no_companions():
    rows, _ = made_rows(pool=2)
    assert "pool" not in fit_average(rows, 4).facts


def test_a_pool_of_strangers_fades_out():
    rows, _ = made_rows(size=48)
    facts = fit_average(strangers(rows), 4).facts["pool"]
    assert facts["nearness"] < 0.5
    assert facts["part"] == 0
    assert facts["changed"] == 0


def test_a_pool_helps_where_clusters_are_clear():
    gains = []
    for seed in range(4):
        rows, truth = made_rows(pool=60, shift=2.5, shots=1, noise=3.0, seed=seed)
        without = fit_average(rows, 4, AverageOptions(learn_from_pool=False))
        gains.append(accuracy(fit_average(rows, 4), rows, truth) - accuracy(without, rows, truth))
    assert min(gains) >= 0
    assert max(gains) > 0


@pytest.mark.parametrize("options", [AverageOptions(), ANY])
def test_an_offset_and_a_scale_of_all_features_change_no_label(options):
    rows, _ = made_rows(seed=3)
    moved = replace(rows, features=3 * rows.features + 100)
    before = fit_average(rows, 4, options).average(rows.features)
    after = fit_average(moved, 4, options).average(moved.features)
    torch.testing.assert_close(before.exp(), after.exp(), atol=0.02, rtol=0)


def test_renumbered_classes_renumber_the_answers():
    rows, _ = made_rows()
    turned = replace(rows, labels=torch.where(rows.labels < 0, -1, 3 - rows.labels))
    before, after = (fit_average(some, 4).average(rows.features).exp() for some in (rows, turned))
    torch.testing.assert_close(before, after.flip(1), atol=1e-3, rtol=0)


def test_answers_are_log_probabilities_and_candidates_add_up():
    rows, _ = made_rows(passes=2)
    fit = fit_average(rows, 4)
    torch.testing.assert_close(fit.average(rows.features).exp().sum(1), torch.ones(len(rows)))
    assert len(fit.facts["candidates"]) == 3
    assert math.isclose(sum(one["weight"] for one in fit.facts["candidates"]), 1, abs_tol=1e-3)
    torch.testing.assert_close(fit.average.get_buffer("part").sum(), torch.tensor(1.0))


def test_held_out_rows_are_named_as_they_were_given():
    rows, _ = made_rows()
    mixed = shuffled(rows)
    held = fit_average(mixed, 4).held_out
    assert held is not None
    assert len(held.rows) == 12
    assert torch.equal(mixed.labels[held.rows], held.labels)
    assert mixed.is_target[held.rows].all()


@pytest.mark.parametrize("pool", [0, 30])
def test_a_held_out_label_does_not_reach_the_answer_to_it(pool):
    """Labels of noise can be learned, not guessed."""
    rows, _ = made_rows(source=0, shots=8, pool=pool, size=200, noise=1.0)
    noise = replace(rows, features=torch.randn(rows.features.shape, generator=torch.Generator().manual_seed(5)))
    fit = fit_average(noise, 4)
    labelled = noise.labels >= 0
    learned = fit.average(noise.features[labelled]).argmax(1) == noise.labels[labelled]
    assert learned.float().mean() > 0.9
    assert fit.held_out is not None
    guessed = fit.held_out.log_p.argmax(1) == fit.held_out.labels
    assert guessed.float().mean() < 0.6


def test_one_label_per_class_leaves_nothing_to_calibrate_with():
    rows, _ = made_rows(shots=1)
    fit = fit_average(rows, 4)
    assert fit.held_out is None
    assert fit.facts["temperature"] == 1


def test_without_labels_of_the_target_the_source_alone_teaches():
    rows, truth = made_rows(shots=0, shift=0.2)
    fit = fit_average(rows, 4)
    assert fit.held_out is None
    assert accuracy(fit, rows, truth) > 0.9


def test_a_class_that_the_target_labels_lack_is_still_known():
    rows, truth = made_rows(shift=0.3)
    kept = ~(rows.is_target & (rows.labels == 2))
    fit = fit_average(rows[kept], 4)
    assert accuracy(fit, rows, truth) > 0.9


def test_equal_rows_are_held_out_together():
    rows, _ = made_rows(shots=2)
    parts = rows.features, rows.labels, rows.is_target
    twice = Rows(*(torch.cat([part, part[rows.is_target & (rows.labels >= 0)]]) for part in parts))
    held = fit_average(twice, 4).held_out
    assert held is not None
    same = {tuple(twice.features[row].flatten().tolist()): [] for row in held.rows.tolist()}
    for row, answer in zip(held.rows.tolist(), held.log_p, strict=True):
        same[tuple(twice.features[row].flatten().tolist())].append(answer)
    assert all(torch.equal(first, second) for first, second in same.values())


def test_a_large_pool_is_sampled_by_its_values_and_labelled_whole():
    rows, truth = made_rows(pool=100)
    options = replace(AverageOptions(), pool_sample=80)
    fit, other = fit_average(rows, 4, options), fit_average(shuffled(rows), 4, options)
    assert fit.facts["pool"]["rows"] == 80
    assert torch.equal(fit.average(rows.features), other.average(rows.features))
    assert accuracy(fit, rows, truth) > 0.9


def test_more_axes_than_rows_and_one_column_both_work():
    wide, truth = made_rows(size=300, source=3, pool=4)
    assert accuracy(fit_average(wide, 4), wide, truth) > 0.8
    narrow, _ = made_rows(size=1)
    assert fit_average(narrow, 4).average(narrow.features).isfinite().all()
