import errno
import os
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from sohot.data import ClassMismatchError, FolderScan, LabelledImages, common_classes, scan_folder, scan_images
from sohot.data.labelled import UNLABELLED

MakeFolder = Callable[..., Path]


def names(scan: FolderScan) -> list[str]:
    return [scan.images.name(row) for row in range(len(scan.images))]


def reasons(scan: FolderScan) -> dict[str, str]:
    return {item.path.name: item.reason for item in scan.left_out}


def labelled(**counts: int) -> LabelledImages:
    rows = [(name, number) for name, count in counts.items() for number in range(count)]
    classes = tuple(counts)
    files = tuple(Path(f"{name}/{number}.jpg") for name, number in rows)
    return LabelledImages(files, tuple(classes.index(name) for name, _ in rows), classes)


@pytest.mark.parametrize("check", [True, False])
def test_classes_and_files_come_in_natural_order(make_folder: MakeFolder, check: bool) -> None:
    root = make_folder({"mug10": ["b.jpg"], "mug2": ["10.png", "9.png", "1.JPG"], "Bike": ["x.jpeg"]})
    scan = scan_folder(root, check=check)
    assert scan.images.classes == ("Bike", "mug2", "mug10")
    assert names(scan) == ["Bike/x.jpeg", "mug2/1.JPG", "mug2/9.png", "mug2/10.png", "mug10/b.jpg"]
    assert scan.images.labels == (0, 1, 1, 1, 2)
    assert scan.left_out == []


def test_folders_inside_a_class_belong_to_it(make_folder: MakeFolder) -> None:
    root = make_folder({"mug": ["1.jpg", "red/2.jpg", "red/old/3.jpg"], "pen": ["1.jpg"]})
    assert names(scan_folder(root)) == ["mug/1.jpg", "mug/red/2.jpg", "mug/red/old/3.jpg", "pen/1.jpg"]


def test_a_level_images_in_between_changes_nothing(make_folder: MakeFolder) -> None:
    root = make_folder({"images/mug": ["1.jpg"], "images/pen": ["1.jpg"]})
    scan = scan_folder(root)
    assert scan.images.classes == ("mug", "pen")
    assert scan.images == scan_folder(root / "images").images


def test_a_class_may_be_called_images(make_folder: MakeFolder) -> None:
    assert scan_folder(make_folder({"images": ["1.jpg"]})).images.classes == ("images",)
    root = make_folder({"images": ["1.jpg", "a/2.jpg"], "pen": ["1.jpg"]}, name="two")
    assert scan_folder(root).images.counts() == [2, 1]


def test_hidden_files_and_others_are_passed_over_quietly(make_folder: MakeFolder) -> None:
    root = make_folder({"mug": ["1.jpg", ".hidden.jpg", "._1.jpg"], ".git": ["x.jpg"], "__MACOSX": ["y.jpg"]})
    (root / "mug" / "notes.txt").write_text("notes")
    (root / "mug" / "Thumbs.db").write_bytes(b"")
    (root / "README.md").write_text("text")
    scan = scan_folder(root)
    assert names(scan) == ["mug/1.jpg"]
    assert scan.left_out == []


def test_images_that_cannot_be_read_are_listed_and_skipped(make_folder: MakeFolder) -> None:
    root = make_folder({"mug": [f"{n}.jpg" for n in range(5)], "pen": ["1.png"]})
    (root / "mug" / "1.jpg").write_bytes(b"")
    (root / "mug" / "2.jpg").write_bytes((root / "mug" / "2.jpg").read_bytes()[:-40])
    (root / "mug" / "3.jpg").write_text("<html>")
    (root / "mug" / "4.heic").write_bytes(b"\0\0\0\x18ftypheic")
    scan = scan_folder(root)
    assert names(scan) == ["mug/0.jpg", "mug/4.jpg", "pen/1.png"]
    assert list(reasons(scan)) == ["1.jpg", "2.jpg", "3.jpg", "4.heic"]
    assert reasons(scan)["1.jpg"] == "the file is empty"
    assert "cut short" in reasons(scan)["2.jpg"]
    assert str(scan.left_out[0]) == f"{root}/mug/1.jpg: the file is empty"
    assert len(scan_folder(root, check=False).images) == 7


def test_a_class_whose_images_are_all_unreadable_is_an_error(make_folder: MakeFolder) -> None:
    root = make_folder({"mug": ["1.jpg"], "pen": ["1.jpg", "2.jpg"]})
    for file in (root / "pen").iterdir():
        file.write_bytes(b"")
    with pytest.raises(
        ValueError, match=r"none of the 2 images of class 'pen' in .* first, pen/1.jpg: the file is empty"
    ):
        scan_folder(root)


