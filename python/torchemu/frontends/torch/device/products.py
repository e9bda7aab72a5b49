"""Costs of matrix products and other operations of the matrix units: operations, and bytes that they move."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import torch

from torchemu.frontends.torch.device import attention_costs, convolution_costs
from torchemu.frontends.torch.device.flop_formulas import flop_registry
from torchemu.frontends.torch.device.ground import context, go

aten = torch.ops.aten

Formula = Callable[..., int]

UNITS = {
    torch.float32: "float32", torch.bfloat16: "bfloat16", torch.float16: "float16", torch.float64: "float64",
    torch.float8_e4m3fn: "float8_e4m3fn", torch.float8_e5m2: "float8_e5m2", torch.complex64: "float32",
    torch.complex128: "float64",
}  # fmt: skip
"""The units that multiply elements of a dtype, as the core names them; those of others are the vector units'."""


def _linear(x: Sequence[int], weight: Sequence[int], *_: Any, **__: Any) -> int:
    return 2 * math.prod(x) * math.prod(weight[:-1])


def _by_vector(matrix: Sequence[int], *_: Any, **__: Any) -> int:
    return 2 * math.prod(matrix)


def _added_by_vector(_: Any, matrix: Sequence[int], *__: Any, **___: Any) -> int:
    return 2 * math.prod(matrix)


def _stack(a: Sequence[int], b: Sequence[int], *_: Any, **__: Any) -> int:
    return 2 * math.prod(a) * b[-1]


def _added_stack(_: Any, a: Sequence[int], b: Sequence[int], *__: Any, **___: Any) -> int:
    return 2 * math.prod(a) * b[-1]


_OWN: dict[Any, Formula] = {
    aten.linear: _linear, aten.mv: _by_vector, aten.addmv: _added_by_vector, aten.addbmm: _added_stack,
    aten.addmm: _added_stack, aten.baddbmm: _added_stack, aten.bmm: _stack, aten.dot: _by_vector, aten.vdot: _by_vector,
}  # fmt: skip
"""Operations, by shapes, that PyTorch's flop counter does not count, or not with a dtype for the result."""


_OF_HOST = attention_costs.OF_HOST


