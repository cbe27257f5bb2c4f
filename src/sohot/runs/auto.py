"""Choices without torch: the candidates, and the file that records what was tried."""

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from .._files import is_intact, sealed, write_json
from .._reading import read_json
from ..selection.candidates import Candidate, distinct
from ..selection.choice import FoldScore
from ..selection.held_out import HeldOut
from ..selection.spaces import AUTO_CANDIDATES, HEAD
from ..training.errors import ChangedRun
from ..training.run_files import differences
from .config import LAYERS, RESOLVED, RunConfig

AUTO = "auto"
"""The method name that asks to choose one of `AUTO_CANDIDATES`."""
STAGE = "choosing a method"
"""What progress is called meanwhile."""
SELECTION = "selection.json"
"""The file in a run's folder from which a killed selection continues."""
_FORMAT = 2
_DIGITS = 6  # of stored logits


def is_auto(config: RunConfig) -> bool:
    """Tell whether a configuration asks for an automatic choice of the method.

    >>> is_auto(RunConfig(method="AUTO")), is_auto(RunConfig())
    (True, False)
    """
    return config.method.strip().lower() == AUTO


def head_of(config: RunConfig) -> RunConfig:
    """Return the configuration of the classifier on frozen features, for the same images and network.

    There is nothing to align, so of the method only the domains matter.

    >>> one = head_of(RunConfig(method="so", orders=(2, 3), shots=3))
    >>> one.trains, one.method, one.orders, one.shots
    ('head', 's+t', None, 3)
    """
    domains = "s+t"
    if config.method.strip().lower() not in RESOLVED:
        method = config.settings().resolved_method()
        domains = "+".join(name for name, used in (("s", method.uses_source), ("t", method.uses_target)) if used)
    sigma1 = RunConfig.sigma1 if isinstance(config.sigma1, tuple) else config.sigma1
    return replace(config, trains="head", method=domains, orders=None, sigma1=sigma1)


def candidates_of(
    config: RunConfig, given: Collection[str] | None = None, *, head: bool = False, pool: bool = False
) -> list[Candidate[RunConfig]]:
    """List what a run chooses from: the candidates of `--method auto`, or the one method that was named.

    Args:
        config: What all of them share.
        given: Names of the options that were given and override the candidates' own; None for those that differ from
            the defaults.
        head: Whether the network has frozen features, so that a classifier on these comes first.
        pool: Whether there are unlabelled images; the classifier on frozen features does without them.

    Returns:
        The candidates; of two with equal configurations only the first.

    Raises:
        ValueError: An option does not work with one of the candidates.

    Example:
        >>> [one.name for one in candidates_of(RunConfig(method="auto"), head=True)]
        ['head', 's+t', 'means', 'm', 'so']
        >>> [one.name for one in candidates_of(RunConfig(method="auto", lr=0.01))]
        ['s+t', 'means', 'm', 'so']
        >>> [one.name for one in candidates_of(RunConfig(method="so"), head=True)]
        ['head', 'so']
    """
    kept = set(config.changed() if given is None else given) - {"method"}
    layers = replace(config, keep=LAYERS) if head else config
    if is_auto(config):
        listed = {name: options for name, options in AUTO_CANDIDATES.items() if name != HEAD}
    else:
        listed = {config.settings().resolved_method().name: {"method": config.method}}
    without = replace(head_of(config), pool_weight=0.0) if pool else head_of(config)
    found = [Candidate(HEAD, AUTO_CANDIDATES[HEAD], without)] if head else []
    for name, options in listed.items():
        own = {key: value for key, value in options.items() if key not in kept}
        if config.epochs is not None:
            own.pop("steps", None)  # who counts in epochs has said how long
        found.append(Candidate(name, options, _fitting(replace(layers, **own)) if is_auto(config) else layers))
    return distinct(found)


def _fitting(config: RunConfig) -> RunConfig:
    """Drop options about orders from a method that aligns none: they are meant for the others."""
    if not replace(config, orders=None, sigma1=RunConfig.sigma1).settings().resolved_method().aligns:
        several = isinstance(config.sigma1, tuple)
        config = replace(config, orders=None, sigma1=RunConfig.sigma1 if several else config.sigma1)
    config.settings()  # reports errors before any work
    return config


