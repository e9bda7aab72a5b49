"""triton.language: what kernels are written with."""

from __future__ import annotations

from typing import Any

from torchemu.frontends.triton._arithmetic import (
    PropagateNan,
    abs,  # noqa: A004
    add,
    cdiv,
    ceil,
    clamp,
    cos,
    div_rn,
    erf,
    exp,
    exp2,
    fdiv,
    floor,
    fma,
    log,
    log2,
    maximum,
    minimum,
    mul,
    rsqrt,
    sigmoid,
    sin,
    softmax,
    sqrt,
    sqrt_rn,
    sub,
    umulhi,
    where,
)
from torchemu.frontends.triton._control import Range
from torchemu.frontends.triton._conversions import cast
from torchemu.frontends.triton._inline import inline_asm_elementwise
from torchemu.frontends.triton._memory import BlockPointer, Descriptor, atomic, load, store
from torchemu.frontends.triton._operators import bits
from torchemu.frontends.triton._placeholders import Placeholder
from torchemu.frontends.triton._program import current
from torchemu.frontends.triton._randomness import (
    philox,
    rand,
    rand4x,
    randint,
    randint4x,
    randn,
    randn4x,
    uint_to_uniform_float,
)
from torchemu.frontends.triton._reductions import (
    argmax,
    argmin,
    associative_scan,
    cumprod,
    cumsum,
    dot,
    max,  # noqa: A004
    min,  # noqa: A004
    reduce,
    reduce_or,
    sum,  # noqa: A004
    xor_sum,
)
from torchemu.frontends.triton._scaled_products import dot_scaled
from torchemu.frontends.triton._shapes import (
    arange,
    broadcast,
    broadcast_to,
    cat,
    expand_dims,
    flip,
    full,
    gather,
    histogram,
    interleave,
    join,
    permute,
    ravel,
    reshape,
    sort,
    split,
    swizzle2d,
    topk,
    trans,
    view,
    zeros,
    zeros_like,
)
from torchemu.frontends.triton._types import (
    bfloat16,
    block_type,
    dtype,
    float8e4b8,
    float8e4nv,
    float8e5,
    float8e5b16,
    float16,
    float32,
    float64,
    int1,
    int8,
    int16,
    int32,
    int64,
    pi32_t,
    pointer_type,
    uint8,
    uint16,
    uint32,
    uint64,
    void,
)
from torchemu.frontends.triton._values import constexpr, plain, tensor, value_of

__all__ = [
    "TRITON_MAX_TENSOR_NUMEL",
    "PropagateNan",
    "abs",
    "add",
    "advance",
    "arange",
    "argmax",
    "argmin",
    "associative_scan",
    "assume",
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_xchg",
    "atomic_xor",
    "bfloat16",
    "block_type",
    "broadcast",
    "broadcast_to",
    "cast",
    "cat",
    "cdiv",
    "ceil",
    "clamp",
    "constexpr",
    "cos",
    "cumprod",
    "cumsum",
    "debug_barrier",
    "device_assert",
    "device_print",
    "div_rn",
    "dot",
    "dot_scaled",
    "dtype",
    "erf",
    "exp",
    "exp2",
    "expand_dims",
    "fdiv",
    "flip",
    "float8e4b8",
    "float8e4nv",
    "float8e5",
    "float8e5b16",
    "float16",
    "float32",
    "float64",
    "floor",
    "fma",
    "full",
    "gather",
    "globaltimer",
    "histogram",
    "inf",
    "inline_asm_elementwise",
    "int1",
    "int8",
    "int16",
    "int32",
    "int64",
    "interleave",
    "join",
    "load",
    "load_tensor_descriptor",
    "log",
    "log2",
    "make_block_ptr",
    "make_tensor_descriptor",
    "max",
    "max_constancy",
    "max_contiguous",
    "maximum",
    "min",
    "minimum",
    "mul",
    "multiple_of",
    "nan",
    "num_programs",
    "permute",
    "philox",
    "pi32_t",
    "pointer_type",
    "program_id",
    "rand",
    "rand4x",
    "randint",
    "randint4x",
    "randn",
    "randn4x",
    "range",
    "ravel",
    "reduce",
    "reduce_or",
    "reshape",
    "rsqrt",
    "sigmoid",
    "sin",
    "softmax",
    "sort",
    "split",
    "sqrt",
    "sqrt_rn",
    "static_assert",
    "static_print",
    "static_range",
    "store",
    "store_tensor_descriptor",
    "sub",
    "sum",
    "swizzle2d",
    "tensor",
    "tensor_descriptor",
    "tensor_descriptor_base",
    "to_tensor",
    "topk",
    "trans",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "uint_to_uniform_float",
    "umulhi",
    "view",
    "void",
    "where",
    "xor_sum",
    "zeros",
    "zeros_like",
]  # fmt: skip

range = Range  # noqa: A001 (the language's name)
tensor_descriptor = tensor_descriptor_base = Descriptor
TRITON_MAX_TENSOR_NUMEL = 1 << 20
inf, nan = float("inf"), float("nan")


class static_range(Range):  # noqa: N801
    """A range whose numbers are known when the kernel is compiled."""

    def __iter__(self) -> Any:
        parts = [int(plain(x)) for x in (self.start, self.stop, self.step)]
        import builtins

        return iter(builtins.range(*parts))


