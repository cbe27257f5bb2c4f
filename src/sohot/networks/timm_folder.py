"""A timm model in a folder, by `timm:local-dir:FOLDER`: as `timm.models.save_for_hf` and Hugging Face store one."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .._reading import read_json
from .any_network import from_network, with_token_features
from .backbone import Backbone, BackboneOptions
from .names import CONFIG, WEIGHTS, folder_of
from .timm_models import check_side, fill_timm, import_timm, timm_spec


def build_folder(options: BackboneOptions) -> Backbone:
    """Build the model that a folder describes, without its classifier.

    Only `config.json` and `model.safetensors` are read: no code, and no pickles. A run that is rebuilt reads the first
    alone.
    """
    timm = import_timm()
    folder = folder_of(options.name)
    config = _read_config(folder, options.name)
    if not timm.is_model(config["architecture"]):
        raise ValueError(f"{folder / CONFIG}: timm has no model named {config['architecture']!r}")
    trained = options.pretrained and options.weights is None
    if trained:
        _require_weights(folder, options.name)
    settings = {"img_size": options.size} if options.size and _is_of_fixed_size(config) else {}
    try:
        # With its classifier at first: timm then insists that every tensor is there and fits.
        network = timm.create_model(f"local-dir:{folder}", pretrained=trained, **settings)
    except Exception as error:  # wrong arguments, tensors or types: anything that somebody may write into such files
        reason = " ".join(str(error).split())
        raise ValueError(f"backbone {options.name}: timm cannot build it from {folder} ({reason[:300]})") from None
    network.reset_classifier(0)
    check_side(network, timm_spec(network, options.size).size, options.name)
    if options.weights is not None:
        classifier = tuple(f"{name}." for name in _classifiers(config))
        fill_timm(network, options.weights, options.name, classifier)
    pretrained = options.weights is not None or options.pretrained
    spec = timm_spec(network, options.size)
    return from_network(options.name, with_token_features(network), spec, options, pretrained=pretrained)


def _read_config(folder: Path, name: str) -> Mapping[str, Any]:
    if not folder.is_dir():
        raise ValueError(f"backbone {name}: there is no folder {folder}")
    file = folder / CONFIG
    if not file.exists():
        raise ValueError(f"backbone {name}: {folder} holds no {CONFIG}, so it is not the folder of a timm model")
    try:
        config = read_json(file)
    except ValueError as error:
        raise ValueError(f"{file}: it is not JSON ({error})") from None
    if not isinstance(config, dict) or not isinstance(config.get("architecture"), str):
        other = " (transformers wrote it)" if isinstance(config, dict) and "model_type" in config else ""
        raise ValueError(f"{file}: it names no 'architecture', so it does not describe a timm model{other}")
    return config


def _require_weights(folder: Path, name: str) -> None:
    if (folder / WEIGHTS).is_file():
        return
    pickles = sorted(path.name for path in folder.iterdir() if path.suffix in (".bin", ".pth", ".pt"))
    hint = f"; {pickles[0]} may hold code and is not read" if pickles else ""
    raise ValueError(
        f"backbone {name}: {folder} holds no {WEIGHTS}{hint}: save the model as safetensors, or give --weights FILE"
    )


def _is_of_fixed_size(config: Mapping[str, Any]) -> bool:
    return bool(_pretrained(config).get("fixed_input_size"))


def _classifiers(config: Mapping[str, Any]) -> list[str]:
    names = _pretrained(config).get("classifier") or []
    return [names] if isinstance(names, str) else list(names)


def _pretrained(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the folder says about its weights; in old folders at the top."""
    found = config.get("pretrained_cfg", config)
    return found if isinstance(found, dict) else {}
