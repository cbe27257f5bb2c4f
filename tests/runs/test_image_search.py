"""Images of a run in lists: found as in folders, and told apart as those of folders are."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import Domains, make_domains

from sohot.data import scan_folder
from sohot.runs import RunConfig, RunData, gather
from sohot.runs.run_data import digest_names
from sohot.runs.split_file import write_run_split


@pytest.fixture
def domains(tmp_path: Path) -> Domains:
    return make_domains(tmp_path)


def write_list(folder: Path, rows: Sequence[tuple[str, str]], name: str = "list.csv") -> Path:
    (folder / name).write_text("".join(f"{path},{label}\n" for path, label in [("path", "label"), *rows]))
    return folder / name


def rows_of(folder: Path) -> list[tuple[str, str]]:
    images = scan_folder(folder, check=False).images
    return [(images.name(row), images.classes[images.labels[row]]) for row in range(len(images))]


def listed(folder: Path) -> Path:
    return write_list(folder, rows_of(folder)[::-1])


def digests(data: RunData) -> list[str | None]:
    return [None if images is None else digest_names(images) for images in data.sides().values()]


def test_a_run_finds_in_lists_what_it_finds_in_folders(domains: Domains) -> None:
    folders = RunConfig(source=domains.source, target=domains.target, shots=2, unlabelled=domains.test)
    lists = replace(folders, source=listed(domains.source), target=listed(domains.target))
    lists = replace(lists, unlabelled=listed(domains.test))
    replace(lists, out=domains.source.parent / "run").require_places()
    expected, found = gather(folders), gather(lists)
    assert digests(found) == digests(expected)
    assert [images and images.files for images in found.sides().values()] == [
        images and images.files for images in expected.sides().values()
    ]
    assert (found.protocol, found.notes) == (expected.protocol, expected.notes)
    assert found.as_json()["source"]["folder"] == str(lists.source)
    assert found.as_json()["pool"]["folder"] == str(lists.unlabelled)


def test_lists_and_folders_are_pooled(domains: Domains) -> None:
    both = RunConfig(source=(listed(domains.source), domains.test), target=domains.target, method="s+t")
    pooled = gather(both).source
    assert pooled is not None
    assert (len(pooled), pooled.origin) == (18 + 12, f"{listed(domains.source)}, {domains.test}")
    assert pooled.files == getattr(gather(replace(both, source=(domains.source, domains.test))).source, "files", None)
    with pytest.raises(ValueError, match=r"--source: .*0\.png is both in .*list\.csv and in .*source$"):
        gather(replace(both, source=(listed(domains.source), domains.source)))
    with pytest.raises(ValueError, match=r"--source .*list\.csv was given twice"):
        gather(replace(both, source=(listed(domains.source), listed(domains.source))))


def test_one_list_may_hold_target_images_with_and_without_labels(domains: Domains) -> None:
    rows = rows_of(domains.target)
    file = write_list(domains.target, [(path, label if "/0" in path or "/1" in path else "") for path, label in rows])
    config = RunConfig(source=domains.source, target=file)
    with pytest.raises(
        ValueError, match=r"9 of 15 rows have no label, .* without labels: add --unlabelled .*list\.csv$"
    ):
        gather(config)
    data = gather(replace(config, unlabelled=file))
    assert data.target is not None
    assert data.pool is not None
    assert (len(data.target), len(data.pool)) == (6, 9)
    assert not set(data.target.files) & set(data.pool.files)
    source = write_list(domains.source, [("red/0.png", ""), ("blue/0.png", "blue")])
    with pytest.raises(ValueError, match=r"1 of 2 rows have no label, the first in line 2; fill them in, or remove"):
        gather(replace(config, source=source, target=domains.target))


def test_a_split_of_lists_is_found_again(domains: Domains, tmp_path: Path) -> None:
    """By itself, and below the folders that lists of other images name."""
    rows = [(str(domains.target / path), label) for path, label in rows_of(domains.target)]
    target = write_list(tmp_path, rows, "elsewhere.csv")
    config = RunConfig(source=listed(domains.source), target=target, shots=2)
    data = gather(config)
    write_run_split(tmp_path, data.classes, data.sides())
    again = RunConfig(split=tmp_path / "split.json")
    for one in (again, replace(again, source=config.source, target=target)):
        assert digests(gather(one)) == digests(data)


@pytest.mark.parametrize("option", ["source", "target", "unlabelled", "target_test"])
def test_a_missing_list_is_named_with_its_option(domains: Domains, option: str) -> None:
    config = RunConfig(source=domains.source, target=domains.target, out=domains.source / "run")
    name = "--" + option.replace("_", "-")
    with pytest.raises(FileNotFoundError, match=rf"{name} gone\.csv: there is no such file$"):
        replace(config, **{option: Path("gone.csv")}).require_places()
    with pytest.raises(
        FileNotFoundError, match=rf"{name} .*: it is not a folder or a list of images \(\.csv, \.jsonl, "
    ):
        replace(config, **{option: Path(__file__)}).require_places()
