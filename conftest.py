"""Which files are not collected for doctests."""

from importlib.util import find_spec

# Triton is not available on every system; these modules cannot be imported without it.
collect_ignore_glob = [] if find_spec("triton") else ["src/sohot/functional/fused/*.py"]
