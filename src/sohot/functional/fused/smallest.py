"""The smallest kernel, to find out whether any can be compiled."""

# Written for Triton's compiler, not for Python's type checker.
# mypy: ignore-errors

import triton
import triton.language as tl


@triton.jit
def add_one(number):
    """Add 1 to a number."""
    tl.store(number, tl.load(number) + 1)
