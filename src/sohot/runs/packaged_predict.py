"""Label images with the model in this folder. It needs numpy, Pillow and onnxruntime (`requirements.txt`).

On the command line:

    python predict.py photos new.jpg --out labels.csv --top 3

In Python:

    from predict import Model

    for answer in Model().predict(["new.jpg"]):
        print(answer.file, answer.labels, answer.probabilities, answer.error)

The model is an ONNX file and the rest is JSON: nothing that is loaded runs code.
"""
# Part of sohot. SPDX-License-Identifier: Apache-2.0

import argparse
import csv
import hashlib
import io
import json
import os
import re
import stat
import sys
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

# Listed one by one, because Pillow also opens formats that start other programs or are not pictures.
FORMATS = ("JPEG", "PNG", "BMP", "DIB", "GIF", "TIFF", "WEBP", "AVIF", "PPM", "TGA", "JPEG2000")
# What is looked for in folders. Pillow cannot read the last two, but they must not be passed over in silence.
SUFFIXES = frozenset({".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".apng", ".bmp", ".dib", ".gif", ".tif", ".tiff"})
SUFFIXES |= {".webp", ".avif", ".ppm", ".pgm", ".pbm", ".pnm", ".tga", ".jp2", ".j2k", ".heic", ".heif"}
# Control characters, and marks that reorder or split a line.
UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")

Name = str | os.PathLike[str]


@dataclass(frozen=True)
class Answer:
    """What the model says about one image: its likeliest labels, most likely first; or why it cannot be read."""

    file: Path
    labels: tuple[str, ...] = ()
    probabilities: tuple[float, ...] = ()
    error: str | None = None


class Model:
    """The model of a package.

    Args:
        folder: The package; by default the folder that this file is in.
        threads: Threads that read images and compute; None for one per core.

    Attributes:
        labels: The labels, in the order of the probabilities.
        preprocessing: Size, crop and normalisation of images, see `prepare`.
    """

    def __init__(self, folder: Name | None = None, threads: int | None = None) -> None:
        import onnxruntime  # type: ignore[import-untyped]  # here: --help does without

        self.folder = Path(__file__).parent if folder is None else Path(folder)
        listed = json.loads((self.folder / "package.json").read_bytes()).get("files", {})
        self.labels: tuple[str, ...] = tuple(json.loads(self._content("labels.json", listed)))
        self.preprocessing: dict[str, Any] = json.loads(self._content("preprocessing.json", listed))
        self._threads = threads or _cores()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        content = self._content("model.onnx", listed)
        self._session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])

    def _content(self, name: str, listed: dict[str, Any]) -> bytes:
        content = (self.folder / name).read_bytes()
        if hashlib.sha256(content).hexdigest() != listed.get(name, {}).get("sha256"):
            raise ValueError(f"{self.folder / name} is not the file that package.json lists: copy the package again")
        return content

    def predict(self, files: Sequence[Name], top: int = 1, batch: int = 32) -> Iterator[Answer]:
        """Label image files, a batch at a time; yields one answer for each, in order.

        Args:
            files: The files; `find_images` lists those in folders.
            top: How many of the likeliest labels to give.
            batch: How many images are in memory together.
        """
        if not 1 <= top <= len(self.labels):
            raise ValueError(f"top must lie in 1 … {len(self.labels)}, the number of labels, got {top}")
        return self._answers([Path(file) for file in files], top, batch)

    def _answers(self, files: list[Path], top: int, batch: int) -> Iterator[Answer]:
        with ThreadPoolExecutor(self._threads) as pool:
            for first in range(0, len(files), batch):
                chunk = files[first : first + batch]
                contents = list(pool.map(self._try, chunk))
                images = [content for content in contents if isinstance(content, np.ndarray)]
                rows = iter(self.probabilities(np.stack(images)) if images else ())
                for file, content in zip(chunk, contents, strict=True):
                    failed = isinstance(content, str)
                    yield Answer(file, error=content) if failed else self._answer(file, next(rows), top)

    def _answer(self, file: Path, probabilities: Any, top: int) -> Answer:
        best = np.argsort(-probabilities, kind="stable")[:top].tolist()
        return Answer(file, tuple(self.labels[place] for place in best), tuple(probabilities[best].tolist()))

    def probabilities(self, images: Any) -> Any:
        """Return the probability of each label for prepared images, float32 of shape (batch, channels, size, size)."""
        (logits,) = self._session.run(["logits"], {"images": images})  # divided by the temperature already
        shares = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
        return shares / shares.sum(axis=1, keepdims=True)

    def _try(self, file: Path) -> Any:
        """Return a prepared image, or why it cannot be read."""
        try:
            return self.read(file)
        except Exception as error:  # decoders raise errors of every kind on broken bytes
            return _reason(file, error)

    def read(self, file: Name) -> Any:
        """Read an image file and prepare it, see `prepare`. Of an animation, the first frame is used."""
        if not stat.S_ISREG(os.stat(file).st_mode):
            raise ValueError("it is a pipe, a device or a folder, not a regular file")
        Image.init()
        with Image.open(file, formats=[name for name in FORMATS if name in Image.OPEN]) as image:
            if Image.MAX_IMAGE_PIXELS is not None and image.width * image.height > Image.MAX_IMAGE_PIXELS:
                raise Image.DecompressionBombError
            side = 2 * self.preprocessing["resize"]
            image.draft(None, (side, side))  # a JPEG is decoded smaller, which is faster, but never below this
            image.load()
            with suppress(Exception):  # damaged EXIF data must not cost the picture
                ImageOps.exif_transpose(image, in_place=True)
            return self.prepare(image)

    def prepare(self, image: Image.Image) -> Any:
        """Turn an upright image into the model's input, float32 of shape (channels, size, size).

        The shorter side becomes `resize`, the centre of `size` is cut out, a level becomes (level / 255 − mean) / std.
        """
        use = self.preprocessing
        image = _eight_bits(image, use["channels"])
        image = _centre(image, use["size"], use["resize"], Image.Resampling[use["interpolation"].upper()])
        pixels = np.asarray(image).reshape(use["size"], use["size"], use["channels"])
        mean, std = (np.asarray(use[name], np.float32).reshape(-1, 1, 1) for name in ("mean", "std"))
        return (pixels.transpose(2, 0, 1).astype(np.float32) / np.float32(255) - mean) / std


