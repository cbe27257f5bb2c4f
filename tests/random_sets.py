"""Random data sets for property tests: small files, many of them copies, some of them views of one object."""

from pathlib import Path

from hypothesis import strategies as st

from sohot.data import DataSet, LabelledImages

SHARED = 2  # contents below this are in every class and domain
Rows = list[list[tuple[int, int]]]  # for each class: (content, group; 0 for none) of each file


def rows(
    least: int = 1, most: int = 9, contents: int = 40, groups: int = 0, lowest: int = 0
) -> st.SearchStrategy[Rows]:
    one = st.tuples(st.integers(lowest, contents), st.integers(0, groups))
    return st.lists(st.lists(one, min_size=least, max_size=most), min_size=2, max_size=3)


def write_domain(root: Path, domain: str, classes: Rows, names: int) -> LabelledImages:
    files, labels, groups = [], [], []
    for label in range(names):
        for number, (content, group) in enumerate(classes[label % len(classes)]):
            shared = content < SHARED
            file = root / domain / f"class{label}" / f"{number}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(f"{'' if shared else domain}{'' if shared else label} {content}".encode())
            files.append(file)
            labels.append(label)
            groups.append(f"{domain}{label}/{group}" if group else "")
    return LabelledImages(files, labels, [f"class{n}" for n in range(names)], root / domain, groups=groups)


def make_dataset(root: Path, source: Rows, target: Rows, classes: int = 3) -> DataSet:
    domains = {"s": write_domain(root, "s", source, classes), "t": write_domain(root, "t", target, classes)}
    return DataSet("random", root, domains, shifts=("s-t",))


def contents(images: LabelledImages) -> list[bytes]:
    return [file.read_bytes() for file in images.files]
