import pytest
import standin
import torch

from sohot import ScatterAlignment
from sohot.methods import METHOD_NAMES, OTHER_NAMES, FitSettings
from sohot.training import Objective


def build(**options):
    settings = FitSettings(**options)
    return Objective(settings.resolved_method(), 3, settings)


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(0)
    source, source_labels, target, target_labels = standin.problem()
    logits = [torch.randn(len(x), 3, generator=generator) for x in (source, target)]
    return standin.Output(source, target, *logits, None), source_labels, target_labels


@pytest.mark.parametrize("name", [*METHOD_NAMES, *OTHER_NAMES])
def test_the_parts_add_up_to_the_loss(batch, name):
    losses = build(method=name)(*batch, head_penalty=torch.tensor(0.5))
    parts = [losses[part] for part in ("cross_entropy", "head_penalty", "alignment") if part in losses]
    torch.testing.assert_close(losses["loss"], torch.stack(parts).sum())
    if "alignment" in losses:
        details = [v for k, v in losses.items() if k in ("means", "weight_penalty") or k.startswith("order")]
        if details:  # the losses of other papers are of one piece
            torch.testing.assert_close(losses["alignment"], torch.stack(details).sum())
    assert ("alignment" in losses) == (name not in ("s", "t", "s+t", "l2-sp", "lp-ft"))


def test_cross_entropy_is_the_mean_over_the_union_of_rows(batch):
    output, source_labels, target_labels = batch
    rows = torch.cat([output.source_logits, output.target_logits])
    union = torch.nn.functional.cross_entropy(rows, torch.cat([source_labels, target_labels]))
    torch.testing.assert_close(build(method="s+t")(*batch)["loss"], union)


def test_the_target_may_be_given_a_weight(batch):
    losses = build(method="s+t", target_weight=0.75)(*batch)
    expected = 0.25 * losses["cross_entropy_source"] + 0.75 * losses["cross_entropy_target"]
    torch.testing.assert_close(losses["loss"], expected)


def test_the_alignment_is_that_of_the_core(batch):
    output, source_labels, target_labels = batch
    align = ScatterAlignment(3, (2, 3), sigma1=0.3, sigma2=0.2, class_weights="learned", feature_scale="initial")
    expected = align(output.source_features, source_labels, output.target_features, target_labels)
    found = build(method="so+to+zeta", sigma1=0.3, sigma2=0.2)(*batch)["alignment"]
    torch.testing.assert_close(found, expected.detach())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_loss_is_computed_in_float32(batch, dtype):
    output, *labels = batch
    half = type(output)(*(None if x is None else x.to(dtype) for x in output))
    full = type(output)(*(None if x is None else x.float() for x in half))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = build(method="so+to+fo+zeta")(half, *labels)
    expected = build(method="so+to+fo+zeta")(full, *labels)
    assert found["loss"].dtype == torch.float32
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-6, atol=1e-7, msg=name)


def test_a_batch_of_one_domain_has_nothing_to_align(batch):
    output, source_labels, _ = batch
    losses = build(method="so")(output._replace(target_features=None, target_logits=None), source_labels, None)
    assert losses["loss"] == losses["cross_entropy_source"]
    assert "alignment" not in losses


def test_a_batch_of_no_domain_is_refused():
    with pytest.raises(ValueError, match="no logits of either domain"):
        build(method="s+t")(standin.Output(None, None, None, None, None), None, None)
