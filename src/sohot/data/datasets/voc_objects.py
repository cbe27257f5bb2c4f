"""The objects that a Pascal VOC annotation names."""

from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree


@dataclass(frozen=True)
class VocObject:
    """One object: its class, its box as "left,top,right,bottom" in pixels from 0 (right and bottom excluded)."""

    name: str
    box: str
    difficult: bool = False
    truncated: bool = False


def read_annotation(file: Path) -> list[VocObject]:
    """Read the objects of one photograph. Pascal counts pixels from 1 and includes the last ones.

    Raises:
        ValueError: It is not such a file; the sentence says why.
    """
    try:
        root = ElementTree.parse(file).getroot()
    except ElementTree.ParseError as error:
        raise ValueError(f"it is not XML: {error}") from None
    return [_object(each) for each in root.iter("object")]


def _object(element: ElementTree.Element) -> VocObject:
    name, box = element.findtext("name", "").strip(), element.find("bndbox")
    if not name or box is None:
        raise ValueError("an object in it has no name or no box")
    try:
        # Some boxes of later releases have fractions.
        left, top, right, bottom = (round(float(box.findtext(side, ""))) for side in ("xmin", "ymin", "xmax", "ymax"))
    except ValueError:
        raise ValueError(f"the box of a {name} in it lacks a number") from None
    if not (1 <= left <= right and 1 <= top <= bottom):
        raise ValueError(f"the box {left},{top},{right},{bottom} of a {name} in it is empty")
    return VocObject(
        name,
        f"{left - 1},{top - 1},{right},{bottom}",
        element.findtext("difficult", "0").strip() == "1",
        element.findtext("truncated", "0").strip() == "1",
    )
