"""Networks by name, the two streams on top of them, and the cache of their frozen part."""

from typing import TYPE_CHECKING

from .._lazy import lazy_parts

if TYPE_CHECKING:
    from .backbone import Backbone as Backbone
    from .names import backbone_names as backbone_names
    from .recommended import RECOMMENDED as RECOMMENDED
    from .recommended import RecommendedNetwork as RecommendedNetwork
    from .recommended import find_recommended as find_recommended
    from .registry import create_backbone as create_backbone
    from .trunk_cache import cache_trunk as cache_trunk
    from .trunk_cache import trunk_key as trunk_key
    from .two_streams import StreamOutput as StreamOutput
    from .two_streams import TwoStreams as TwoStreams
else:
    __getattr__, __dir__, __all__ = lazy_parts(__name__)
