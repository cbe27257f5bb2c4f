"""Two domains of digits without a download: printed ones from fonts, and handwritten ones.

The fonts come with matplotlib, the handwriting with scikit-learn. Both are white on black, of the same size.
"""

import hashlib
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image, ImageDraw, ImageFilter, ImageFont
from torch import Tensor

SIDE = 16
"""Side of the images: twice that of the handwritten ones, which keeps printed digits legible."""
CANVAS = 64
"""Digits are drawn, bent and thickened at this size, and then shrunk: smooth edges for free."""

# Matplotlib's other fonts hold symbols only.
_REGULAR = ["DejaVuSans", "DejaVuSans-Oblique", "DejaVuSansMono", "DejaVuSansMono-Oblique", "DejaVuSerif"]
_REGULAR += ["DejaVuSerif-Italic", "STIXGeneral", "STIXGeneralItalic", "cmmi10", "cmr10", "cmss10", "cmtt10"]
_BOLD = ["DejaVuSans-Bold", "DejaVuSans-BoldOblique", "DejaVuSansMono-Bold", "DejaVuSansMono-BoldOblique"]
_BOLD += ["DejaVuSerif-Bold", "DejaVuSerif-BoldItalic", "STIXGeneralBol", "STIXGeneralBolIta", "cmb10"]


def font_digits(n_per_class: int, seed: int) -> tuple[Tensor, Tensor]:
    """Draw printed digits from many fonts, bent, thickened and with noise.

    Args:
        n_per_class: Number of images of each digit.
        seed: Any integer; the same one gives the same images.

    Returns:
        Images (10 n, 1, 16, 16), float32 in 0 … 1, and their digits (10 n,); the digits 0 … 9 follow one another.

    Example:
        >>> images, labels = font_digits(n_per_class=2, seed=0)
        >>> images.shape, labels[:12].tolist()
        (torch.Size([20, 1, 16, 16]), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1])
    """
    if isinstance(n_per_class, bool) or not isinstance(n_per_class, int) or n_per_class < 1:
        raise ValueError(f"n_per_class must be an integer of at least 1, got {n_per_class!r}")
    count = 10 * n_per_class
    labels = np.arange(count) % 10
    key = hashlib.sha256(f"font digits {seed}".encode()).digest()[:16]
    random = np.random.Generator(np.random.Philox(key=int.from_bytes(key, "little")))
    draws = random.random((count, 10))
    drawn = [_draw(int(digit), draw) for digit, draw in zip(labels, draws, strict=True)]
    images = np.stack(drawn).astype(np.float32) / 255
    contrast, noise = 0.7 + 0.3 * draws[:, 8], 0.1 * draws[:, 9]
    images = images * contrast[:, None, None] + random.standard_normal(images.shape) * noise[:, None, None]
    return torch.from_numpy(images.clip(0, 1).astype(np.float32)).unsqueeze(1), torch.from_numpy(
        labels.astype(np.int64)
    )


def handwritten_digits() -> tuple[Tensor, Tensor]:
    """Return scikit-learn's 1797 handwritten digits (8 × 8, from the UCI repository) at the size of the printed ones.

    Returns:
        Images (1797, 1, 16, 16), float32 in 0 … 1, and their digits (1797,).
    """
    from sklearn.datasets import load_digits  # type: ignore[import-untyped]

    data = load_digits()
    images = torch.from_numpy(data.images.astype(np.float32) / 16).unsqueeze(1)
    # Bilinear, because cubic curves would leave the range 0 … 1.
    images = torch.nn.functional.interpolate(images, size=(SIDE, SIDE), mode="bilinear", align_corners=False)
    return images, torch.from_numpy(data.target.astype(np.int64))


def _draw(digit: int, draw: npt.NDArray[np.float64]) -> npt.NDArray[np.uint8]:
    """Draw one digit; `draw` holds uniform random numbers: font, stroke, rotation, scales, shear, shifts, …."""
    fonts = _BOLD + _REGULAR
    index = int(draw[0] * len(fonts))
    thicker = int(draw[1] * 3) - (index < len(_BOLD))  # bold fonts also get thinner, others would break
    glyph = _glyph(fonts[index], digit, thicker)
    bent = glyph.transform(glyph.size, Image.Transform.AFFINE, _affine(draw[2:8]), Image.Resampling.BILINEAR)
    return np.asarray(bent.resize((SIDE, SIDE), Image.Resampling.BOX))


def _affine(draw: npt.NDArray[np.float64]) -> tuple[float, ...]:
    """Turn six uniform numbers into a map from positions in the result to positions in the glyph, about the centre."""
    angle, shear = np.deg2rad(15) * (2 * draw[0] - 1), 0.25 * (2 * draw[1] - 1)
    scale_x, scale_y = 0.8 + 0.4 * draw[2], 0.9 + 0.2 * draw[3]
    shift = CANVAS / 16 * (2 * draw[4:6] - 1)
    rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    matrix = rotation @ np.array([[1, shear], [0, 1]]) @ np.diag([1 / scale_x, 1 / scale_y])
    centre = np.full(2, CANVAS / 2)
    offset = centre - matrix @ (centre + shift)
    return (*matrix[0].tolist(), float(offset[0]), *matrix[1].tolist(), float(offset[1]))


@cache
def _glyph(font: str, digit: int, thicker: int) -> Image.Image:
    """Draw a digit in the middle of the canvas, all fonts equally high, its stroke made thicker or thinner."""
    drawing = _font(font)
    left, top, right, bottom = drawing.getbbox(str(digit))
    glyph = Image.new("L", (int(right - left), int(bottom - top)), 0)
    ImageDraw.Draw(glyph).text((-left, -top), str(digit), font=drawing, fill=255)
    height = CANVAS * 3 // 4
    width = max(1, round(glyph.width * height / glyph.height))
    glyph = glyph.resize((width, height), Image.Resampling.BICUBIC)
    canvas = Image.new("L", (CANVAS, CANVAS), 0)
    canvas.paste(glyph, ((CANVAS - width) // 2, (CANVAS - height) // 2))
    if thicker == 0:
        return canvas
    size = 1 + 2 * abs(thicker)
    return canvas.filter(ImageFilter.MaxFilter(size) if thicker > 0 else ImageFilter.MinFilter(size))


@cache
def _font(name: str) -> ImageFont.FreeTypeFont:
    import matplotlib

    file = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / f"{name}.ttf"
    if not file.is_file():
        raise FileNotFoundError(f"matplotlib's font {name} is missing: {file} does not exist")
    return ImageFont.truetype(str(file), CANVAS)
