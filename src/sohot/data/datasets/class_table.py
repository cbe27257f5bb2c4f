"""Match class names of different data sets through a table that can be replaced."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ..._reading import read_json
from ..labelled import LabelledImages
from ..names import enumerate_words

ClassTable = Mapping[str, Mapping[str, Sequence[str]]]
"""For each class: what each domain calls it (one name or several). A domain that is not named uses the class's name."""


def plain_name(name: str) -> str:
    """Reduce the name of a class folder to its letters and digits, without Caltech's numbers.

    >>> plain_name("027.calculator"), plain_name("Coffee_Mug"), plain_name("127.laptop-101")
    ('calculator', 'coffeemug', 'laptop')
    """
    name = re.sub(r"^[0-9]{3}\.", "", name.casefold())
    return re.sub(r"[\W_]+", "", re.sub(r"-101$", "", name))


def names_in(table: ClassTable, domain: str) -> dict[str, str]:
    """Return the class of each plain folder name in a domain.

    Raises:
        ValueError: One name stands for two classes.
    """
    owner: dict[str, str] = {}
    for name, domains in table.items():
        for called in domains.get(domain, [name]):
            if owner.setdefault(plain_name(called), name) != name:
                raise ValueError(
                    f"the class table maps {called!r} of {domain} to both {owner[plain_name(called)]!r} and {name!r}"
                )
    return owner


def apply_table(
    domains: Mapping[str, LabelledImages], table: ClassTable | None
) -> tuple[dict[str, LabelledImages], list[str]]:
    """Rename the classes of all domains and keep only those in the table; without a table change nothing.

    Returns:
        The images over the classes of the table, in its order, and a sentence for each class that has no image.
    """
    if table is None:
        return dict(domains), []
    renamed = {domain: _rename(images, table, domain) for domain, images in domains.items()}
    return renamed, [
        f"{domain} has no image of class {name!r} (called {enumerate_words(table[name].get(domain, [name]))} there)"
        for domain, images in renamed.items()
        for name, count in zip(images.classes, images.counts(), strict=True)
        if not count
    ]


def _rename(images: LabelledImages, table: ClassTable, domain: str) -> LabelledImages:
    classes = tuple(table)
    wanted = names_in(table, domain)
    new_label = {
        label: classes.index(wanted[plain_name(name)])
        for label, name in enumerate(images.classes)
        if plain_name(name) in wanted
    }
    rows = [row for row, label in enumerate(images.labels) if label in new_label]
    labels = tuple(new_label[images.labels[row]] for row in rows)
    return replace(images.subset(rows), labels=labels, classes=classes)


def read_class_table(file: Path) -> ClassTable:
    """Read a table from JSON: `{"light bulb": {"depth": "lightbulb", "caltech": ["131.lightbulb", "bulb"]}, …}`.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is not such a table.
    """
    try:
        content = read_json(file)
    except FileNotFoundError:
        raise FileNotFoundError(f"the class table {file} does not exist") from None
    except ValueError as error:
        raise ValueError(f"the class table {file} is not JSON: {error}") from None
    if not isinstance(content, dict) or not content or not all(isinstance(value, dict) for value in content.values()):
        raise ValueError(f"the class table {file} must have the form {{class: {{domain: name or names, …}}, …}}")
    table = {
        name: {domain: [called] if isinstance(called, str) else called for domain, called in domains.items()}
        for name, domains in content.items()
    }
    for name, domains in table.items():
        for domain, called in domains.items():
            if not isinstance(called, list) or not all(isinstance(each, str) for each in called):
                raise ValueError(f"the class table {file} must give a name or names for {name!r} in {domain!r}")
    return table
