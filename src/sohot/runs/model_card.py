"""What a trained model is, for whoever gets it: the facts in its files, and a page of Markdown that tells them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..data.input_spec import InputSpec
from ..data.names import enumerate_words, visible
from ..data.pools import TRANSDUCTIVE
from ..methods.registry import method
from ..networks.names import is_folder, is_own
from ..networks.recommended import find_recommended
from ..selection.calibration import Calibration, Effect
from .auto import choice_in_words
from .calibration_file import read_calibration
from .description import accuracy_name, describe_run, is_head, values_of

_HEADER = """---
license: unknown
library_name: onnx
pipeline_tag: image-classification
tags:
- domain-adaptation
- few-shot
- sohot
---
"""
"""Metadata by which the Hugging Face hub lists a model; the licence is not recorded, see `_limits`."""


def describe_model(path: Path) -> dict[str, Any]:
    """Collect the facts about a run or a head from its files, as `describe_run` does, and its calibration."""
    if is_head(path):
        from .stored_head import describe_head  # what only a head needs takes a moment to import

        return describe_head(path)
    calibration = read_calibration(path)
    return {**describe_run(path), "calibration": None if calibration is None else calibration.as_json()}


def calibration_in_words(calibration: Mapping[str, Any] | None) -> str:
    """Say how probabilities are calibrated; a head knows the temperature alone.

    >>> calibration_in_words({"temperature": 1.5}), calibration_in_words(None)
    ('calibrated (temperature 1.50)', 'not calibrated')
    """
    if calibration is None:
        return "not calibrated"
    if len(calibration) > 1:
        return Calibration.from_json(calibration).sentence()
    return f"calibrated (temperature {calibration['temperature']:.2f})"


def model_card(path: Path, spec: InputSpec, made: str) -> str:
    """Write the README of a package: how to use the model, what it was trained on, how good it is, and its limits.

    It begins with what the Hugging Face hub reads, and names no folder of this machine, because packages are passed on.

    Args:
        path: The run's folder, or the head.
        spec: Input format of its network.
        made: By what and when the package was made.

    Raises:
        ValueError: The files of the run are damaged.
    """
    facts = describe_model(path)
    with values_of(path):
        sections = {
            "Use": _use(),
            "Training": _training(facts),
            "Accuracy": _accuracy(facts),
            "Confidence": _confidence(facts["calibration"]),
            "Limits": _limits(facts),
            "Preprocessing": _preprocessing(spec),
        }
    classes = facts["classes"]
    parts = [
        _HEADER,
        f"# Image classifier, {len(classes)} classes\n\n{plain(enumerate_words(classes))}; {plain(made)}.\n",
    ]
    parts += [f"## {title}\n\n" + "\n".join(lines) + "\n" for title, lines in sections.items()]
    return "\n".join(parts)


def plain(text: str) -> str:
    r"""Escape a name, so that Markdown shows it as it is: it is no markup, no link and no line of its own.

    >>> print(plain("a_b|<img>\n# c"))
    a\_b\|\<img\>\\u000a\# c
    """
    return re.sub(r"([\\`*_\[\]<>|#~&!])", r"\\\1", visible(text).replace("\n", "\\u000a").replace("\t", " "))


def _use() -> list[str]:
    return [
        "Python 3.10 or later; neither torch nor sohot is needed:",
        "",
        "    pip install -r requirements.txt",
        "    python predict.py photos new.jpg --out labels.csv --top 3",
        "    python predict.py --help",
        "",
        "or, in Python, with this folder on the path:",
        "",
        "    from predict import Model",
        "",
        '    for answer in Model().predict(["new.jpg"]):',
        "        print(answer.file, answer.labels, answer.probabilities, answer.error)",
        "",
        "`requirements.txt` names the versions that the model was checked with; others usually do as well.",
        "`package.json` holds a SHA-256 of every file. The model is ONNX, and loading it runs no code.",
    ]


def about_network(description: Mapping[str, Any]) -> dict[str, str]:
    """Name a described network and, where they are known, its publisher and the licence of its published weights.

    >>> about_network({"backbone": "/home/me/mine.py:net"})
    {'name': 'mine.py:net'}
    """
    backbone = str(description.get("backbone", "unknown"))
    if is_own(backbone) or is_folder(backbone):
        return {"name": Path(backbone).name}
    known = find_recommended(backbone)
    if known is None or description.get("from_scratch"):
        return {"name": backbone}
    model = {} if known.timm is None else {"timm": known.timm}
    return {"name": backbone, **model, "publisher": known.publisher, "licence": known.licence}


def _training(facts: Mapping[str, Any]) -> list[str]:
    data, network = facts["data"], about_network(facts["network"])
    whose = f", published by {network['publisher']} under {network['licence']}" if "licence" in network else ""
    lines = [
        f"- Method: {plain(facts['method'])}; it was {plain(method(facts['method']).sentence)}",
        f"- Backbone: {plain(network['name'] + whose)}",
        f"- State: {plain(facts['state'].partition('; continue')[0])}",
    ]
    if facts["selection"]:
        lines.append(f"- Chosen: {plain(choice_in_words(facts['selection']))}")
    if not data:
        return [*lines, "- Its files do not say which images trained it."]
    names = {"source": "labelled source images", "target": "labelled target images", "test": "test images"}
    for part, name in {**names, "pool": "target images without labels"}.items():
        if found := data.get(part):
            lines.append(f"- {found['images'] if 'images' in found else found['rows']} {name}")
    return [*lines, *_table(facts)]


def _table(facts: Mapping[str, Any]) -> Iterator[str]:
    """Write the images of each class, where they are known, and how many of the test are right."""
    parts = {part: facts["data"].get(part) or {} for part in ("source", "target", "test")}
    counts = {name: part["per_class"] for name, part in parts.items() if "per_class" in part}
    if not counts:
        return
    right = (facts["accuracy"] or {}).get("per_class", {})
    yield from ("", _row(["class", *counts, *(["right in the test"] if right else [])]))
    yield _row(["---"] * (1 + len(counts) + bool(right)))
    for place, name in enumerate(facts["classes"]):
        share = [_percent(right.get(name))] if right else []
        yield _row([plain(name), *(str(column[place]) for column in counts.values()), *share])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def _accuracy(facts: Mapping[str, Any]) -> list[str]:
    found = facts["accuracy"]
    if not found:
        return ["Unknown: it was not tested on images that were kept out of training."]
    low, high = found["interval95"]
    lines = [
        f"{accuracy_name(facts['protocol']).capitalize()} {_percent(found['micro'])} of {found['rows']} test images "
        f"(Wilson's 95 % interval: {_percent(low)} to {_percent(high)}); mean of classes {_percent(found['macro'])}.",
        "",
        "Measured once, at the end of training, on labelled target images that neither trained the model nor chose",
        "anything, as the report of the run states it.",
    ]
    if facts["protocol"] == TRANSDUCTIVE:
        lines.append("Transductive: training saw the test images without their labels.")
    if effect := found.get("calibration"):
        lines += ["", f"{Effect(**effect).sentence().capitalize()}."]
    return lines


def _confidence(calibration: Mapping[str, Any] | None) -> list[str]:
    lines = [f"Probabilities are {calibration_in_words(calibration)}."]
    if calibration is None:
        return [*lines, "They rank answers, but 90 % need not mean that nine of ten answers are right."]
    return [*lines, "The logits of `model.onnx` are divided by the temperature already."]


def _limits(facts: Mapping[str, Any]) -> list[str]:
    return [
        f"- Every image gets one of the {len(facts['classes'])} labels, also one that shows something else; a low",
        "  probability is a hint of that, a high one no proof of the contrary.",
        "- It was adapted to images like its target images; on others, the accuracy and the calibration above need not",
        "  hold. Test it on labelled images of your own.",
        "- The licence of the weights is not recorded: before you pass it on, check the licences of its backbone",
        "  and of the images that trained it. `predict.py` is under Apache-2.0.",
    ]


def _preprocessing(spec: InputSpec) -> list[str]:
    colour = "RGB" if spec.channels == 3 else "grey"
    return [
        f"`predict.py` prepares images as training did: {colour}, upright, shorter side to {spec.resize}",
        f"({spec.interpolation}), centre of {spec.size} x {spec.size}, levels / 255, minus {list(spec.mean)},",
        f"divided by {list(spec.std)}.",
        "With the versions of `requirements.txt` the result is equal to that of sohot bit for bit.",
    ]
