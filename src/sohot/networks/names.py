"""Names of backbones, without torch: the command line and configurations name networks before building one."""

from pathlib import Path

from ..functional.plain_checks import nearest
from .recommended import PREFIX, RECOMMENDED

NETWORKS = (*(network.name for network in RECOMMENDED), "alexnet", "vgg16", "resnet50", "small-cnn")
FOLDER = f"{PREFIX}local-dir:"
"""Before the folder of a timm model, as timm itself names it."""
CONFIG, WEIGHTS = "config.json", "model.safetensors"
"""What is read in such a folder."""


def backbone_names() -> list[str]:
    """List the forms of name that `create_backbone` understands.

    >>> backbone_names()
    ['lite0', 'lite1', 'lite2', 'convnext-nano', 'dinov2-small', 'dinov2-base', 'siglip-base', 'alexnet', 'vgg16',
     'resnet50', 'small-cnn', 'timm:NAME', 'timm:local-dir:FOLDER', 'FILE.py:function']
    """
    return [*NETWORKS, f"{PREFIX}NAME", f"{FOLDER}FOLDER", "FILE.py:function"]


def check_backbone_name(name: str, option: str = "backbone") -> str:
    """Require a name of one of these forms; whether timm or a file has that network shows when it is built."""
    if not (name in NETWORKS or name.startswith(PREFIX) or is_own(name)):
        raise ValueError(
            f"{option} must be one of {', '.join(backbone_names())}, got {name!r}{nearest(name, NETWORKS)}"
        )
    return name


def is_folder(name: str) -> bool:
    """Whether a backbone's name has the form timm:local-dir:FOLDER.

    >>> is_folder("timm:local-dir:nets/resnet18"), is_folder("timm:resnet18")
    (True, False)
    """
    return name.startswith(FOLDER)


def folder_of(name: str) -> Path:
    """Return the folder of a timm model; see `is_folder`."""
    return Path(name.removeprefix(FOLDER)).expanduser()


def is_own(name: str) -> bool:
    """Whether a backbone's name has the form FILE.py:function.

    >>> is_own("nets/mine.py:small"), is_own("timm:resnet18")
    (True, False)
    """
    return name.rpartition(":")[0].endswith(".py") and not is_folder(name)


def files_of(name: str) -> list[Path]:
    """List the files of a user's that a backbone is made of.

    >>> files_of("nets/mine.py:small")[0].as_posix(), files_of("lite0")
    ('nets/mine.py', [])
    """
    if is_folder(name):
        config, weights = folder_of(name) / CONFIG, folder_of(name) / WEIGHTS
        return [config, weights] if weights.exists() else [config]  # it may get other weights, or none
    return [Path(name.rpartition(":")[0])] if is_own(name) else []


def absolute_name(name: str) -> str:
    """Return the name of a backbone with the absolute path of its file or folder, if it has one.

    >>> absolute_name("timm:resnet18"), absolute_name("timm:local-dir:/nets/mine")
    ('timm:resnet18', 'timm:local-dir:/nets/mine')
    """
    if is_folder(name):
        return f"{FOLDER}{folder_of(name).absolute()}"
    file, _, function = name.rpartition(":")
    return f"{Path(file).absolute()}:{function}" if is_own(name) else name
