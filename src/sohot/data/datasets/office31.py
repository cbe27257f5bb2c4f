"""Office-31 (Saenko et al., ECCV 2010): 31 classes of office things from a shop, a good camera and a webcam."""

from pathlib import Path

from ..folders import scan_folder
from .class_table import ClassTable, apply_table
from .dataset import DataSet, locate, nothing_found

NAME = "office31"
OFFICIAL = {"amazon": 2817, "dslr": 498, "webcam": 795}
LETTERS = {"A": "amazon", "D": "dslr", "W": "webcam"}
SHIFTS = ("A-W", "A-D", "W-A", "W-D", "D-A", "D-W")
_OUTER = (".", "office31", "domain_adaptation_images", "Original_images")


def open_office31(root: Path, classes: ClassTable | None = None) -> DataSet:
    """Read Office-31 from `ROOT/amazon/images/CLASS/*.jpg` or `ROOT/amazon/CLASS/*.jpg`; a domain may be missing."""
    places = {name: [f"{outer}/{name}" for outer in _OUTER] for name in OFFICIAL}
    found = {name: folder for name in OFFICIAL if (folder := locate(root, places[name], "*")) is not None}
    if not found:
        raise nothing_found(NAME, root, "amazon/, dslr/ and webcam/, each with one folder per class,")
    scans = {name: scan_folder(path, check=False) for name, path in found.items()}
    domains = {name: scan.images for name, scan in scans.items()}
    problems: list[str] = [f"the domain {name} is missing" for name in OFFICIAL if name not in found]
    if classes is not None:
        for name in domains:
            domains[name], lacking = apply_table(domains[name], classes, name)
            problems += lacking
    left_out = tuple(one for scan in scans.values() for one in scan.left_out)
    return DataSet(NAME, root, domains, LETTERS, SHIFTS, OFFICIAL, left_out, tuple(problems))
