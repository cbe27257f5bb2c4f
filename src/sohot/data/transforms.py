"""From an image to the tensor that a network is fed."""

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from .crops import Crop
from .decode import convert
from .input_spec import InputSpec

_RESAMPLING = {"bicubic": Image.Resampling.BICUBIC, "bilinear": Image.Resampling.BILINEAR}


def to_tensor(image: Image.Image, spec: InputSpec, crop: Crop | None = None, out: Tensor | None = None) -> Tensor:
    """Resize the shorter side, cut out the centre and normalise.

    Args:
        image: An image of any mode.
        spec: What the network wants.
        crop: If given, this part is seen in place of the centre, mirrored perhaps; `crops.random_crop` draws one.
        out: If given, the tensor is written there: a row of a batch, say.

    Returns:
        float32 tensor of shape (channels, size, size).

    Example:
        >>> spec = InputSpec(size=2, mean=(0.5,), std=(0.5,), resize=2)
        >>> to_tensor(Image.new("L", (4, 3), 255), spec)
        tensor([[[1., 1.], [1., 1.]]])
    """
    image = fit_image(image, spec, crop)
    pixels = np.asarray(image).reshape(spec.size, spec.size, spec.channels)
    tensor = torch.empty(spec.channels, spec.size, spec.size) if out is None else out
    # By numpy, which computes in the calling thread: torch would start its own threads in each thread that reads.
    # Channel by channel and in place: several times as fast as arithmetic along a last dimension of three.
    values = tensor.numpy()
    values[...] = pixels.transpose(2, 0, 1)
    values /= np.float32(255)
    for channel, mean, std in zip(values, spec.mean, spec.std, strict=True):
        channel -= np.float32(mean)
        channel /= np.float32(std)
    return tensor


def fit_image(image: Image.Image, spec: InputSpec, crop: Crop | None = None) -> Image.Image:
    """Bring an image to the size and the channels that a network wants; `to_tensor` says how."""
    image = convert(image, spec.channels)
    crop = _centre(*image.size, spec) if crop is None else crop
    left, top, right, bottom = crop[:4]
    if right - left == bottom - top == spec.size and left == int(left) and top == int(top):
        image = image.crop((int(left), int(top), int(right), int(bottom)))  # what resizing to the same size gives
    else:
        # Resizing the visible part alone gives the pixels of "resize, then crop" and stays small for a long image.
        image = image.resize((spec.size, spec.size), _RESAMPLING[spec.interpolation], box=crop[:4])
    return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if crop.mirrored else image


def _centre(width: int, height: int, spec: InputSpec) -> Crop:
    """Find the centre, on the pixel grid of the resized image (as torchvision's Resize and CenterCrop do)."""
    short = min(width, height)
    resized = [spec.resize if side == short else int(spec.resize * side / short) for side in (width, height)]
    left, top = (round((side - spec.size) / 2) for side in resized)
    across, down = width / resized[0], height / resized[1]
    right, bottom = min((left + spec.size) * across, width), min((top + spec.size) * down, height)
    return Crop(left * across, top * down, right, bottom)
