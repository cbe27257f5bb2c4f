"""The installed version; looked up on first use, because that takes longer than importing the package."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("sohot")
except PackageNotFoundError:  # imported from a source tree that was never installed
    __version__ = "0+unknown"