def _cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _centre(image: Image.Image, size: int, resize: int, resampling: Image.Resampling) -> Image.Image:
    """Resize the shorter side of an image and cut out the centre, both in one step."""
    short = min(image.size)
    wide, high = (resize if side == short else int(resize * side / short) for side in image.size)
    left, top = round((wide - size) * 0.5), round((high - size) * 0.5)
    across, down = image.width / wide, image.height / high
    right, bottom = min((left + size) * across, image.width), min((top + size) * down, image.height)
    box = left * across, top * down, right, bottom
    if right - box[0] == bottom - box[1] == size and box[0] == int(box[0]) and box[1] == int(box[1]):
        return image.crop((int(box[0]), int(box[1]), int(right), int(bottom)))  # nothing to resize
    return image.resize((size, size), resampling, box=box)


def _eight_bits(image: Image.Image, channels: int) -> Image.Image:
    """Convert an image of any mode to 8-bit colour or grey: 16 bits scaled by their range, transparent pixels white."""
    if image.mode in ("I", "I;16", "I;16B", "I;16L", "I;16N", "F"):
        values, white = np.asarray(image), 1 if image.mode == "F" else 65535
        if not (values.min() >= 0 and values.max() <= white):
            raise ValueError(
                "which of its values are black and white is unknown: save it with 8 or 16 bits per channel"
            )
        transparent = image.info.get("transparency")
        if isinstance(transparent, int):
            values = np.where(values == transparent, white, values)
        image = Image.fromarray((values.astype(np.float64) * (255 / white)).round().astype(np.uint8))
    elif image.has_transparency_data:
        rgba = (image.convert("LA") if image.mode == "La" else image).convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", rgba.size, "white"), rgba)
    mode = "L" if channels == 1 else "RGB"
    return image if image.mode == mode else image.convert(mode)


def _reason(file: Path, error: Exception) -> str:
    if isinstance(error, OSError) and error.errno is not None:
        return str(error.strerror)
    if isinstance(error, UnidentifiedImageError):
        return "it is not an image in a supported format" if file.stat().st_size else "the file is empty"
    if isinstance(error, (Image.DecompressionBombError, Image.DecompressionBombWarning)):
        return "it has more pixels than are safe to decode"
    return " ".join(str(error).split()) or type(error).__name__


def find_images(paths: Sequence[Name]) -> list[Path]:
    """List image files: those given, whatever their names, and those in folders, except hidden ones."""
    found: dict[Path, None] = {}
    for path in map(Path, paths):
        if not path.exists():
            raise FileNotFoundError(f"{path}: there is no such file or folder")
        inside = list(_below(path)) if path.is_dir() else [path]
        if not inside:
            raise ValueError(f"{path} holds no images")
        found.update(dict.fromkeys(inside))
    return list(found)


def _refuse(error: OSError) -> None:
    raise error


def _below(folder: Path) -> Iterator[Path]:
    for inner, folders, files in os.walk(folder, onerror=_refuse):  # links to folders are not followed
        folders[:] = sorted((name for name in folders if not name.startswith(".")), key=_by_number)
        for name in sorted(files, key=_by_number):
            if Path(name).suffix.lower() in SUFFIXES and not name.startswith("."):
                yield Path(inner, name)


