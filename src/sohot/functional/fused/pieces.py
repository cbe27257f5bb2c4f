"""Numbers as matrix units multiply them: float32 in two pieces of half precision, half precision as it is.

With x = high + low, x yᵀ = high highᵀ + high lowᵀ + low highᵀ + low lowᵀ. Two pieces of bfloat16 hold 16 digits of 24
and take any number; two of float16 hold 22 and take numbers whose size is known. Matrix units drop digits whenever they
add: let them add few numbers, and add their sums in float32.
"""

# Written for Triton's compiler, whose constants are in capitals, not for Python's type checker.
# mypy: ignore-errors
# ruff: noqa: N803

import os

import triton
import triton.language as tl

INTERPRETED = tl.constexpr(os.environ.get("TRITON_INTERPRET") == "1")

# Two numbers at a time: their high pieces, their low pieces and, in bfloat16, what the high pieces leave in float32.
TO_BFLOAT16 = tl.constexpr("""{
.reg .b32 first, second;
cvt.rn.bf16x2.f32 $0, $5, $4;
shl.b32 first, $0, 16;
and.b32 second, $0, 0xffff0000;
sub.f32 $2, $4, first;
sub.f32 $3, $5, second;
cvt.rn.bf16x2.f32 $1, $3, $2;
}""")
TO_FLOAT16 = tl.constexpr("""{
.reg .b16 first, second;
.reg .f32 first_high, second_high, first_low, second_low;
cvt.rn.f16x2.f32 $0, $3, $2;
mov.b32 {first, second}, $0;
cvt.f32.f16 first_high, first;
cvt.f32.f16 second_high, second;
sub.f32 first_low, $2, first_high;
sub.f32 second_low, $3, second_high;
cvt.rn.f16x2.f32 $1, second_low, first_low;
}""")


@triton.jit
def rounded(x):
    """Round to the 8 digits of bfloat16, in float32."""
    return ((x.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)


@triton.jit
def pieces(x):
    """Split float32 numbers into two pieces of bfloat16, 16 of their 24 digits; also returns what `high` leaves."""
    if INTERPRETED:  # the interpreter has no assembler, and cannot multiply bfloat16
        high = rounded(x)
        rest = x - high
        low = rounded(rest)
    else:
        high, low, rest = tl.inline_asm_elementwise(
            TO_BFLOAT16, "=&r,=&r,=&r,=&r,r,r", [x], (tl.bfloat16, tl.bfloat16, tl.float32), is_pure=True, pack=2
        )
    return high, low, rest


@triton.jit
def twice(low):
    """Double pieces of bfloat16."""
    if INTERPRETED:
        low = low + low
    else:
        low = tl.inline_asm_elementwise(
            "{ .reg .b32 ones; mov.b32 ones, 0x3f803f80; fma.rn.bf16x2 $0, $1, ones, $1; }",
            "=r,r",
            [low],
            tl.bfloat16,
            is_pure=True,
            pack=2,
        )
    return low


@triton.jit
def halves(x, TYPE: tl.constexpr):
    """Split float32 numbers into two pieces of a type of half precision, which must reach as far as they do."""
    if INTERPRETED or tl.float16 != TYPE:
        high = x.to(TYPE)
        low = (x - high.to(tl.float32)).to(TYPE)
    else:
        high, low = tl.inline_asm_elementwise(
            TO_FLOAT16, "=&r,=&r,r,r", [x], (tl.float16, tl.float16), is_pure=True, pack=2
        )
    return whole(high), whole(low)


@triton.jit
def whole(x):
    """Numbers of half precision as matrix units take them."""
    return x.to(tl.float32) if INTERPRETED else x
