"""Methods by name, and all training options: one table for images, features and the command line."""

from typing import TYPE_CHECKING

from .._lazy import lazy_parts

if TYPE_CHECKING:
    from .registry import METHOD_NAMES as METHOD_NAMES
    from .registry import OTHER_NAMES as OTHER_NAMES
    from .registry import POOL_NAMES as POOL_NAMES
    from .registry import Method as Method
    from .registry import method as method
    from .settings import FitSettings as FitSettings
    from .settings import HeadSettings as HeadSettings
else:
    __getattr__, __dir__, __all__ = lazy_parts(__name__)
