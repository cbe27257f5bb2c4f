"""Imports torchvision even if its compiled operators do not load.

The wheel on package registries is a CUDA build. With a CPU build of torch its operators do not load, and `import
torchvision` fails with "operator torchvision::nms does not exist". Models and transforms never call that operator:
declaring its schema is enough. All code that needs torchvision (or timm) calls `import_torchvision` first.
"""

import sys
from importlib import import_module
from types import ModuleType

import torch

_schemas: torch.library.Library | None = None  # declarations live as long as this object


def import_torchvision() -> ModuleType:
    """Import torchvision and return it.

    Example:
        >>> torchvision = import_torchvision()
        >>> torchvision.models.resnet50.__name__
        'resnet50'
    """
    try:
        return import_module("torchvision")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"this needs torchvision, which is not installed: {error}") from None
    except RuntimeError as error:
        if "torchvision::nms" not in str(error):
            raise
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[name]  # remains of the failed import
    _declare_operators()
    return import_module("torchvision")


def _declare_operators() -> None:
    global _schemas
    if _schemas is None:
        _schemas = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
        for operator in ("nms", "qnms"):
            schema = f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
            _schemas.define(schema)  # type: ignore[no-untyped-call]
