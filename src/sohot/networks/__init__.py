"""Networks by name, the two streams on top of them, and the cache of their frozen part."""

from typing import TYPE_CHECKING

from .._lazy import lazy_parts

if TYPE_CHECKING:
    from .backbone import Backbone
    from .names import backbone_names
    from .registry import create_backbone
    from .trunk_cache import cache_trunk, trunk_key
    from .two_streams import StreamOutput, TwoStreams
else:
    __getattr__, __dir__ = lazy_parts(
        __name__,
        {
            "backbone": ("Backbone",),
            "two_streams": ("StreamOutput", "TwoStreams"),
            "names": ("backbone_names",),
            "registry": ("create_backbone",),
            "trunk_cache": ("cache_trunk", "trunk_key"),
        },
    )

__all__ = [
    "Backbone",
    "StreamOutput",
    "TwoStreams",
    "backbone_names",
    "cache_trunk",
    "create_backbone",
    "trunk_key",
]
