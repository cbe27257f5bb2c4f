"""Networks by name, the two streams on top of them, and the cache of their frozen part."""

from .backbone import Backbone
from .model import StreamOutput, TwoStreams
from .registry import backbone_names, create_backbone
from .trunk_cache import cache_trunk, trunk_key

__all__ = ["Backbone", "StreamOutput", "TwoStreams", "backbone_names", "cache_trunk", "create_backbone", "trunk_key"]
