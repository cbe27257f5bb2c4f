"""Small folders of images."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def make_folder(tmp_path: Path) -> Callable[..., Path]:
    """Write images into class folders, given as {"mug": ["1.jpg", "deep/2.png"], …}."""

    def make(classes: Mapping[str, list[str]], name: str = "root") -> Path:
        root = tmp_path / name
        for place, (folder, files) in enumerate(classes.items()):
            (root / folder).mkdir(parents=True, exist_ok=True)
            for number, file in enumerate(files):
                path = root / folder / file
                path.parent.mkdir(parents=True, exist_ok=True)
                pixels = np.full((12, 16, 3), (40 * place, 20 * number, 99), dtype=np.uint8)
                Image.fromarray(pixels).save(path)
        return root

    return make
