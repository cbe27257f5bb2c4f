"""Several source domains against one target."""

import pytest
import torch
from oracle import batch
from torch import Tensor

from sohot import ScatterAlignment


def three_domains(dtype: torch.dtype = torch.float64) -> tuple[list[Tensor], list[Tensor], Tensor, Tensor]:
    first, first_labels, target, target_labels = batch(0, [4, 3, 2], [3, 3, 3], size=2, dtype=dtype)
    second, second_labels, _, _ = batch(1, [2, 5, 4], [1, 1, 1], size=2, dtype=dtype)
    return [first, second], [first_labels, second_labels], target, target_labels


@pytest.mark.parametrize("scope", ["class", "marginal"])
def test_is_the_mean_of_the_alignments_with_each_source(scope: str) -> None:
    sources, labels, target, target_labels = three_domains()
    options = {"orders": (2, 3), "sigma1": 0.3, "sigma2": 0.7, "scope": scope}
    each = [ScatterAlignment(3, **options)(x, y, target, target_labels) for x, y in zip(sources, labels, strict=True)]
    both = ScatterAlignment(3, num_sources=2, **options)(sources, labels, target, target_labels)
    torch.testing.assert_close(both, sum(each) / 2)


def test_domain_ids_say_the_same_as_a_list() -> None:
    sources, labels, target, target_labels = three_domains()
    align = ScatterAlignment(3, (2, 3), num_sources=2)
    ids = torch.cat([torch.full_like(y, k) for k, y in enumerate(labels)])
    order = torch.randperm(len(ids))
    joined = align(
        torch.cat(sources)[order], torch.cat(labels)[order], target, target_labels, source_domains=ids[order]
    )
    torch.testing.assert_close(joined, align(sources, labels, target, target_labels))


def test_one_source_in_a_list_is_the_simple_call() -> None:
    sources, labels, target, target_labels = three_domains()
    align = ScatterAlignment(3)
    torch.testing.assert_close(
        align(sources[:1], labels[:1], target, target_labels), align(sources[0], labels[0], target, target_labels)
    )


def test_a_class_may_be_missing_from_one_source() -> None:
    sources, labels, target, target_labels = three_domains()
    kept = labels[1] != 0
    align = ScatterAlignment(3, num_sources=2)
    loss = align([sources[0], sources[1][kept]], [labels[0], labels[1][kept]], target, target_labels)
    single = ScatterAlignment(3)
    expected = (
        3 * single(sources[0], labels[0], target, target_labels)
        + 2 * single(sources[1][kept], labels[1][kept], target, target_labels)
    ) / 5
    torch.testing.assert_close(loss, expected)


@pytest.mark.parametrize("class_weights", [None, "learned"])
def test_gradcheck(class_weights: str | None) -> None:
    sources, labels, target, target_labels = three_domains()
    align = ScatterAlignment(3, (2, 3), num_sources=2, class_weights=class_weights).double()
    for parameter in align.parameters():
        torch.nn.init.uniform_(parameter, 0.2, 2.0)

    def loss(first: Tensor, second: Tensor, target: Tensor, *_: Tensor) -> Tensor:
        return align([first, second], labels, target, target_labels)

    features = [x.mul_(0.5).requires_grad_() for x in (*sources, target)]
    assert torch.autograd.gradcheck(loss, (*features, *align.parameters()))


def test_each_pair_of_class_and_source_has_its_own_weight() -> None:
    assert ScatterAlignment(3, (2, 4), num_sources=2, class_weights="learned").zeta.shape == (2, 6)


def test_bad_calls_get_one_sentence() -> None:
    sources, labels, target, target_labels = three_domains()
    align = ScatterAlignment(3, num_sources=2)
    ids = torch.zeros_like(labels[0])
    with pytest.raises(ValueError, match="num_sources=2: pass a list of source tensors, or source_domains"):
        align(sources[0], labels[0], target, target_labels)
    with pytest.raises(ValueError, match="source is a list of 1 tensors, but num_sources=2"):
        align(sources[:1], labels[:1], target, target_labels)
    with pytest.raises(ValueError, match="source_labels must be a list of 2 tensors, like source, got 1"):
        align(sources, labels[:1], target, target_labels)
    with pytest.raises(TypeError, match="source_labels must be a list of tensors, like source, got one tensor"):
        align(sources, labels[0], target, target_labels)
    with pytest.raises(ValueError, match="source_domains requires source to be one tensor, but source is a list"):
        align(sources, labels, target, target_labels, source_domains=ids)
    with pytest.raises(ValueError, match="source_domains must lie in 0 … 1"):
        align(sources[0], labels[0], target, target_labels, source_domains=ids + 2)
    with pytest.raises(ValueError, match="source_labels must lie in 0 … 2"):
        align(sources[0], labels[0] + 1, target, target_labels, source_domains=ids)
    with pytest.raises(ValueError, match=r"source\[1\] and source\[0\] must have the same number of features"):
        align([sources[0], torch.zeros(3, 5)], [labels[0], torch.zeros(3).long()], target, target_labels)
