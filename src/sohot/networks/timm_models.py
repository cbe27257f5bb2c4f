"""Any model of timm, by `timm:NAME` or by the short name of one that we recommend."""

import difflib
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import nn

from .._torchvision import import_torchvision
from ..data.input_spec import INTERPOLATIONS, InputSpec
from .any_network import from_network, with_token_features
from .backbone import Backbone, BackboneOptions
from .names import CONFIG, FOLDER, WEIGHTS, is_folder
from .recommended import PREFIX, find_recommended
from .weights import ADVICE, PATIENCE, State, download, fill, read_weights

_LOCAL_COPY = f"put its {CONFIG} and {WEIGHTS} into a folder and name that with --backbone {FOLDER}FOLDER"


def build_timm(options: BackboneOptions) -> Backbone:
    """Build a model of timm without its classifier."""
    timm, model, config = _find_model(options.name)
    recommended = find_recommended(full_name(options.name))
    side = recommended.side if recommended and options.size is None else options.size
    settings: dict[str, Any] = {"num_classes": 0}
    if side is not None and config is not None and config.fixed_input_size:
        settings["img_size"] = side
        with torch.device("meta"):
            check_side(timm.create_model(model, pretrained=False, **settings), side, options.name)
    if options.weights is None and options.pretrained:
        advice = f"{_LOCAL_COPY}, {ADVICE}" if _is_on_hub(config) else ADVICE
        network = download(lambda: _with_weights(timm, model, settings), options.name, advice)
    else:
        network = timm.create_model(model, pretrained=False, **settings)
    if options.weights is not None:
        fill_timm(network, options.weights, options.name, _classifier(network))
    pretrained = options.weights is not None or options.pretrained
    spec = timm_spec(network, side)
    if recommended:
        spec = replace(spec, resize=max(spec.size, round(spec.size * recommended.resize / recommended.side)))
    return from_network(options.name, with_token_features(network), spec, options, pretrained=pretrained)


def check_side(network: Any, side: int, name: str) -> None:
    """Require images that the patches of a vision transformer cover, or name the nearest sides that they do."""
    patches = getattr(network, "patch_embed", None)
    if not hasattr(network, "num_prefix_tokens") or getattr(patches, "dynamic_img_pad", False):
        return
    patch = getattr(patches, "patch_size", None)
    if not isinstance(patch, tuple) or side % max(patch) == 0:
        return
    width = max(patch)
    below = side // width * width
    nearest = f"{below} or {below + width}" if below else f"{width}"
    raise ValueError(
        f"image size {side} does not fit the backbone {name}, whose patches are {width} pixels wide: choose {nearest}"
    )


def fill_timm(network: nn.Module, file: Path, name: str, classifier: tuple[str, ...]) -> None:
    """Copy a file of weights into a timm model, after what timm itself does to such files.

    It resamples the positions of patches for images of another size, and knows names that publishers give.
    """
    state: State = {
        key: tensor.float() if tensor.is_floating_point() else tensor for key, tensor in read_weights(file).items()
    }
    adapt = getattr(import_module(type(network).__module__), "checkpoint_filter_fn", None)
    if adapt is not None:
        try:
            state = adapt(state, network)
        except Exception:  # of a file for something else; the names and shapes that do not fit say more
            state = {**state}
    fill(network, state, str(file), name, classifier)


def timm_weights(name: str) -> State:
    """Download the weights of a timm model, without its classifier."""
    timm, model, _ = _find_model(name)
    state: State = _with_weights(timm, model, {"num_classes": 0}).state_dict()
    return state


def full_name(name: str) -> str:
    """Name a timm model as timm does, with the weights that timm means if it is named without; other names stay.

    >>> full_name("timm:resnet18"), full_name("convnext-nano"), full_name("lite0")
    ('timm:resnet18.a1_in1k', 'timm:convnext_nano.in12k_ft_in1k', 'lite0')
    """
    recommended = find_recommended(name)
    if recommended is not None:
        return name if recommended.timm is None else f"{PREFIX}{recommended.timm}"
    if is_folder(name) or not name.startswith(PREFIX):
        return name
    _, model, config = _find_model(name)
    return f"{PREFIX}{model.partition('.')[0]}.{config.tag}" if config is not None and config.tag else name


def _find_model(name: str) -> tuple[Any, str, Any]:
    """Return timm, the name it has for a model, and what it says about the weights, or say that it has none."""
    timm = import_timm()
    recommended = find_recommended(name)
    model = recommended.timm if recommended and recommended.timm else name.removeprefix(PREFIX)
    architecture = model.partition(".")[0]
    if not timm.is_model(architecture):
        close = difflib.get_close_matches(model, timm.list_models(), n=3)
        hint = f": perhaps {' or '.join(close)}" if close else "; timm.list_models() lists them"
        raise ValueError(f"backbone {name}: timm has no model named {model!r}{hint}")
    try:
        return timm, model, timm.get_pretrained_cfg(model, allow_unregistered=True)
    except RuntimeError:  # the model has no such weights
        known = ", ".join(timm.list_pretrained(f"{architecture}.*"))
        raise ValueError(f"backbone {name}: timm has no weights of that name, but {known or 'none'}") from None


def _is_on_hub(config: Any) -> bool:
    """Whether weights come from the model hub; a few come from addresses of their own."""
    return config is not None and bool(config.hf_hub_id)


def _with_weights(timm: Any, model: str, settings: Mapping[str, Any]) -> Any:
    """Build a model with its weights from the model hub or, if that cannot be reached, from the hub's cache."""
    from huggingface_hub import constants, get_session

    config = timm.get_pretrained_cfg(model, allow_unregistered=True)
    if not _is_on_hub(config):
        return timm.create_model(model, pretrained=True, **settings)
    before = constants.HF_HUB_OFFLINE
    try:
        if not before:
            get_session().head(constants.ENDPOINT, timeout=PATIENCE)
    except Exception:  # of the hub's transport, which differs between versions; the hub itself would try for a minute
        constants.HF_HUB_OFFLINE = True
    try:
        return timm.create_model(model, pretrained=True, **settings)
    except OSError as error:
        if not constants.HF_HUB_OFFLINE:
            raise
        obstacle = "HF_HUB_OFFLINE is set" if before else f"{constants.ENDPOINT} cannot be reached"
        raise ConnectionError(
            f"{obstacle}, and the cache {constants.HF_HUB_CACHE}, which you may copy from a machine that has used "
            f"them, holds no {WEIGHTS} of {config.hf_hub_id}"
        ) from error
    finally:
        constants.HF_HUB_OFFLINE = before


def timm_spec(network: nn.Module, size: int | None = None) -> InputSpec:
    """Read the input format that a timm model declares."""
    config = import_timm().data.resolve_model_data_config(network)
    side = size or config["input_size"][-1]
    interpolation = config["interpolation"] if config["interpolation"] in INTERPOLATIONS else "bicubic"
    resize = max(side, round(side / config["crop_pct"]))
    return InputSpec(side, tuple(config["mean"]), tuple(config["std"]), resize, interpolation)


def _classifier(network: Any) -> tuple[str, ...]:
    names = network.pretrained_cfg.get("classifier") or ()
    return tuple(f"{name}." for name in ([names] if isinstance(names, str) else names))


def import_timm() -> Any:
    """Import timm, or say how to install it."""
    import_torchvision()  # timm imports it, and would fail if its operators do not load
    try:
        return import_module("timm")
    except ModuleNotFoundError:
        raise ModuleNotFoundError("backbones named timm:NAME need the package timm: pip install timm") from None
