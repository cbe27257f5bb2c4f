"""Weights of a network: from a file, from the network's publisher, or none."""

import pickle
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor, nn

from .._reading import require_regular
from .backbone import BackboneOptions

State = Mapping[str, Tensor]
VERSION, BACKBONE = "sohot", "backbone"
"""Metadata of a file of packed weights: the version that packed it, and the name of the backbone."""
ANOTHER = "make the file by `sohot weights NAME --out FILE`, or copy it again"
"""What to do about a file that is of no use."""
PATIENCE = 10.0
"""Seconds to wait for a server that says nothing."""
ADVICE = (
    "give a file with --weights FILE (in an experiment: --set weights=FILE), which `sohot weights NAME --out FILE` "
    "makes where there is a connection, take --backbone lite0, which needs none, or start untrained with --from-scratch"
)


def load_weights(
    network: nn.Module,
    options: BackboneOptions,
    fetch: Callable[[], State],
    classifier: tuple[str, ...] = (),
) -> bool:
    """Load a network's weights as the options say.

    Args:
        network: The network, freshly initialised.
        options: `weights` names a file; otherwise `pretrained` says whether to use those from `fetch`.
        fetch: Gets the publisher's weights; any failure is reported as a failed download.
        classifier: Prefixes of the names of classifier tensors: they are not used and may differ or be missing.

    Returns:
        Whether weights were loaded.
    """
    if options.weights is not None:
        fill(network, read_weights(options.weights), str(options.weights), options.name, classifier)
    elif options.pretrained:
        fill(network, download(fetch, options.name), "the downloaded file", options.name, classifier)
    return options.weights is not None or options.pretrained


def download(fetch: Callable[[], Any], name: str, advice: str = ADVICE) -> Any:
    """Download weights, or say in one sentence what to do without them."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(PATIENCE if before is None else before)  # torch.hub itself would wait for ever
    try:
        return fetch()
    except ModuleNotFoundError:  # weights that come as a package: the sentence says which
        raise
    except Exception as error:  # torch.hub and the model hubs raise anything from OSError to their own types
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise ConnectionError(
            f"the pre-trained weights of {name} could not be downloaded ({reason}): {advice}"
        ) from None
    finally:
        socket.setdefaulttimeout(before)


def read_weights(file: Path) -> dict[str, Tensor]:
    """Read a state dict from safetensors or from a torch file that holds only tensors; never unpickle objects.

    Args:
        file: The file; its kind is detected from its content, not its name.

    Returns:
        Tensors by name; wrappers such as {"state_dict": …} and the "module." of parallel training are removed.
    """
    if not file.is_file():
        raise FileNotFoundError(f"weights {file}: there is no such file")
    with file.open("rb") as stream:
        head = stream.read(9)
    # A torch file is a zip archive or, in its old form, a bare pickle. Safetensors begin with the length of a header in
    # eight bytes, which may look like a pickle, and the header, which is JSON.
    is_torch = head[:2] in (b"PK", b"\x80\x02") and head[8:] != b"{"
    state = _read_torch(file) if is_torch else _read_safetensors(file)
    for wrapping in ("state_dict", "model_state_dict", "model"):
        if isinstance(state, Mapping) and isinstance(state.get(wrapping), Mapping):
            state = state[wrapping]
    if not isinstance(state, Mapping) or not state or not all(isinstance(v, Tensor) for v in state.values()):
        raise ValueError(f"weights {file}: expected a state dict (tensors by name), got {type(state).__name__}")
    return {str(name).removeprefix("module."): tensor for name, tensor in state.items()}


def packed_for(file: Path) -> str | None:
    """Return the name of the backbone that a file of weights was packed for; None for any other file."""
    try:
        require_regular(file)
        with safe_open(file, framework="pt") as handle:
            about = handle.metadata() or {}
    except (OSError, SafetensorError):
        return None  # whoever reads the weights says what is wrong
    return about.get(BACKBONE) if VERSION in about else None


def _read_torch(file: Path) -> Any:
    try:
        with file.open("rb") as stream:  # given only the name, torch would take some files for another kind
            return torch.load(stream, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise ValueError(
            f"weights {file}: the file holds pickled objects besides tensors, or is damaged, so it is refused: "
            "save only the state dict, preferably as safetensors"
        ) from None
    except (RuntimeError, EOFError, OSError, ValueError) as error:
        raise ValueError(f"weights {file}: the file is damaged ({_first_line(error)}): {ANOTHER}") from None


def _read_safetensors(file: Path) -> dict[str, Tensor]:
    try:
        return load_file(file)
    except (SafetensorError, OSError, ValueError) as error:
        raise ValueError(
            f"weights {file}: not safetensors or a torch state dict, or damaged ({_first_line(error)}): {ANOTHER}"
        ) from None


def fill(network: nn.Module, state: State, origin: str, name: str, classifier: tuple[str, ...] = ()) -> None:
    """Copy a state dict into a network, tensor by tensor, or say what does not match."""
    own = network.state_dict()
    ignored = {key for key in {*own, *state} if classifier and key.startswith(classifier)}
    # Counters are training bookkeeping that old files lack.
    missing = [
        key for key in own if key not in state and key not in ignored and not key.endswith("num_batches_tracked")
    ]
    unexpected = [key for key in state if key not in own and key not in ignored]
    if missing or unexpected:
        raise ValueError(
            f"weights {origin} do not fit the backbone {name}: {_some(missing)} missing, {_some(unexpected)} "
            f"unexpected: {ANOTHER}"
        )
    taken = {key: tensor for key, tensor in state.items() if key not in ignored}
    for key, tensor in taken.items():
        if tensor.shape != own[key].shape:
            raise ValueError(
                f"weights {origin} do not fit the backbone {name}: {key} has shape {tuple(tensor.shape)}, expected "
                f"{tuple(own[key].shape)}: {ANOTHER}"
            )
    network.load_state_dict(taken, strict=False)


def _some(keys: list[str], most: int = 3) -> str:
    if not keys:
        return "none"
    more = "" if len(keys) <= most else ", …"
    return f"{len(keys)} ({', '.join(keys[:most])}{more})"


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
