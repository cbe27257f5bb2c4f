"""Sharing a package on the Hugging Face hub, in a repository of its own that is private unless asked otherwise."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .. import __version__

_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)


def check_repository_name(name: str) -> str:
    """Require a name that the hub accepts.

    >>> check_repository_name("me/sketches")
    'me/sketches'
    """
    repository = name.partition("/")[2]
    odd = "--" in name or ".." in name or repository.endswith((".", "-", ".git"))
    if not _NAME.fullmatch(name) or odd:
        raise ValueError(
            f"--hub must read OWNER/NAME, in letters, digits, '-', '_' and '.', such as me/sketches-model, got {name!r}"
        )
    return name


def require_repository(name: str, public: bool) -> None:
    """Require that a package can be uploaded to a repository, before time is spent on making it.

    Args:
        name: OWNER/NAME of the repository; it need not exist.
        public: Whether everybody may see it. One that exists must be as asked: nothing becomes public by accident.

    Raises:
        ModuleNotFoundError: The hub's library is not installed.
        ValueError: The name is wrong, there is no token, or the repository is not as asked.
        ConnectionError: The hub cannot be reached, or fails.
        PermissionError: The hub refuses the token.
    """
    check_repository_name(name)
    hub = _import_hub()
    from huggingface_hub.errors import RepositoryNotFoundError

    from ..networks.connection import ask_hub, reaches

    if hub.get_token() is None:
        raise ValueError("--hub needs a token of the hub that may write: `hf auth login` stores one, or set HF_TOKEN")
    if hub.constants.HF_HUB_OFFLINE:
        raise ConnectionError("--hub needs a connection, but HF_HUB_OFFLINE is set")
    if not reaches(hub.constants.ENDPOINT, ask_hub):
        raise ConnectionError(f"{hub.constants.ENDPOINT} cannot be reached: export without --hub, and upload later")
    with _in_words(name):
        api = hub.HfApi()
        api.whoami()  # for a token that is not valid, the hub would say that there is no such repository
        try:
            is_public = not api.model_info(name).private
        except RepositoryNotFoundError:
            return
    if is_public != public:
        found, advice = ("public", "add --public") if is_public else ("private", "leave out --public")
        raise ValueError(f"--hub {name} exists already and is {found}: {advice}, or choose another name")


def upload_package(folder: Path, name: str, public: bool) -> str:
    """Upload a package to a repository of the hub, which is made if it does not exist.

    Returns:
        The address of its page.

    Raises:
        ConnectionError: The upload failed; the message says how to repeat it.
        PermissionError: The hub refuses the token there.
    """
    hub = _import_hub()
    again = f"{folder} is complete, but not uploaded; repeat it with: hf upload {name} {folder} ."
    with _in_words(name, again + ("" if public else " --private")):
        api = hub.HfApi()
        api.create_repo(name, private=not public, exist_ok=True)
        api.upload_folder(repo_id=name, folder_path=folder, commit_message=f"Package made by sohot {__version__}")
    return f"{hub.constants.ENDPOINT}/{name}"


def _import_hub() -> Any:
    try:
        import huggingface_hub
        import huggingface_hub.constants
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "--hub needs the package huggingface_hub: pip install 'sohot[hub]', or pip install huggingface_hub"
        ) from None
    return huggingface_hub


@contextmanager
def _in_words(name: str, then: str = "") -> Iterator[None]:
    """Turn errors of the hub into one sentence each."""
    from huggingface_hub.errors import HfHubHTTPError

    end = f"; {then}" if then else ""
    failures: Any = (OSError, *HfHubHTTPError.__bases__)  # errors of transport differ between versions
    try:
        yield
    except HfHubHTTPError as error:
        status = getattr(error.response, "status_code", None)
        if status in (401, 403):
            raise PermissionError(
                f"the hub refuses to write {name} with this token ({status}): make one that may, and store it with "
                f"`hf auth login` or in HF_TOKEN{end}"
            ) from None
        raise ConnectionError(f"the hub answered {status} for {name} ({_first_line(error)}){end}") from None
    except failures as error:
        raise ConnectionError(f"the connection to the hub failed ({_first_line(error)}){end}") from None


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
