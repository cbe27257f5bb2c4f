"""RGB-D Object (Lai et al., ICRA 2011) to Caltech256 (Griffin et al., 2007): from depth maps to photographs."""

from pathlib import Path

from ..folders import scan_folder
from ..labelled import LabelledImages
from ..names import natural_key, printable
from .class_table import ClassTable, apply_table, names_in, plain_name
from .dataset import DataSet, locate, nothing_found

NAME = "rgbd-caltech"
DEPTH, PHOTOS = "depth", "caltech"
CLASSES: ClassTable = {
    "ball": {DEPTH: ["ball"], PHOTOS: ["soccer-ball"]},
    "calculator": {},
    "cereal box": {},
    "coffee mug": {},
    "flashlight": {},
    "keyboard": {DEPTH: ["keyboard"], PHOTOS: ["computer-keyboard"]},
    "light bulb": {},
    "mushroom": {},
    "soda can": {},
    "tomato": {},
}
"""The ten shared classes. Names are compared by their letters alone: `coffee_mug`, `041.coffee-mug`, `lightbulb`."""

_DEPTH_FOLDERS = ("rgbd-dataset", "rgbd-dataset_eval", "rgbd-dataset_eval/rgbd-dataset", "rgbd-dataset/rgbd-dataset")
_PHOTO_FOLDERS = ("256_ObjectCategories", "caltech256/256_ObjectCategories", "caltech256", "Caltech256")


def open_rgbd_caltech(root: Path, classes: ClassTable | None = None) -> DataSet:
    """Read `ROOT/rgbd-dataset/CLASS/CLASS_N/*_depthcrop.png` and `ROOT/256_ObjectCategories/NNN.CLASS/*.jpg`.

    All views of one object (`CLASS_N`) belong to one group, so they stay on one side of every split.

    Args:
        root: The folder in which both were unpacked; either may be missing.
        classes: Another table of shared classes, for the domains "depth" and "caltech".
    """
    table = CLASSES if classes is None else classes
    depth_folder = locate(root, (*_DEPTH_FOLDERS, "."), "*/*/*_depthcrop.png")
    photo_folder = locate(root, (*_PHOTO_FOLDERS, "."), "[0-9][0-9][0-9].*")
    if depth_folder is None and photo_folder is None:
        raise nothing_found(NAME, root, "rgbd-dataset/ (with *_depthcrop.png) and 256_ObjectCategories/")
    domains: dict[str, LabelledImages] = {}
    missing: list[str] = []
    left_out = []
    if depth_folder is None:
        missing.append("the domain depth (rgbd-dataset/ with *_depthcrop.png) is missing")
    else:
        domains[DEPTH] = _depth(depth_folder, table)
    if photo_folder is None:
        missing.append("the domain caltech (256_ObjectCategories/) is missing")
    else:
        scan = scan_folder(photo_folder, check=False)
        domains[PHOTOS], left_out = scan.images, scan.left_out
    domains, lacking = apply_table(domains, table)
    return DataSet(NAME, root, domains, {}, (f"{DEPTH}-{PHOTOS}",), {}, tuple(left_out), (*missing, *lacking))


def _depth(folder: Path, table: ClassTable) -> LabelledImages:
    """List the depth crops of the wanted classes; the release holds several hundred thousand other files."""
    wanted = names_in(table, DEPTH)
    categories = [each for each in folder.iterdir() if each.is_dir() and plain_name(each.name) in wanted]
    rows: list[tuple[Path, str, str]] = []
    for category in sorted(categories, key=lambda each: natural_key(each.name)):
        crops = sorted(category.glob("*/*_depthcrop.png"), key=lambda file: natural_key(str(file)))
        rows += [(file, category.name, printable(f"{category.name}/{file.parent.name}")) for file in crops]
    names = list(dict.fromkeys(name for _, name, _ in rows))
    return LabelledImages(
        tuple(file for file, _, _ in rows),
        tuple(names.index(name) for _, name, _ in rows),
        tuple(names),
        folder,
        groups=tuple(group for _, _, group in rows),
        reader="depth",
    )
