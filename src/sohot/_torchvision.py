"""torchvision, also where its compiled operators cannot be loaded.

The wheel that package registries give out is a CUDA build. Beside a CPU torch its operators do not load, and
`import torchvision` stops at "operator torchvision::nms does not exist". Models and transforms never call that
operator: declaring its schema is enough. Everything that needs torchvision (timm too) calls `import_torchvision` first.
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
        del sys.modules[name]  # remains of the import that failed
    _declare_operators()
    return import_module("torchvision")


def _declare_operators() -> None:
    global _schemas
    if _schemas is None:
        _schemas = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
        for operator in ("nms", "qnms"):
            schema = f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
            _schemas.define(schema)  # type: ignore[no-untyped-call]