def _by_number(name: str) -> tuple[list[str | int], str]:
    """Sort `b10` after `B2`."""
    parts = re.split("([0-9]+)", name.casefold())
    return [int(part) if place % 2 else part for place, part in enumerate(parts)], name


def printable(name: Name) -> str:
    """Write bytes of a name that are not UTF-8 as escapes, and an accented letter as one character."""
    raw = os.fspath(name).encode("utf-8", "surrogateescape" if os.name == "posix" else "surrogatepass")
    return unicodedata.normalize("NFC", raw.decode("utf-8", "backslashreplace"))


def visible(text: str, before: str = "") -> str:
    """Write control characters as escapes; put something before what a spreadsheet would take for a formula."""
    text = before + text if text.startswith(("=", "+", "-", "@")) else text
    return UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def csv_cells(answer: Answer) -> list[str]:
    """Return the cells of an answer: path, label, probability, the next label, …, each without a line break."""
    pairs = zip(answer.labels, answer.probabilities, strict=True)
    cells = [cell for label, probability in pairs for cell in (visible(label, "'"), f"{probability:.6f}")]
    return [visible(printable(answer.file), "./"), *cells]


def json_line(answer: Answer) -> str:
    """Return an answer as one line of JSON, in ASCII."""
    pairs = zip(answer.labels, answer.probabilities, strict=True)
    top = [{"label": label, "probability": probability} for label, probability in pairs]
    return json.dumps({"path": printable(answer.file), **top[0], "top": top}) + "\n"


def write_answers(answers: Iterator[Answer], stream: TextIO, form: str, top: int) -> tuple[int, int]:
    """Write answers as they come, and name images that cannot be read on standard error; return how many of both."""
    table = csv.writer(stream, lineterminator="\n")
    if form == "csv":
        more = [name for rank in range(2, top + 1) for name in (f"label_{rank}", f"probability_{rank}")]
        table.writerow(["path", "label", "probability", *more])
    labelled = skipped = 0
    for answer in answers:
        if answer.error is not None:
            skipped += 1
            print(f"skipped {visible(f'{printable(answer.file)}: {answer.error}')}", file=sys.stderr)
        else:
            labelled += 1
            table.writerow(csv_cells(answer)) if form == "csv" else stream.write(json_line(answer))
    return labelled, skipped


@contextmanager
def _writing(out: Path | None) -> Iterator[TextIO]:
    """Yield standard output, or a stream whose content becomes a file once it is complete."""
    if out is None or out == Path("-"):
        yield sys.stdout
        sys.stdout.flush()
        return
    hidden = out.with_name(f".{out.name[:40]}.{os.getpid()}.tmp")
    try:
        with open(hidden, "x", encoding="utf-8", newline="") as stream:
            yield stream
        os.replace(hidden, out)
    finally:
        hidden.unlink(missing_ok=True)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="predict.py",
        description="Label images: file, label and probability of each. Unreadable images are named and skipped.",
        epilog="Exit codes: 0 all images have a label; 1 some were skipped, or the output could not be written; "
        "2 the call is wrong, the package is damaged, or no image can be read.",
    )
    parser.add_argument("paths", nargs="+", metavar="FILE_OR_DIR", help="image files, and folders of them")
    parser.add_argument("--out", type=Path, help="file to write (default: standard output)")
    parser.add_argument("--format", choices=("csv", "jsonl"), default="csv", help="CSV (default) or JSON lines")
    for name, default, about in (("top", 1, "labels per image"), ("batch", 32, "images at a time")):
        parser.add_argument(f"--{name}", type=_count, default=default, metavar="N", help=f"{about} (default {default})")
    parser.add_argument("--threads", type=_count, metavar="N", help="threads (default: one per core)")
    return parser.parse_args(arguments)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, got {text!r}")
    return int(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    options = _options(arguments)
    warnings.simplefilter("ignore")  # of Pillow, about odd images
    try:
        files = find_images(options.paths)
        answers = Model(threads=options.threads).predict(files, options.top, options.batch)
        with _writing(options.out) as stream:
            labelled, skipped = write_answers(answers, stream, options.format, options.top)
            if not labelled:
                raise ValueError(f"none of the {len(files)} files can be read")
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # whoever read the answers has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (OSError, ValueError, ModuleNotFoundError) as error:
        why = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)
        if isinstance(error, ModuleNotFoundError):
            why = f"{error.name} is missing: pip install -r requirements.txt"
        print(f"predict.py: {visible(why)}", file=sys.stderr)
        return 1 if isinstance(error, OSError) and not isinstance(error, FileNotFoundError) else 2
    print(f"{labelled} images labelled, {skipped} could not be read", file=sys.stderr)
    return 1 if skipped else 0


if __name__ == "__main__":
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="")
    sys.exit(main())