def program_id(axis: Any) -> tensor:
    """The program's place in the grid, along an axis."""
    return _number(current().place[_axis(axis)])


def num_programs(axis: Any) -> tensor:
    """The size of the grid along an axis."""
    return _number(current().launch.grid.sizes[_axis(axis)])


def _number(n: int) -> tensor:
    return tensor(int32.numpy.type(n), int32)


def _axis(axis: Any) -> int:
    axis = int(plain(axis))
    if axis not in (0, 1, 2):
        raise ValueError(f"program_id axis must be 0, 1, or 2 but got {axis}")
    return axis


def _atomic(name: str) -> Any:
    def call(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> tensor:
        return atomic(name, pointer, [val], mask, sem, scope)

    call.__name__, call.__doc__ = f"atomic_{name}", f"Combines a value with memory by {name}; the old one is returned."
    return call


atomic_add, atomic_max, atomic_min = _atomic("add"), _atomic("max"), _atomic("min")
atomic_and, atomic_or, atomic_xor, atomic_xchg = _atomic("and"), _atomic("or"), _atomic("xor"), _atomic("xchg")


def atomic_cas(pointer: Any, cmp: Any, val: Any, sem: Any = None, scope: Any = None) -> tensor:
    """Sets memory that is equal to a value to another one; the old one is returned."""
    return atomic("cas", pointer, [cmp, val], None, sem, scope)


def make_block_ptr(
    base: Any, shape: Any, strides: Any, offsets: Any, block_shape: Any, order: Any = None
) -> BlockPointer:
    """A block of a tensor in memory."""
    return BlockPointer(base, shape, strides, offsets, block_shape, order)


def advance(base: BlockPointer, offsets: Any) -> BlockPointer:
    """A block that lies so many elements further."""
    return base.advance(offsets)


def make_tensor_descriptor(
    base: Any, shape: Any, strides: Any, block_shape: Any, padding_option: Any = "zero"
) -> Descriptor:
    """A tensor in memory of which blocks are loaded and stored."""
    return Descriptor(base, shape, strides, block_shape, padding_option)


_experimental_make_tensor_descriptor = make_tensor_descriptor


def load_tensor_descriptor(desc: Descriptor, offsets: Any) -> tensor:
    """The block at these offsets."""
    return desc.load(offsets)


def store_tensor_descriptor(desc: Descriptor, offsets: Any, value: Any) -> None:
    """Writes the block at these offsets."""
    desc.store(offsets, value)


def to_tensor(value: Any) -> tensor:
    """A Python number as a value."""
    return value_of(value)


def multiple_of(input: Any, values: Any) -> Any:  # noqa: A002
    """The value: what is said of it is for compilers."""
    return input


max_contiguous = max_constancy = multiple_of


def assume(condition: Any) -> None:
    """Does nothing: it is for compilers."""


def debug_barrier() -> None:
    """A barrier of the program's threads."""
    from torchemu.frontends.triton import _threads

    _threads.syncthreads()


def static_assert(cond: Any, msg: Any = "") -> None:
    """Makes sure of what is known when the kernel is compiled.

    Raises:
        AssertionError: it does not hold.
    """
    if not plain(cond):
        raise AssertionError(plain(msg))


def static_print(*values: Any, sep: str = " ", end: str = "\n", file: Any = None, flush: bool = False) -> None:
    """Prints what is known when the kernel is compiled: in program 0."""
    if current().block == 0:
        print(*[plain(v) for v in values], sep=sep, end=end)


def device_print(prefix: Any, *args: Any, hex: bool = False) -> None:  # noqa: A002
    """Prints values, each with the program's place."""
    program = current()
    program.flush()  # it is seen when the program has come here
    place = program.place
    print(f"pid ({place[0]}, {place[1]}, {place[2]}) {plain(prefix)}", *[value_of(a).data for a in args])


def device_assert(cond: Any, msg: Any = "", mask: Any = None) -> None:
    """Makes sure of a condition, for all elements.

    Raises:
        AssertionError: it does not hold somewhere.
    """
    held = value_of(cond)
    if mask is not None:
        held = bits("or", held.to(int1), ~value_of(mask).to(int1))
    data = held.data if not held.lanes else held.data[current().active()]
    if not data.all():
        raise AssertionError(f"device assertion failed in program {current().place}: {plain(msg)}")


def globaltimer() -> tensor:
    """The simulated time in nanoseconds, as int64."""
    from torchemu.frontends.triton import _threads

    return _threads.globaltimer()


_METHODS = (
    "abs advance argmax argmin associative_scan atomic_add atomic_and atomic_cas atomic_max atomic_min atomic_or "
    "atomic_xchg atomic_xor broadcast_to cdiv ceil cos cumprod cumsum erf exp exp2 expand_dims fdiv flip floor fma "
    "gather histogram log log2 max min permute ravel reduce reduce_or reshape rsqrt sigmoid sin softmax sort split "
    "sqrt sqrt_rn store sum trans view xor_sum umulhi"
)
for _name in _METHODS.split(" "):
    setattr(tensor, _name, globals()[_name])


def __getattr__(name: str) -> Any:
    if name.startswith("__") and name.endswith("__"):
        raise AttributeError(name)
    if name in ("core", "math", "extra", "standard", "random", "semantic"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    return Placeholder(f"triton.language.{name}")