def kernel(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """Returns the name of CUDA's kernel for an operation. It has two attentions for the host's one: for elements of two
    bytes without a mask, and for all else."""
    if not name.startswith(_OF_HOST):
        return name
    is_short = args[0].dtype in (torch.float16, torch.bfloat16) and kwargs.get("attn_mask") is None
    return f"_scaled_dot_product_{'flash' if is_short else 'efficient'}_attention{name.removeprefix(_OF_HOST)}"


def _attention(query: Sequence[int], key: Sequence[int], value: Sequence[int], *_: Any, **__: Any) -> int:
    batch_heads, rows, depth = math.prod(query[:-2]), query[-2], query[-1]
    return 2 * batch_heads * rows * key[-2] * (depth + value[-1])


def _attention_backward(_: Any, query: Any, key: Any, value: Any, *__: Any, **___: Any) -> int:
    return 5 * _attention(query, key, value) // 2


for _name, _formula in ((_OF_HOST, _attention), (f"{_OF_HOST}_backward", _attention_backward)):
    if hasattr(aten, _name):
        _OWN[getattr(aten, _name)] = _formula


OF_ELEMENTS: dict[Any, Formula] = {}
"""Formulas of operations whose number depends on elements, from arguments as they are."""


def formula(func: Any) -> Formula | None:
    """Returns the formula of the operations of an overload, from its arguments with shapes for tensors."""
    if func in OF_ELEMENTS:
        return OF_ELEMENTS[func]
    packet = func._overloadpacket
    counted: Formula | None = flop_registry.get(packet)
    if packet in _OWN:
        own = _OWN[packet]
        counted = lambda *args, out_val=None, **kwargs: own(*_shapes(args), **kwargs)  # noqa: E731
    names = [a.name for a in func._schema.arguments]
    if counted is None or "is_causal" not in names:
        return counted
    return _visible(counted, *map(names.index, ("query", "key", "is_causal")))


def _visible(counted: Formula, query: int, key: int, is_causal: int) -> Formula:
    """Counts the operations of an attention that are not hidden by a causal mask: fused kernels skip those that are.

    Args:
        query, key, is_causal: places of arguments.
    """

    def count(*args: Any, **kwargs: Any) -> int:
        flops = counted(*args, **kwargs)
        if len(args) <= is_causal or not args[is_causal]:
            return flops
        rows, columns = args[query].shape[-2], args[key].shape[-2]
        square = min(rows, columns)
        seen = square * (square + 1) // 2 + (rows - square) * columns
        return flops * seen // max(1, rows * columns)

    return count


def _shapes(values: Sequence[Any]) -> list[Any]:
    return [tuple(v.shape) if isinstance(v, torch.Tensor) else v for v in values]


_ROUNDED = "tfloat32"
"""The unit that multiplies float32 where a program lets it round the operands."""


def unit(tensor: torch.Tensor, rounds: bool = False) -> str:
    """Returns what multiplies elements like the tensor's.

    Args:
        rounds: it may round operands of float32.
    """
    found = UNITS.get(tensor.dtype, "vector")
    return _ROUNDED if rounds and found == "float32" else found


def _rounds(name: str) -> bool:
    """Says whether the program lets an operation round operands of float32: convolutions, unless it forbids that, and
    products where it allows it. cuDNN and cuBLAS have a switch each."""
    if "convolution" in name:
        return bool(torch._C._get_cudnn_allow_tf32())
    return "attention" not in name and bool(torch._C._get_cublas_allow_tf32())


_COSTS = 4096
"""Calls of an operation whose costs are known at most."""


Kernel = tuple[str, int, int, str]
"""A kernel's name, the bytes that it moves, its operations, and their unit."""


def charge(op: Any, args: Sequence[Any], kwargs: dict[str, Any], out: Any) -> tuple[Kernel, ...]:
    """Returns the kernels that cost does, once for operands and settings alike."""
    rounds = _rounds(op.name)
    if op.func in OF_ELEMENTS:
        return cost(op, rounds, args, kwargs, out)
    given = [name for name, value in kwargs.items() if value is not None]
    key = context().world.handle, rounds, *map(_said, args), *given
    known = op.costs.get(key)
    if known is None:
        if len(op.costs) == _COSTS:
            op.costs.clear()
        known = op.costs[key] = cost(op, rounds, args, kwargs, out)
    found: tuple[Kernel, ...] = known
    return found


def _said(argument: Any) -> Any:
    """Returns what an argument says of a call's cost."""
    if isinstance(argument, torch.Tensor):
        return _alike(argument)
    if argument.__class__ is list:
        return tuple(map(_said, argument))
    return argument if argument.__class__ in (bool, int) else None


def _alike(operand: torch.Tensor) -> tuple[Any, ...]:
    """Returns what operands have in common that cost alike."""
    is_in_rows = operand.layout is not torch.strided or operand.is_contiguous()
    return operand.shape, operand.dtype, None if is_in_rows else operand.stride()


def cost(op: Any, rounds: bool, args: Sequence[Any], kwargs: dict[str, Any], out: Any) -> tuple[Kernel, ...]:
    """Returns the kernels of a product or of a convolution."""
    name = kernel(op.name, args, kwargs)
    known = convolution_costs.kernels(op.name, rounds, args, out) or attention_costs.kernels(
        op.name, name, args, kwargs
    )
    if known:
        return known
    operands = [a for a in args if isinstance(a, torch.Tensor)]
    results = [t for t in (out if isinstance(out, (list, tuple)) else (out,)) if isinstance(t, torch.Tensor)]
    flops = int(op.flops(*args, **kwargs, out_val=out))
    first = operands[0]
    if first.dtype.is_complex:
        flops *= 4
    tiled = _tiled(op.func, operands)
    if tiled is None:
        return ((name, sum(t.nbytes for t in (*operands, *results)), flops, unit(first, rounds)),)
    nbytes, slower = tiled
    return ((name, nbytes, round(flops * slower), unit(first, rounds)),)


def _tiled(func: Any, operands: list[torch.Tensor]) -> tuple[int, Fraction | int] | None:
    """Returns the bytes of a product that is made tile by tile, and how many times as long it takes as its operations
    at their full rate; None for what is none, and dtypes that the core has not."""
    name = func._overloadpacket._qualified_op_name.partition("::")[2]
    added = name in ("addmm", "baddbmm", "addmv")
    if (name not in ("mm", "bmm", "mv", "linear") and not added) or not operands:
        return None
    a, b = operands[added : 2 + added]
    if a.dtype not in UNITS:
        return None
    kind = UNITS[a.dtype]
    if name == "linear":
        rows, cols, stack = math.prod(a.shape[:-1]), math.prod(b.shape[:-1]), 1
    else:
        rows, cols = a.shape[-2], b.shape[-1] if b.dim() > 1 else 1
        stack = a.shape[0] if a.dim() == 3 else 1
    world, shape = context().world.handle, (rows, cols, a.shape[-1])
    tiles = go.MatMulBytes(world, kind, *shape)
    layout = ("t" if _is_in_columns(a) else "n") + ("t" if _is_in_columns(b) != (name == "linear") else "n")
    extra = operands[0].nbytes if added else sum(t.nbytes for t in operands[2:])
    operations = 2 * stack * rows * cols * a.shape[-1]
    slower = Fraction(go.MatMulOps(world, kind, stack, *shape, layout), operations) if operations else 1
    return stack * int(tiles) + extra, slower


def _is_in_columns(matrix: torch.Tensor) -> bool:
    """Says whether the elements of a column lie one after the other in memory, and not those of a row."""
    return matrix.dim() > 1 and matrix.layout is torch.strided and matrix.stride(-2) == 1 != matrix.stride(-1)
