"""Several source domains against one target.

Each pair of a class and a source is aligned separately: group = class · sources + source. The target rows are repeated
for every source, so the functions called from here see one source, one target and more classes.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from ..functional.checks import check_alignment_input, check_label_range, check_labels
from ..functional.recomputed import look


class DomainPair(NamedTuple):
    """Features of both domains and the group of each row, in the order of the arguments of `scatter_alignment`."""

    source: Tensor
    source_groups: Tensor
    target: Tensor
    target_groups: Tensor


def one_source(source: Tensor, source_labels: Tensor, target: Tensor, target_labels: Tensor) -> DomainPair:
    """One source: groups are classes."""
    check_alignment_input(source, source_labels, target, target_labels)
    return DomainPair(source, source_labels, target, target_labels)


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
        look(partial(check_label_range, num_classes=num_classes, name="source_labels"), source_labels)
        look(partial(check_label_range, num_classes=num_classes, name="target_labels"), target_labels)
        look(partial(check_label_range, num_classes=num_sources, name="source_domains"), source_domains)
    every_source = torch.arange(num_sources, device=target.device).unsqueeze(1)
    return DomainPair(
        source,
        source_labels.long() * num_sources + source_domains.long(),
        target.repeat(num_sources, 1),
        (target_labels.long() * num_sources + every_source).flatten(),
    )


def join(sources: Sequence[Tensor], labels: Sequence[Tensor], num_sources: int) -> tuple[Tensor, Tensor, Tensor]:
    """Convert lists of sources and labels to one tensor each, plus the domain of each row."""
    if len(sources) != num_sources:
        raise ValueError(
            f"source is a list of {len(sources)} tensors, but num_sources={num_sources} was given to ScatterAlignment"
        )
    if len(labels) != len(sources):
        raise ValueError(f"source_labels must be a list of {len(sources)} tensors, like source, got {len(labels)}")
    for number, (source, of_source) in enumerate(zip(sources, labels, strict=True)):
        check_alignment_input(source, of_source, sources[0], labels[0], f"source[{number}]", "source[0]")
    domains = [torch.full_like(of_source, number) for number, of_source in enumerate(labels)]
    return torch.cat(list(sources)), torch.cat(list(labels)), torch.cat(domains)
