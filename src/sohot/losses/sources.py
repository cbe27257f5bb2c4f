"""Several source domains against one target.

Each pair of a class and a source is aligned separately: group = class · sources + source. The target rows are repeated
for every source, so the functions called from here see one source, one target and more classes.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ..functional.checks import check_alignment_input, check_label_range, check_labels


class DomainPair(NamedTuple):
    """Features of both domains, and the group of each row."""

    source: Tensor
    source_groups: Tensor
    target: Tensor
    target_groups: Tensor


def domain_pair(
    source: Tensor | Sequence[Tensor],
    source_labels: Tensor | Sequence[Tensor] | None,
    target: Tensor,
    target_labels: Tensor | None,
    source_domains: Tensor | None,
    *,
    num_classes: int | None,
    num_sources: int,
    check_values: bool,
) -> DomainPair:
    """Convert the arguments of `ScatterAlignment.forward` to one form; without `num_classes`, labels are ignored."""
    if not isinstance(source, (Tensor, list, tuple)):
        raise TypeError(f"source must be a torch.Tensor or a list of them, got {type(source).__name__}")
    if num_classes is None:
        for x in (target, *([source] if isinstance(source, Tensor) else source)):
            if not isinstance(x, Tensor):
                raise TypeError(f"source and target must hold torch.Tensors, got {type(x).__name__}")
        source_labels = _zeros_for(source) if isinstance(source, Tensor) else [_zeros_for(x) for x in source]
        target_labels = _zeros_for(target)
    elif source_labels is None or target_labels is None:
        raise ValueError("source_labels and target_labels are required unless scope='marginal'")
    if not isinstance(source, Tensor):
        if source_domains is not None:
            raise ValueError("source_domains requires source to be one tensor, but source is a list")
        if isinstance(source_labels, Tensor):
            raise TypeError("source_labels must be a list of tensors, like source, got one tensor")
        source, source_labels, source_domains = join(source, source_labels, num_sources)
    elif not isinstance(source_labels, Tensor):
        raise TypeError(f"source_labels must be a torch.Tensor, got {type(source_labels).__name__}")
    if num_sources == 1 and source_domains is None:  # groups are classes
        return DomainPair(source, source_labels, target, target_labels)
    if source_domains is None:
        raise ValueError(f"num_sources={num_sources}: pass a list of source tensors, or source_domains")
    return several_sources(
        source,
        source_labels,
        source_domains,
        target,
        target_labels,
        1 if num_classes is None else num_classes,
        num_sources,
        check_values,
    )


def _zeros_for(features: Tensor) -> Tensor:
    """One label 0 for each row."""
    return torch.zeros(features.shape[0], dtype=torch.int64, device=features.device)


def several_sources(
    source: Tensor,
    source_labels: Tensor,
    source_domains: Tensor,
    target: Tensor,
    target_labels: Tensor,
    num_classes: int,
    num_sources: int,
    check_values: bool,
) -> DomainPair:
    """Several sources in one tensor, distinguished by `source_domains`."""
    check_alignment_input(source, source_labels, target, target_labels)
    check_labels(source_domains, source, ("source_domains", "source"))
    if check_values and not torch.compiler.is_compiling():  # a wrong value could look like another group
        check_label_range(source_labels, num_classes, "source_labels")
        check_label_range(target_labels, num_classes, "target_labels")
        check_label_range(source_domains, num_sources, "source_domains")
    every_source = torch.arange(num_sources, device=target.device).unsqueeze(1)
    return DomainPair(
        source,
        source_labels.long() * num_sources + source_domains.long(),
        target.repeat(num_sources, 1),
        (target_labels.long() * num_sources + every_source).flatten(),
    )


class JoinedSources(NamedTuple):
    """Several sources as one."""

    rows: Tensor
    labels: Tensor
    domains: Tensor  # which source each row is from


def join(sources: Sequence[Tensor], labels: Sequence[Tensor], num_sources: int) -> JoinedSources:
    """Convert lists of sources and labels to one tensor each."""
    if len(sources) != num_sources:
        raise ValueError(
            f"source is a list of {len(sources)} tensors, but num_sources={num_sources} was given to ScatterAlignment"
        )
    if len(labels) != len(sources):
        raise ValueError(f"source_labels must be a list of {len(sources)} tensors, like source, got {len(labels)}")
    for number, (source, of_source) in enumerate(zip(sources, labels, strict=True)):
        check_alignment_input(source, of_source, sources[0], labels[0], f"source[{number}]", "source[0]")
    domains = [torch.full_like(of_source, number) for number, of_source in enumerate(labels)]
    return JoinedSources(torch.cat(list(sources)), torch.cat(list(labels)), torch.cat(domains))
