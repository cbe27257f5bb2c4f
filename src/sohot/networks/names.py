"""Names of backbones, without torch: the command line and configurations name networks before building one."""

from ..functional.plain_checks import nearest

NETWORKS = ("lite0", "lite1", "lite2", "alexnet", "vgg16", "resnet50", "small-cnn")
PREFIX = "timm:"
FOLDER = f"{PREFIX}local-dir:"
"""Before the folder of a timm model, as timm itself names it."""


def backbone_names() -> list[str]:
    """List the forms of name that `create_backbone` understands.

    >>> backbone_names()
    ['lite0', 'lite1', 'lite2', 'alexnet', 'vgg16', 'resnet50', 'small-cnn', 'timm:NAME', 'FILE.py:function']
    """
    return [*NETWORKS, f"{PREFIX}NAME", "FILE.py:function"]


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


def is_own(name: str) -> bool:
    """Whether a backbone's name has the form FILE.py:function.

    >>> is_own("nets/mine.py:small"), is_own("timm:resnet18")
    (True, False)
    """
    return name.rpartition(":")[0].endswith(".py")