def test_a_class_folder_that_cannot_be_opened_is_an_error(
    make_folder: MakeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_folder({"mug": ["1.jpg"], "pen": ["1.jpg", "deep/2.jpg"]})
    closed = [root / "pen" / "deep"]
    real = os.scandir

    def scandir(folder: Path) -> object:
        if folder in closed:
            raise PermissionError(errno.EACCES, "Permission denied", str(folder))
        return real(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    assert reasons(scan_folder(root)) == {"deep": "it cannot be opened: Permission denied"}
    closed.append(root / "pen")
    with pytest.raises(ValueError, match=r"the class folder .*pen: it cannot be opened: Permission denied"):
        scan_folder(root)


def test_links_never_lead_in_circles_or_into_other_classes(make_folder: MakeFolder) -> None:
    root = make_folder({"mug": ["1.jpg", "red/2.jpg"], "pen": ["1.jpg"]})
    (root / "mug" / "up").symlink_to(root)
    (root / "mug" / "further").symlink_to(root.parent)
    (root / "mug" / "red" / "self").symlink_to(root / "mug" / "red")
    (root / "mug" / "other").symlink_to(root / "pen")
    (root / "loop").symlink_to(root)
    (root / "pencil").symlink_to(root / "pen")
    (root / "knot").symlink_to(root / "knot")
    scan = scan_folder(root)
    assert names(scan) == ["mug/1.jpg", "mug/red/2.jpg", "pen/1.jpg"]
    assert set(reasons(scan)) == {"up", "further", "self", "other", "loop", "pencil", "knot"}
    assert reasons(scan)["other"] == f"it links back to {root / 'pen'}"


def test_a_folder_keeps_its_own_class_however_it_is_linked(make_folder: MakeFolder) -> None:
    root = make_folder({"mug": ["1.jpg"], "pen": ["1.jpg", "deep/2.jpg"]})
    (root / "mug" / "link").symlink_to(root / "pen" / "deep")
    (root / "alias").symlink_to(root / "pen" / "deep")
    scan = scan_folder(root)
    assert names(scan) == ["mug/1.jpg", "pen/1.jpg", "pen/deep/2.jpg"]
    assert set(reasons(scan)) == {"link", "alias"}


def test_links_to_folders_and_files_elsewhere_are_followed(make_folder: MakeFolder) -> None:
    elsewhere = make_folder({"mugs": ["1.jpg"], "single": ["2.jpg"]}, name="elsewhere")
    root = make_folder({"pen": ["1.jpg"]})
    (root / "mug").symlink_to(elsewhere / "mugs")
    (root / "pen" / "2.jpg").symlink_to(elsewhere / "single" / "2.jpg")
    (root / "pen" / "3.jpg").symlink_to(elsewhere / "nowhere.jpg")
    scan = scan_folder(root)
    assert names(scan) == ["mug/1.jpg", "pen/1.jpg", "pen/2.jpg"]
    assert reasons(scan) == {"3.jpg": "the link is broken"}


def test_empty_class_folders_and_stray_images_are_noted(make_folder: MakeFolder) -> None:
    root = make_folder({"mug": ["1.jpg"], "empty": []})
    Image.new("RGB", (4, 4)).save(root / "stray.png")
    scan = scan_folder(root)
    assert scan.images.classes == ("mug",)
    assert reasons(scan) == {
        "stray.png": "it is next to the class folders, not inside one",
        "empty": "this class folder contains no images",
    }


def test_two_spellings_of_an_accent_are_one_class(make_folder: MakeFolder) -> None:
    composed, separate = unicodedata.normalize("NFC", "café"), unicodedata.normalize("NFD", "café")
    root = make_folder({composed: ["1.jpg"], "🖊 pen\n": ["1.jpg"]})
    other = make_folder({separate: ["1.jpg"], "🖊 pen\n": ["1.jpg"]}, name="other")
    assert scan_folder(root).images.classes == scan_folder(other).images.classes
    assert composed in scan_folder(other).images.classes


def test_class_names_that_are_not_text_can_be_printed(make_folder: MakeFolder) -> None:
    root = make_folder({"mug": ["1.jpg"]})
    folder = root / os.fsdecode(b"caf\xe9")
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system takes only names in Unicode")
    Image.new("RGB", (4, 4)).save(folder / "1.png")
    assert scan_folder(root).images.classes == ("caf\\xe9", "mug")


def test_progress_counts_every_image(make_folder: MakeFolder) -> None:
    seen: list[tuple[int, int]] = []
    scan_folder(make_folder({"mug": ["1.jpg", "2.jpg", "3.jpg"]}), on_progress=lambda *x: seen.append(x), workers=2)
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_missing_and_empty_folders(make_folder: MakeFolder, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"the folder .*/nowhere does not exist$"):
        scan_folder(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"the folder .*/empty is empty: it needs one folder of images per class"):
        scan_folder(tmp_path / "empty")
    with pytest.raises(ValueError, match=r"no class folder in .* contains an image"):
        scan_folder(make_folder({"mug": [], "pen": []}))
    with pytest.raises(ValueError, match="flat has no class folders: put the images of each class in a folder"):
        scan_folder(make_folder({"": ["1.jpg"]}, name="flat"))
    with pytest.raises(NotADirectoryError, match=r"1\.jpg is not a folder"):
        scan_folder(tmp_path / "flat" / "1.jpg")


def test_shared_classes_get_the_same_numbers() -> None:
    source, target = common_classes(labelled(pen=2, mug=1), labelled(mug=1, pen=3))
    assert source.classes == target.classes == ("mug", "pen")
    assert source.labels == (1, 1, 0)
    assert target.counts() == [1, 3]


def test_classes_in_one_domain_only_are_named_or_left_out() -> None:
    source, target = labelled(mug=1, pen=1, bike=2), labelled(pen=2, sofa=1, mug=0)
    with pytest.raises(ClassMismatchError, match="in the source 'bike', 'mug'; in the target 'sofa'") as caught:
        common_classes(source, target)
    assert (caught.value.source_only, caught.value.target_only) == (["bike", "mug"], ["sofa"])
    source, target = common_classes(source, target, leave_out=True)
    assert (source.classes, source.counts(), target.counts()) == (("pen",), [1], [2])


def test_no_shared_class_is_an_error_in_any_case() -> None:
    with pytest.raises(ValueError, match="the domains share no class: in the source 'mug'; in the target 'pen'"):
        common_classes(labelled(mug=1), labelled(pen=1), leave_out=True)


# Without labels


def test_every_image_below_a_folder_is_found_once_and_has_no_label(make_folder: MakeFolder) -> None:
    root = make_folder({"": ["10.png", "9.png"], "mug": ["1.jpg"], "mug/deep": ["2.png"], "pen": ["1.jpg"]})
    scan = scan_images(root, labelled=False)
    found = scan.images
    assert names(scan) == ["9.png", "10.png", "mug/1.jpg", "mug/deep/2.png", "pen/1.jpg"]
    assert (found.classes, set(found.labels)) == ((UNLABELLED,), {0})
    assert scan_images(root, labelled=False, check=False).images == found


def test_damaged_images_are_named_and_other_files_ignored(make_folder: MakeFolder) -> None:
    root = make_folder({"any": ["1.png", "2.png"]})
    (root / "any" / "2.png").write_bytes(b"no picture")
    for other in ("notes.txt", ".hidden.png", "__MACOSX"):
        (root / other).write_bytes(b"")
    scan = scan_images(root, labelled=False)
    assert names(scan) == ["any/1.png"]
    assert list(reasons(scan)) == ["2.png"]


def test_links_lead_neither_up_nor_back_but_elsewhere(make_folder: MakeFolder) -> None:
    root, beside = make_folder({"a": ["1.png"]}), make_folder({"": ["2.png"]}, "beside")
    for name, place in (("up", root.parent), ("back", root), ("elsewhere", beside)):
        os.symlink(place, root / "a" / name)
    scan = scan_images(root, labelled=False)
    assert names(scan) == ["a/1.png", "a/elsewhere/2.png"]
    assert set(reasons(scan)) == {"up", "back"}


def test_a_folder_without_a_readable_image_is_refused(make_folder: MakeFolder, tmp_path: Path) -> None:
    root = make_folder({"": []})
    with pytest.raises(ValueError, match="root holds no images"):
        scan_images(root, labelled=False)
    (root / "1.png").write_bytes(b"no picture")
    with pytest.raises(ValueError, match=r"none of the 1 images in .*root can be read; the first: "):
        scan_images(root, labelled=False)
    with pytest.raises(FileNotFoundError, match="gone does not exist"):
        scan_images(tmp_path / "gone", labelled=False)
