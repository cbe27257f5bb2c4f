"""A data set: several domains over the same classes, read from its unpacked folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..folders import LeftOut, common_classes
from ..labelled import LabelledImages
from ..names import enumerate_words, printable


@dataclass(frozen=True)
class DataSet:
    """The images of each domain, not yet decoded.

    Attributes:
        name: The name it is opened by.
        root: Its folder; all files are below it.
        domains: The images of each domain that is present.
        letters: Short names of domains, for shifts such as `A-W`.
        shifts: The shifts that are studied, spelled as `source-target`.
        official: Number of images of each domain in the official release, where known.
        left_out: What was found but not used, and why.
        problems: What is missing or differs from the official release, one sentence each.
    """

    name: str
    root: Path
    domains: Mapping[str, LabelledImages]
    letters: Mapping[str, str] = field(default_factory=dict)
    shifts: tuple[str, ...] = ()
    official: Mapping[str, int] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()
    problems: tuple[str, ...] = ()

    def parse_shift(self, shift: str | None) -> tuple[str, str, str]:
        """Parse a shift, in short or full names and any case.

        Returns:
            Its canonical spelling, the source domain and the target domain.

        Raises:
            ValueError: It does not name two domains, or is None where there are several shifts.
            FileNotFoundError: It names a domain of the data set that is not in the folder.
        """
        if shift is None:
            if len(self.shifts) != 1:
                raise ValueError(f"shift must be one of {enumerate_words(self.shifts)}")
            shift = self.shifts[0]
        known = {name.casefold(): name for name in (*self.official, *self.domains)}
        known |= {short.casefold(): name for short, name in self.letters.items()}
        words = shift.split("-")
        ways = [("-".join(words[:cut]), "-".join(words[cut:])) for cut in range(1, len(words))]
        for source, target in ways:
            if source.casefold() in known and target.casefold() in known:
                return self._found(known[source.casefold()], known[target.casefold()])
        choice = enumerate_words(self.shifts) or f"SOURCE-TARGET out of {enumerate_words(self.domains)}"
        raise ValueError(f"shift must be one of {choice}, got {shift!r}")

    def _found(self, source: str, target: str) -> tuple[str, str, str]:
        if source == target:
            raise ValueError(f"a shift needs two different domains, got {source!r} twice")
        for name in (source, target):
            if name not in self.domains:
                raise FileNotFoundError(f"the domain {name!r} of {self.name} is not in {printable(self.root)}")
        short = {name: letter for letter, name in self.letters.items()}
        return f"{short.get(source, source)}-{short.get(target, target)}", source, target

    def pair(self, shift: str | None, leave_out: bool = False) -> tuple[LabelledImages, LabelledImages]:
        """Return the source and the target of a shift over their shared classes; see `common_classes`."""
        _, source, target = self.parse_shift(shift)
        return common_classes(self.domains[source], self.domains[target], leave_out)


def require_folder(root: Path) -> None:
    """Require that the folder of a data set exists.

    Raises:
        FileNotFoundError: There is no such folder.
        NotADirectoryError: It is a file.
    """
    if not root.exists():
        raise FileNotFoundError(f"the folder {printable(root)} does not exist")
    if not root.is_dir():
        raise NotADirectoryError(f"{printable(root)} is a file, but the data set is a folder")


def locate(root: Path, names: Sequence[str], sign: str) -> Path | None:
    """Find the first of some folders below `root` in which the pattern `sign` matches something.

    Args:
        root: Where to look; it must exist.
        names: Folders to try, below `root`; "." for itself.
        sign: A glob pattern that identifies the folder.

    Raises:
        FileNotFoundError: There is no folder `root`.
    """
    require_folder(root)
    for name in names:
        folder = root / name
        if folder.is_dir() and next(folder.glob(sign), None) is not None:
            return root if name == "." else folder
    return None


def nothing_found(name: str, root: Path, layout: str) -> FileNotFoundError:
    """Build the error for a data set that is not in its folder; it says what should be there."""
    return FileNotFoundError(
        f"{printable(root)} does not contain {name}: expected {layout}; `sohot data fetch {name}` says where to get it"
    )