class SelectionFile:
    """The scores of a selection, each saved as soon as it is known.

    Args:
        out: The run's folder.
        identity: What identifies the selection, as JSON values. Scores of another one are not used.
        asked: The options that were given, as TOML values.
        resume: Refuse a folder that holds another selection, instead of starting over.

    Raises:
        ChangedRun: The folder holds another selection, and this one is to be resumed.
        ValueError: The file is damaged.
    """

    def __init__(self, out: Path, identity: Mapping[str, Any], asked: Mapping[str, Any], *, resume: bool) -> None:
        self.file = out / SELECTION
        own = json.loads(json.dumps({"format": _FORMAT, "identity": identity, "asked": asked}))
        found = read_selection(out)
        changes = [] if found is None else list(differences(found.get("identity"), own["identity"], "selection"))
        if changes and resume:
            raise ChangedRun(f"--out {out} holds another selection, so it cannot be resumed; {'; '.join(changes)}")
        kept = None if found is None or changes else found
        self._content: dict[str, Any] = {**own, "scores": [] if kept is None else kept["scores"], "choice": None}

    def __len__(self) -> int:
        return len(self._content["scores"])

    def score(self, candidate: str, fold: int) -> FoldScore | None:
        """Return the score of a candidate on a fold; None if not known yet."""
        for one in self._content["scores"]:
            if (one["candidate"], one["fold"]) == (candidate, fold):
                return FoldScore(one["right"], one["images"], one["failure"], _held_out(one))
        return None

    def add(self, candidate: str, fold: int, score: FoldScore) -> FoldScore:
        """Save a score; return it as it is read again, so that a selection that continues finds the same."""
        held = score.held_out
        saved = {
            "candidate": candidate,
            "fold": fold,
            "right": score.right,
            "images": score.held,
            "failure": score.failure,
            "logits": None if held is None else held.logits.round(_DIGITS).tolist(),
            "labels": None if held is None else held.labels.tolist(),
        }
        self._content["scores"].append(saved)
        self.write()
        return replace(score, held_out=_held_out(saved))

    def finish(self, choice: Mapping[str, Any]) -> None:
        """Save the outcome, as JSON values."""
        self._content["choice"] = dict(choice)
        self.write()

    def write(self) -> None:
        """Write the file atomically."""
        write_json(self.file, sealed(self._content))


def read_selection(out: Path) -> dict[str, Any] | None:
    """Read the selection in a run's folder; None if there is none.

    Raises:
        ValueError: The file is damaged or from another version.
    """
    file = out / SELECTION
    if not file.is_file():
        return None
    try:
        content: dict[str, Any] = read_json(file)
        known = content["format"] == _FORMAT and is_intact(content) and _is_whole(content)
    except (ValueError, KeyError, TypeError, AttributeError):
        known = False
    if not known:
        raise ValueError(f"{file} is damaged or from another version: remove it to choose again")
    return content


def _is_whole(content: Mapping[str, Any]) -> bool:
    """Tell whether a selection has all its parts, of the right kinds."""
    kinds = [isinstance(content[name], dict) for name in ("identity", "asked")]
    kinds += [isinstance(content["scores"], list), isinstance(content["choice"], dict | None)]
    score = {"candidate", "fold", "right", "images", "failure", "logits", "labels"}
    return all(kinds) and all(score <= set(one) for one in content["scores"])


def _held_out(score: Mapping[str, Any]) -> HeldOut | None:
    return None if score["logits"] is None else HeldOut(score["logits"], score["labels"])


def choice_in_words(choice: Mapping[str, Any]) -> str:
    """Say what a selection has kept, and why.

    Args:
        choice: The outcome of a selection, as in `report.json`.

    Example:
        >>> choice_in_words({"chosen": "head", "reason": "no class has two labelled target images", "candidates": []})
        'kept the classifier on frozen features; no class has two labelled target images'
    """
    if choice.get("chosen") == HEAD:
        kept = "kept the classifier on frozen features; "
    elif any(one.get("name") == HEAD for one in choice["candidates"]):
        kept = "kept the trained layers; "
    else:
        kept = "chosen by held-out target images: "
    return f"{kept}{choice['reason']}"


def read_held_out(out: Path) -> HeldOut | None:
    """Read what the chosen candidate of a selection says about held-out images; None if none were held out."""
    content = read_selection(out)
    choice = None if content is None else content["choice"]
    if content is None or choice is None:
        return None
    scores = [one for one in content["scores"] if one["candidate"] == choice["chosen"]]
    found = [held for one in scores if (held := _held_out(one)) is not None]
    return HeldOut.join(found) if found else None


def read_asked(out: Path) -> dict[str, Any] | None:
    """Read the options with which a selection was requested; None if there was none."""
    content = read_selection(out)
    return None if content is None else dict(content["asked"])


def recall_choice(out: Path, data: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the outcome of the selection that led to a run; None if the run does not come from one.

    Args:
        out: The run's folder.
        data: The description of its images from `describe_data`.
        options: The run's options that affect its result.
    """
    content = read_selection(out)
    choice: dict[str, Any] | None = None if content is None else content["choice"]
    if content is None or choice is None:
        return None
    identity = content["identity"]
    same = identity["candidates"].get(choice["chosen"]) == json.loads(json.dumps(options))
    known = identity["data"]
    return choice if same and all(known.get(name) == value for name, value in data.items()) else None
