"""Real folders; skipped where the data set is not there."""

import pytest
from real_data import OFFICE31, needs_office31

from sohot.data import InputSpec, common_classes, iter_batches, scan_folder, short_classes, take_shots

pytestmark = needs_office31


@pytest.mark.parametrize(("domain", "count"), [("amazon", 2817), ("dslr", 498), ("webcam", 795)])
def test_counts(domain: str, count: int) -> None:
    scan = scan_folder(OFFICE31 / domain, check=domain == "dslr")
    assert (len(scan.images), len(scan.images.classes), scan.left_out) == (count, 31, [])


def test_the_smallest_class_is_said() -> None:
    images = scan_folder(OFFICE31 / "dslr", check=False).images
    assert short_classes(images, 8) == {"ruler": 7}
    train, rest = take_shots(images, 8, seed=0, short="take")
    assert (len(train), len(rest)) == (247, 251)


def test_domains_share_their_classes_and_load() -> None:
    scans = [scan_folder(OFFICE31 / domain, check=False).images for domain in ("webcam", "dslr")]
    source, target = common_classes(*scans)
    assert source.classes == target.classes
    train, test = take_shots(source, 3, seed=0)
    assert (len(train), len(test)) == (93, 702)
    spec = InputSpec(size=32, mean=(0.5,) * 3, std=(0.5,) * 3, resize=36)
    assert sum(len(batch) for batch in iter_batches(train, spec, 50, 2)) == 93
