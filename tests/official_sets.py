"""Small data sets in the formats of the official releases."""

import bz2
import gzip
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from PIL import Image


def write_picture(file: Path, value: int = 0, size: tuple[int, int] = (12, 10)) -> Path:
    """A photograph whose bytes differ for each value."""
    file.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(value).integers(0, 255, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(pixels).save(file)
    return file


def write_depth(file: Path, depth: Sequence[Sequence[int]]) -> Path:
    """A 16-bit depth map."""
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.array(depth, dtype=np.uint16)).save(file)
    return file


def make_office31(root: Path, counts: Mapping[str, int], level: str = "images") -> Path:
    """`amazon/images/CLASS/frame_0001.jpg` and so on; three classes."""
    value = 0
    for domain, count in counts.items():
        for name in ("back_pack", "mug", "ruler"):
            for number in range(1, count + 1):
                value += 1
                write_picture(root / domain / level / name / f"frame_{number:04}.jpg", value)
    return root


DEPTH_NAMES = [
    *("ball", "calculator", "cereal_box", "coffee_mug", "flashlight"),
    *("keyboard", "lightbulb", "mushroom", "soda_can", "tomato"),
]
PHOTO_NAMES = [
    *("027.calculator", "035.cereal-box", "041.coffee-mug", "045.computer-keyboard", "074.flashlight"),
    *("131.lightbulb", "147.mushroom", "193.soccer-ball", "195.soda-can", "221.tomato"),
]


def make_rgbd_caltech(root: Path, views: int = 3, photos: int = 5) -> Path:
    """Two objects per class with `views` views each; classes that are not shared; files beside the depth crops."""
    value = 0
    for name in (*DEPTH_NAMES, "apple"):
        for instance in (1, 2):
            for frame in range(views):
                value += 1
                stem = root / "rgbd-dataset" / name / f"{name}_{instance}" / f"{name}_{instance}_1_{frame + 1}"
                write_depth(Path(f"{stem}_depthcrop.png"), [[0, 600 + value, 700], [800, 0, 900 + value]])
                write_picture(Path(f"{stem}_crop.png"), value)
                write_depth(Path(f"{stem}_maskcrop.png"), [[0, 1], [1, 0]])
                Path(f"{stem}_loc.txt").write_text("3,4")
    for name in (*PHOTO_NAMES, "001.ak47", "257.clutter"):
        for number in range(1, photos + 1):
            value += 1
            write_picture(root / "256_ObjectCategories" / name / f"{name[:3]}_{number:04}.jpg", value)
    return root


SKETCH_NAMES = [
    *("airplane", "bicycle", "bus", "car (sedan)", "cat", "chair", "cow", "dog", "horse", "motorbike"),
    *("potted plant", "sheep", "train", "tv"),
]
VOC_NAMES = [
    *("aeroplane", "bicycle", "bus", "car", "cat", "chair", "cow", "dog", "horse", "motorbike"),
    *("pottedplant", "sheep", "train", "tvmonitor"),
]


def voc_object(
    name: str, box: tuple[int, int, int, int] = (2, 3, 8, 9), *, difficult: int = 0, truncated: int = 0
) -> str:
    sides = "".join(f"<{s}>{v}</{s}>" for s, v in zip(("xmin", "ymin", "xmax", "ymax"), box, strict=True))
    return (
        f"<object><name>{name}</name><pose>Left</pose><truncated>{truncated}</truncated>"
        f"<difficult>{difficult}</difficult><bndbox>{sides}</bndbox>"
        f"<part><name>head</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>2</xmax><ymax>2</ymax></bndbox></part></object>"
    )


def write_voc(root: Path, number: int, *objects: str) -> None:
    folder = root / "VOCdevkit" / "VOC2007"
    write_picture(folder / "JPEGImages" / f"{number:06}.jpg", number, (20, 15))
    (folder / "Annotations").mkdir(parents=True, exist_ok=True)
    content = f"<annotation><filename>{number:06}.jpg</filename>{''.join(objects)}</annotation>"
    (folder / "Annotations" / f"{number:06}.xml").write_text(content)


def make_voc_sketches(root: Path, photos: int = 2, sketches: int = 4) -> Path:
    """`photos` photographs per class with one object each, and sketches."""
    number = 0
    for name in (*VOC_NAMES, "person"):
        for _ in range(photos):
            number += 1
            write_voc(root, number, voc_object(name))
    for place, name in enumerate((*SKETCH_NAMES, "angel")):
        for sketch in range(sketches):
            file = root / "png" / name / f"{place * 80 + sketch + 1}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            pixels = np.full((16, 16), 255, dtype=np.uint8)
            pixels[place, sketch] = 0
            Image.fromarray(pixels).save(file)
    (root / "png" / "filelist.txt").write_text("airplane/1.png\n")
    return root


def write_idx(file: Path, values: np.ndarray, packed: bool = True) -> Path:
    """An IDX file of unsigned bytes."""
    head = bytes([0, 0, 8, values.ndim]) + b"".join(size.to_bytes(4, "big") for size in values.shape)
    content = head + values.astype(np.uint8).tobytes()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress(content) if packed else content)
    return file


def write_usps(file: Path, digits: Sequence[int], images: np.ndarray) -> Path:
    """LIBSVM's text: labels from 1, values from −1 to 1."""
    rows = [
        f"{digit + 1} " + " ".join(f"{place}:{value:.3f}" for place, value in enumerate(image, start=1)) + " "
        for digit, image in zip(digits, images, strict=True)
    ]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(bz2.compress(("\n".join(rows) + "\n").encode()))
    return file


def make_digits(root: Path, per_digit: int = 4) -> Path:
    random = np.random.default_rng(0)
    digits = np.arange(10 * per_digit) % 10
    for half in ("train", "t10k"):
        write_idx(root / f"{half}-images-idx3-ubyte.gz", random.integers(0, 255, (len(digits), 28, 28)))
        write_idx(root / f"{half}-labels-idx1-ubyte.gz", digits)
    for name in ("usps.bz2", "usps.t.bz2"):
        write_usps(root / name, digits.tolist(), random.uniform(-1, 1, (len(digits), 256)))
    return root
