"""What the demo tells people: the table of its accuracies, and what to try next."""

import shlex
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .digit_splits import SHOTS
from .grid import BASELINE
from .statistics import paired_difference

MEANING = {
    "s": "source alone",
    "t": "target alone",
    "s+t": "both, no alignment",
    "m": "both, whole domains aligned",
    "so": "both, class scatters aligned",
    "so+zeta": "the same with class weights",
    "so+to+fo+zeta": "the same, orders 2, 3 and 4",
    "means": "both, class means aligned",
    "variance": "both, class spread penalised",
    "ccsa": "both, pairs near or apart",
    "dsne": "both, nearest and farthest",
    "dage": "both, graph embedding",
    "supcon": "both, supervised contrastive",
    "l2-sp": "both, held at first weights",
    "lp-ft": "both, classifier first",
}

_NEXT = """\
What to try next:
  your own images, a folder per class:  sohot fit --source DIR --target DIR --shots 3 --out RUN
  these figures for a program:          sohot demo --json
  these figures as a page to read:      sohot report {folder}
  the loss in your own training loop:
      from sohot import ScatterAlignment
      align = ScatterAlignment(num_classes=10, sigma1=0.1, sigma2=0.1, feature_scale="initial")
      loss = loss + align(source_features, source_labels, target_features, target_labels)"""


def describe(result: Mapping[str, Any]) -> str:
    """Say the result of `run_demo` in words.

    Args:
        result: What `run_demo` returned.

    Returns:
        The table (mean ± standard deviation; the difference to s+t, split by split, with the p of a paired t-test), the
        pictures, and what to try next; several lines, without a newline at the end.

    Example:
        >>> result = {"methods": {"s+t": {"mean": 81.0, "std": 1.0, "splits": [80.0, 82.0]},
        ...                       "so": {"mean": 85.5, "std": 2.5, "splits": [83.0, 88.0]}},
        ...           "seconds": 9.0, "pictures": []}
        >>> print(describe(result).split("What to try next")[0].rstrip())
        From printed to handwritten digits: 3 labels per class, 2 splits, 9 s.
        Accuracy in % on handwritten digits not seen in training:
        <BLANKLINE>
          method                                       mean ± std   difference to s+t
          s+t            both, no alignment            81.0 ± 1.0
          so             both, class scatters aligned  85.5 ± 2.5   +4.5 ± 1.5, better in 2 of 2 splits, p 0.205
    """
    methods: Mapping[str, Any] = result["methods"]
    splits = len(next(iter(methods.values()))["splits"])
    names, meanings = max(13, *map(len, methods)), max(len(MEANING.get(name, "")) for name in methods)
    spent = f"{_count(splits, 'split')}, {result['seconds']:.0f} s"
    lines = [
        f"From printed to handwritten digits: {SHOTS} labels per class, {spent}.",
        "Accuracy in % on handwritten digits not seen in training:",
        "",
        f"  {'method':<{names}}  {'':<{meanings}}  mean ± std"
        + (f"   difference to {BASELINE}" if BASELINE in methods else ""),
    ]
    for name, values in methods.items():
        cells = f"  {name:<{names}}  {MEANING.get(name, ''):<{meanings}}  {values['mean']:4.1f} ± {values['std']:3.1f}"
        lines.append(f"{cells}   {_difference(name, methods)}".rstrip())
    if result["pictures"]:
        lines += ["", "Pictures:", *(f"  {file}" for file in result["pictures"])]
    folder = Path(result["pictures"][0]).parent if result["pictures"] else "FOLDER"
    return "\n".join([*lines, "", _NEXT.format(folder=shlex.quote(str(folder)))])


def _difference(name: str, methods: Mapping[str, Any]) -> str:
    """Compare a method with the baseline split by split: both have the same images and the same first weights."""
    if name == BASELINE or BASELINE not in methods:
        return ""
    mine, its = (methods[one]["splits"] for one in (name, BASELINE))
    spread = statistics.pstdev(one - other for one, other in zip(mine, its, strict=True))
    found = paired_difference(dict(enumerate(mine)), dict(enumerate(its)))
    assert found is not None  # there is a split
    words = f"{found.mean:+.1f} ± {spread:.1f}, better in {found.wins} of {_count(found.pairs, 'split')}"
    return f"{words}{_chance(found.p_t)}"


def _chance(p: float | None) -> str:
    """Give the p of the paired t-test; nothing where one split, or equal differences, leave nothing to judge by."""
    if p is None:
        return ""
    return ", p < 0.001" if p < 0.001 else f", p {p:.3f}"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
