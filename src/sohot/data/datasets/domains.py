"""Any folder of domains of classes, `ROOT/domain/class/*`: Office-31, Office-Home, PACS, DomainNet, one's own."""

from dataclasses import dataclass, field
from pathlib import Path

from ..folders import FolderScan, scan_folder
from ..names import natural_key, printable
from .class_table import ClassTable, apply_table, plain_name
from .dataset import DataSet, locate, nothing_found


@dataclass(frozen=True)
class Known:
    """A data set of this form: folders in which its domains may lie, and the images of each domain."""

    official: dict[str, int]
    inside: tuple[str, ...] = ()
    letters: dict[str, str] = field(default_factory=dict)


KNOWN = {
    "domains": Known({}),
    "office-home": Known(
        {"Art": 2427, "Clipart": 4365, "Product": 4439, "Real World": 4357},
        ("OfficeHomeDataset_10072016", "OfficeHome"),
        {"A": "Art", "C": "Clipart", "P": "Product", "R": "Real World"},
    ),
    "pacs": Known(
        {"photo": 1670, "art_painting": 2048, "cartoon": 2344, "sketch": 3929},
        ("kfold", "PACS", "pacs_data"),
        {"P": "photo", "A": "art_painting", "C": "cartoon", "S": "sketch"},
    ),
}


def open_domains(root: Path, classes: ClassTable | None = None, *, name: str = "domains") -> DataSet:
    """Read every folder below `root` as a domain that holds one folder per class.

    Args:
        root: The folder of domains.
        classes: Renames classes and keeps those it names; None to keep all under their own names.
        name: "domains", or a data set of this form whose official counts are known.
    """
    known = KNOWN[name]
    if not root.is_dir():
        raise FileNotFoundError(f"the folder {printable(root)} does not exist")
    folders = next((found for each in (".", *known.inside) if (found := _domains(root / each, known))), {})
    if not folders:
        wanted = ", ".join(known.official) if known.official else "folders of domains, each with one folder per class,"
        raise nothing_found(name, root, wanted)
    problems: list[str] = [f"the domain {each} is missing" for each in known.official if each not in folders]
    scans: dict[str, FolderScan] = {each: scan_folder(path, check=False) for each, path in folders.items()}
    domains = {each: scan.images for each, scan in scans.items()}
    if classes is not None:
        for each in domains:
            domains[each], lacking = apply_table(domains[each], classes, each)
            problems += lacking
    short = {full: letter for letter, full in known.letters.items()}
    spelled = [short.get(each, each) for each in domains]
    shifts = tuple(f"{source}-{target}" for source in spelled for target in spelled if source != target)
    left_out = tuple(one for scan in scans.values() for one in scan.left_out)
    return DataSet(name, root, domains, known.letters, shifts, known.official, left_out, tuple(problems))


def _domains(folder: Path, known: Known) -> dict[str, Path]:
    """Find the domain folders; those of a known data set under any spelling of their names."""
    if not folder.is_dir():
        return {}
    inner = [each for each in folder.iterdir() if each.is_dir() and not each.name.startswith((".", "__"))]
    inner = sorted(
        (each for each in inner if any(one.is_dir() for one in each.iterdir())), key=lambda each: natural_key(each.name)
    )
    if not known.official:
        return {printable(each.name): each for each in inner}
    spelled = {plain_name(name): name for name in known.official}
    return {spelled[plain_name(each.name)]: each for each in inner if plain_name(each.name) in spelled}


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
