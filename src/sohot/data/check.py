"""Check a data set: counts, exact duplicates, unreadable images; and describe what is wrong."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .contents import content_keys
from .datasets.dataset import DataSet
from .folders import unreadable
from .labelled import LabelledImages, Progress
from .names import enumerate_words


@dataclass(frozen=True)
class Copies:
    """Byte-identical images: (domain, class, file) of each."""

    images: tuple[tuple[str, str, str], ...]

    @property
    def domains(self) -> set[str]:
        """The domains they are in."""
        return {domain for domain, _, _ in self.images}

    @property
    def classes(self) -> set[str]:
        """The classes they are labelled with."""
        return {name for _, name, _ in self.images}


@dataclass(frozen=True)
class CheckReport:
    """The result of a check.

    Attributes:
        dataset: The data set.
        copies: Groups of byte-identical images.
        broken: Images that cannot be read: (domain, file, reason).
        decoded: Whether the images were decoded.
    """

    dataset: DataSet
    copies: tuple[Copies, ...]
    broken: tuple[tuple[str, str, str], ...]
    decoded: bool

    def problems(self) -> list[str]:
        """Describe each problem in a sentence; empty if there is none."""
        said = list(self.dataset.problems)
        for domain, official in self.dataset.official.items():
            count = len(self.dataset.domains[domain]) if domain in self.dataset.domains else official
            if count != official:
                said.append(f"{domain} has {count} images, the official release has {official}")
        for copies in self.copies:
            if len(copies.classes) > 1:
                files = enumerate_words(file for _, _, file in copies.images)
                said.append(f"one picture has the labels {enumerate_words(sorted(copies.classes))}: {files}")
        said += [f"{domain}: {file} cannot be read: {reason}" for domain, file, reason in self.broken]
        return said + [str(item) for item in self.dataset.left_out]

    def remarks(self) -> list[str]:
        """Describe what is worth knowing but not wrong."""
        said = []
        for domain, count in self.repeats().items():
            if count:
                said.append(f"{domain} holds {count} byte-identical repeats; protocols keep copies on one side")
        across = [copies for copies in self.copies if len(copies.domains) > 1]
        if across:
            said.append(f"{len(across)} pictures occur in several domains; protocols drop them from the source")
        return said

    def repeats(self) -> dict[str, int]:
        """Count, for each domain, the images that are byte-identical to an earlier image of that domain."""
        counts = dict.fromkeys(self.dataset.domains, 0)
        for copies in self.copies:
            for domain in copies.domains:
                counts[domain] += sum(1 for each, _, _ in copies.images if each == domain) - 1
        return counts

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        repeats, problems = self.repeats(), self.problems()
        return {
            "dataset": self.dataset.name,
            "ok": not problems,
            "domains": {
                name: {
                    "images": len(images),
                    "official": self.dataset.official.get(name),
                    "classes": dict(zip(images.classes, images.counts(), strict=True)),
                    "repeats": repeats[name],
                    "unreadable": sum(1 for domain, _, _ in self.broken if domain == name) if self.decoded else None,
                }
                for name, images in self.dataset.domains.items()
            },
            "duplicates": {
                "groups": len(self.copies),
                "repeats": sum(repeats.values()),
                "across_classes": sum(1 for copies in self.copies if len(copies.classes) > 1),
                "across_domains": sum(1 for copies in self.copies if len(copies.domains) > 1),
                "files": [[f"{domain}/{file}" for domain, _, file in copies.images] for copies in self.copies],
            },
            "unreadable": [{"domain": domain, "file": file, "reason": reason} for domain, file, reason in self.broken],
            "left_out": [path.as_json() for path in self.dataset.left_out],
            "problems": problems,
            "remarks": self.remarks(),
        }


def check_dataset(
    dataset: DataSet, *, decode: bool = True, progress: Progress | None = None, workers: int | None = None
) -> CheckReport:
    """Check a data set.

    Args:
        dataset: The data set.
        decode: Decode every image; otherwise only count images and find duplicates.
        progress: Called with the name of the stage, the number of images done, and the total.
        workers: Number of threads; None for one per processor, at most 8.
    """
    broken: list[tuple[str, str, str]] = []
    for domain, images in dataset.domains.items() if decode else ():
        report = None if progress is None else _for_stage(progress, f"decoding {domain}")
        for row, reason in unreadable(images, on_progress=report, workers=workers).items():
            broken.append((domain, images.name(row), reason))
    return CheckReport(dataset, find_copies(dataset.domains), tuple(broken), decode)


def find_copies(domains: Mapping[str, LabelledImages]) -> tuple[Copies, ...]:
    """Find the images that are byte-identical, within and across domains and classes."""
    together: dict[str, list[tuple[str, str, str]]] = {}
    for (domain, images), keys in zip(domains.items(), content_keys(list(domains.values())), strict=True):
        for row, key in enumerate(keys):
            together.setdefault(key, []).append((domain, images.classes[images.labels[row]], images.name(row)))
    return tuple(Copies(tuple(same)) for same in together.values() if len(same) > 1)


def _for_stage(progress: Progress, stage: str) -> Callable[[int, int], None]:
    return lambda done, of: progress(stage, done, of)
