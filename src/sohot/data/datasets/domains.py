"""Domains of classes, in folders `ROOT/domain/class/*` or in a list: Office-31, Office-Home, PACS, your own."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import permutations
from pathlib import Path

from ..folders import FolderScan, scan_folder
from ..manifest import read_manifest
from ..manifest_rows import DOMAIN, LABEL, PATH, is_manifest
from ..names import natural_key, printable
from .class_table import ClassTable, apply_table, plain_name
from .dataset import DataSet, locate, nothing_found, require_folder


@dataclass(frozen=True)
class Known:
    """A data set of this form: the number of images of each domain, and folders that may hold the domains."""

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
    """Read every folder below `root` as a domain that holds one folder per class; or a list of "domains".

    Args:
        root: The folder of domains, or a list of images with the columns `path`, `label` and `domain`.
        classes: Renames classes and keeps only those it names; None to keep all under their own names.
        name: "domains", or a data set of this form whose official counts are known.
    """
    known = KNOWN[name]
    if is_manifest(root) and not known.official:
        folder, listed = _listed(root)
        return _made(name, folder, listed, known, _shifts(listed), classes)
    require_folder(root)
    folders = next((inside for outer in (".", *known.inside) if (inside := _domains(root / outer, known))), {})
    if not folders:
        wanted = ", ".join(known.official) if known.official else "folders of domains, each with one folder per class"
        raise nothing_found(name, root, wanted)
    short = {full: letter for letter, full in known.letters.items()}
    shifts = _shifts([short.get(domain, domain) for domain in folders])
    return _made(name, root, _scanned(folders), known, shifts, classes)


def _shifts(domains: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{source}-{target}" for source, target in permutations(domains, 2))


def _scanned(folders: Mapping[str, Path]) -> dict[str, FolderScan]:
    """Read the class folders of each domain."""
    return {domain: scan_folder(folder, check=False) for domain, folder in folders.items()}


def _listed(file: Path) -> tuple[Path, dict[str, FolderScan]]:
    """Read the domains of a list, each by names below its own folder, and the folder that holds all images."""
    manifest = read_manifest(file, (PATH, LABEL, DOMAIN))
    manifest.require(LABEL)
    manifest.require(DOMAIN)
    rows: dict[str, list[int]] = {}
    for place, row in enumerate(manifest.rows):
        rows.setdefault(row.domain or "", []).append(place)
    scans = {}
    for domain in sorted(rows, key=natural_key):
        images = manifest.images_of(rows[domain])
        folder = os.path.commonpath([file.parent for file in images.files])
        scans[domain] = FolderScan(replace(images, root=Path(folder)), [])
    return manifest.root, scans


def _made(
    name: str,
    root: Path,
    scans: Mapping[str, FolderScan],
    known: Known,
    shifts: tuple[str, ...],
    classes: ClassTable | None,
) -> DataSet:
    """Make a data set of the images of its domains."""
    domains, lacking = apply_table({domain: scan.images for domain, scan in scans.items()}, classes)
    missing = [f"the domain {domain} is missing" for domain in known.official if domain not in scans]
    left_out = tuple(path for scan in scans.values() for path in scan.left_out)
    return DataSet(name, root, domains, known.letters, shifts, known.official, left_out, (*missing, *lacking))


def _domains(folder: Path, known: Known) -> dict[str, Path]:
    """Find the domain folders; those of a known data set under any spelling of their names."""
    if not folder.is_dir():
        return {}
    inside = [path for path in folder.iterdir() if path.is_dir() and not path.name.startswith((".", "__"))]
    domains = [path for path in inside if any(inner.is_dir() for inner in path.iterdir())]
    domains.sort(key=lambda path: natural_key(path.name))
    if not known.official:
        return {printable(path.name): path for path in domains}
    spelled = {plain_name(name): name for name in known.official}
    return {spelled[plain_name(path.name)]: path for path in domains if plain_name(path.name) in spelled}


OFFICE31 = Known(
    {"amazon": 2817, "dslr": 498, "webcam": 795},
    (".", "office31", "domain_adaptation_images", "Original_images"),
    {"A": "amazon", "D": "dslr", "W": "webcam"},
)
SHIFTS = ("A-W", "A-D", "W-A", "W-D", "D-A", "D-W")


def open_office31(root: Path, classes: ClassTable | None = None) -> DataSet:
    """Read Office-31 from `ROOT/amazon/images/CLASS/*.jpg` or `ROOT/amazon/CLASS/*.jpg`; a domain may be missing."""
    candidates = {domain: [f"{outer}/{domain}" for outer in OFFICE31.inside] for domain in OFFICE31.official}
    folders = {domain: folder for domain in candidates if (folder := locate(root, candidates[domain], "*")) is not None}
    if not folders:
        raise nothing_found("office31", root, "amazon/, dslr/ and webcam/, each with one folder per class")
    return _made("office31", root, _scanned(folders), OFFICE31, SHIFTS, classes)
