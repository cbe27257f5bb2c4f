"""Depth maps as images: holes filled, scaled to 8 bits, as one channel or in colours."""

import os

import numpy as np
import numpy.typing as npt
from PIL import Image

from .decode import SIXTEEN_BIT, UnreadableImage, opened


def read_depth(path: str | os.PathLike[str], channels: int = 1) -> Image.Image:
    """Read a depth map of 8 or 16 bits, in which 0 stands for "not measured".

    Holes take the depth of the nearest pixel that was measured. The depths that occur are spread over 0 … 255: near is
    dark, far is bright.

    Args:
        path: The file.
        channels: 1 for grey ("L"), 3 for colours from blue (near) to red (far), which suit a network trained on
            photographs better than three equal channels (Eitel et al., IROS 2015).

    Raises:
        UnreadableImage: The file cannot be read, or has more than one channel, or no depth was measured in it.
    """
    if channels not in (1, 3):
        raise ValueError(f"channels must be 1 or 3, got {channels!r}")
    with opened(path) as image:
        mode, depth = image.mode, np.asarray(image)
    if mode not in (*SIXTEEN_BIT, "L"):
        raise UnreadableImage(path, f"a depth map has one channel of 8 or 16 bits, this image has the mode {mode}")
    if not depth.any():
        raise UnreadableImage(path, "no depth was measured in it: all pixels are 0")
    grey = scale_depth(fill_holes(depth))
    return Image.fromarray(grey if channels == 1 else colourise(grey))


def fill_holes(depth: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Give pixels that are 0 the value of the nearest pixel that is not.

    >>> fill_holes(np.array([[7, 0, 0, 9]])).tolist()
    [[7, 7, 9, 9]]
    """
    holes = depth == 0
    if not holes.any() or holes.all():
        return depth
    from scipy.ndimage import distance_transform_edt  # type: ignore[import-untyped]

    nearest = distance_transform_edt(holes, return_distances=False, return_indices=True)
    filled: npt.NDArray[np.generic] = depth[tuple(nearest)]
    return filled


def scale_depth(depth: npt.NDArray[np.generic]) -> npt.NDArray[np.uint8]:
    """Spread depths over 0 … 255.

    >>> scale_depth(np.array([[600, 700, 1110]])).tolist()
    [[0, 50, 255]]
    """
    values = depth.astype(np.float64)
    near, far = values.min(), values.max()
    scaled: npt.NDArray[np.uint8] = np.round((values - near) * (255 / max(far - near, 1))).astype(np.uint8)
    return scaled


def colourise(grey: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Turn 0 … 255 into colours from blue over green to red ("jet").

    >>> colourise(np.array([[0, 128, 255]], dtype=np.uint8)).tolist()
    [[[0, 0, 128], [130, 255, 126], [128, 0, 0]]]
    """
    centres = np.array([3.0, 2.0, 1.0])  # where red, green and blue are strongest, on the scale 0 … 4
    strength = 1.5 - np.abs(grey[..., None] / 255 * 4 - centres)
    colours: npt.NDArray[np.uint8] = np.round(strength.clip(0, 1) * 255).astype(np.uint8)
    return colours
