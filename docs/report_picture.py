"""Make docs/images/report.png, parts of a real report: `python docs/report_picture.py`.

The run is that of a person with two folders of images. The images are the digits of `sohot demo`, and so are the
network and its settings. Needs Chromium and playwright; takes a few minutes.
"""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import sync_playwright
from torch import Tensor

import sohot
from sohot.data.digits import font_digits, handwritten_digits

PICTURE = Path(__file__).with_name("images") / "report.png"
WIDTH = 1000
PARTS = ("header", "#samples")
NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
OPTIONS = {
    "backbone": "small-cnn",
    "image_size": 16,
    "optimizer": "adamw",
    "lr": 0.01,
    "head_factor": 1,
    "sigma2": 1e-3,
}


def write_images(folder: Path, images: Tensor, labels: Tensor) -> Path:
    """Write digits as a user has images: one folder per class."""
    for number, (image, label) in enumerate(zip((255 * images[:, 0]).byte().numpy(), labels.tolist(), strict=True)):
        file = folder / NAMES[label] / f"{number:04}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(file)
    return folder


def photograph(page: Path, picture: Path) -> None:
    """Save parts of a page, one below the other, as a picture of few colours."""
    with sync_playwright() as playwright, TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        tab = browser.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme="light")
        tab.goto(page.as_uri())
        tab.get_by_text("s in total").evaluate("one => one.remove()")  # it tells how busy this machine is
        shots = []
        for part in PARTS:
            box = tab.locator(part).first.bounding_box()
            file = Path(folder) / "part.png"
            tab.screenshot(path=file, full_page=True, clip={**box, "x": 0, "width": WIDTH})
            shots.append(Image.open(file).convert("RGB"))
        browser.close()
    whole = Image.new("RGB", (WIDTH, sum(shot.height for shot in shots)))
    for number, shot in enumerate(shots):
        whole.paste(shot, (0, sum(other.height for other in shots[:number])))
    whole.quantize(64).save(picture, optimize=True)


def main() -> None:
    """Train on digits, report, photograph."""
    with TemporaryDirectory() as folder:
        source = write_images(Path(folder) / "printed", *font_digits(n_per_class=100, seed=0))
        images, labels = handwritten_digits()
        target = write_images(Path(folder) / "handwritten", images[:870], labels[:870])
        run = sohot.fit(source, target, shots=3, steps=200, out=Path(folder) / "run", **OPTIONS)
        photograph(run.report(images=6), PICTURE)


if __name__ == "__main__":
    main()
