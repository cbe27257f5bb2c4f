"""Pascal VOC2007 to TU Berlin sketches (Eitz et al., SIGGRAPH 2012): from photographs to drawings."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from ..folders import LeftOut, scan_folder
from ..labelled import LabelledImages
from .class_table import ClassTable, apply_table
from .dataset import DataSet, locate, nothing_found


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
        ValueError: It is not such a file; the message says why.
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


NAME = "voc-sketches"
PHOTOS, SKETCHES = "voc", "sketches"
CLASSES: ClassTable = {
    "airplane": {PHOTOS: ["aeroplane"]},
    "bicycle": {},
    "bus": {},
    "car": {SKETCHES: ["car (sedan)"]},
    "cat": {},
    "chair": {},
    "cow": {},
    "dog": {},
    "horse": {},
    "motorbike": {},
    "potted plant": {PHOTOS: ["pottedplant"]},
    "sheep": {},
    "train": {},
    "tv": {PHOTOS: ["tvmonitor"]},
}
"""The 14 shared classes."""
PER_SKETCH_CLASS = 80
OFFICIAL_PHOTOS = {5011: "trainval", 4952: "test", 9963: "trainval and test"}

_PHOTO_FOLDERS = ("VOCdevkit/VOC2007", "VOC2007", "VOCtrainval_06-Nov-2007/VOCdevkit/VOC2007", ".")
_SKETCH_FOLDERS = ("png", "sketches_png/png", "sketches_png", "sketches", "tu-berlin/png")


def open_voc_sketches(
    root: Path,
    classes: ClassTable | None = None,
    *,
    whole: bool = False,
    difficult: bool = False,
    truncated: bool = True,
) -> DataSet:
    """Read `ROOT/VOCdevkit/VOC2007/{Annotations,JPEGImages}` and `ROOT/png/CLASS/*.png`.

    All objects of one photograph belong to one group, so they stay on one side of every split.

    Args:
        root: The folder in which both were unpacked; either may be missing.
        classes: Another table of shared classes, for the domains "voc" and "sketches".
        whole: Take whole photographs in which all objects are of one class, instead of crops of objects.
        difficult: Take objects marked as difficult, too.
        truncated: Take objects that the edge of the photograph cuts, too.
    """
    table = CLASSES if classes is None else classes
    photo_folder = locate(root, _PHOTO_FOLDERS, "Annotations/*.xml")
    sketch_folder = locate(root, _SKETCH_FOLDERS, "*/*.png")
    if photo_folder is None and sketch_folder is None:
        raise nothing_found(NAME, root, "VOCdevkit/VOC2007/ (with Annotations/) and png/ (the sketches)")
    domains: dict[str, LabelledImages] = {}
    problems: list[str] = []
    left_out: list[LeftOut] = []
    official = {}
    if photo_folder is None:
        problems.append("the domain voc (VOCdevkit/VOC2007/) is missing")
    else:
        domains[PHOTOS], said = _photos(photo_folder, whole, difficult, truncated, left_out)
        problems += said
    if sketch_folder is None:
        problems.append("the domain sketches (png/) is missing")
    else:
        scan = scan_folder(sketch_folder, check=False)
        domains[SKETCHES] = scan.images
        left_out += scan.left_out
        official[SKETCHES] = PER_SKETCH_CLASS * len(table)
    domains, lacking = apply_table(domains, table)
    problems += lacking
    return DataSet(NAME, root, domains, {}, (f"{PHOTOS}-{SKETCHES}",), official, tuple(left_out), tuple(problems))


def _photos(
    folder: Path, whole: bool, difficult: bool, truncated: bool, left_out: list[LeftOut]
) -> tuple[LabelledImages, list[str]]:
    annotations = sorted((folder / "Annotations").glob("*.xml"))
    rows: list[tuple[Path, VocObject]] = []
    for file in annotations:
        photo = folder / "JPEGImages" / f"{file.stem}.jpg"
        try:
            objects = read_annotation(file)
        except ValueError as error:
            left_out.append(LeftOut(file, str(error)))
            continue
        if not photo.is_file():
            left_out.append(LeftOut(file, f"its photograph {photo.name} is missing"))
            continue
        rows += [(photo, item) for item in _wanted(objects, whole, difficult, truncated)]
    classes = tuple(sorted({item.name for _, item in rows}))
    number = {name: label for label, name in enumerate(classes)}
    images = LabelledImages(
        tuple(photo for photo, _ in rows),
        tuple(number[item.name] for _, item in rows),
        classes,
        folder,
        parts=() if whole else tuple(item.box for _, item in rows),
        groups=tuple(f"voc/{photo.stem}" for photo, _ in rows),
    )
    if len(annotations) in OFFICIAL_PHOTOS:
        return images, []
    known = ", ".join(f"{name} {count}" for count, name in OFFICIAL_PHOTOS.items())
    return images, [f"voc has {len(annotations)} annotated photographs; official releases have: {known}"]


def _wanted(objects: list[VocObject], whole: bool, difficult: bool, truncated: bool) -> list[VocObject]:
    """Choose the objects of one photograph; for whole photographs one stands for all, if they agree."""
    kept = [item for item in objects if (difficult or not item.difficult) and (truncated or not item.truncated)]
    if not whole:
        # The same box twice with two names would be one image with two labels.
        often = Counter(item.box for item in kept)
        return [item for item in kept if often[item.box] == 1]
    return kept[:1] if len({item.name for item in objects}) == 1 else []
