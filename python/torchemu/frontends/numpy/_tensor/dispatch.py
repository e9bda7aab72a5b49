"""The one place through which every operation on tensors goes.

An operation settles its operands, computes at once with NumPy, and is charged to the rank's current stream. What comes
to all operations alike comes here: their simulated cost, and recording them for autograd; and that they are put off
where other ranks are yet to bring about what an operand is to be, see deferral.py. A call is charged and recorded when
it is issued also then.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy._autograd import record
from torchemu.frontends.numpy._autograd.derivative import Derivative
from torchemu.frontends.numpy._device import device
from torchemu.frontends.numpy._shape import Size
from torchemu.frontends.numpy._tensor import deferral, memory_uses
from torchemu.frontends.numpy._tensor.conversion import converted, quietly
from torchemu.frontends.numpy._tensor.core import Tensor, adopted, aliased
from torchemu.frontends.numpy._tensor.kernels import Costing, launch, launching

VECTOR, MATRIX = "vector", "matrix"

Outputs = tuple[Tensor, ...]
Inputs = Sequence[Any]


def no_flops(outputs: Outputs, inputs: Inputs) -> int:
    """Of operations that only move elements."""
    return 0


def flop_per_output(outputs: Outputs, inputs: Inputs) -> int:
    """Of operations on single elements."""
    return math.prod(outputs[0]._shape)


def flop_per_input(outputs: Outputs, inputs: Inputs) -> int:
    """Of reductions."""
    return math.prod(inputs[0]._shape)


def never(*_: Any) -> Any:
    """Returns what an operation computes that does not go through _op."""
    raise AssertionError("this operation has no elements to compute")


class Op:
    """An operation.

    Args:
        name: what messages and gradients know it by: that of the PyTorch function.
        compute: calculates with NumPy: from the operands' arrays (or numbers) and the parameters of the call, an array
            or a tuple of arrays.
        flops: how many floating-point operations a call does, from its outputs and operands.
        unit: which unit of a PE does them: VECTOR or MATRIX.
        traffic: how many bytes a call moves, from its outputs and operands; None: all of theirs.
        derivative: how gradients go through it; see _autograd. With None they do not: a backward pass that
            needs it says so.
    """

    __slots__ = ("compute", "derivative", "flops", "name", "traffic", "unit")

    def __init__(
        self,
        name: str,
        compute: Callable[..., Any],
        flops: Callable[[Outputs, Inputs], int] = flop_per_output,
        unit: str = VECTOR,
        traffic: Callable[[Outputs, Inputs], int] | None = None,
        derivative: Derivative | None = None,
    ) -> None:
        self.derivative = derivative
        self.name, self.compute, self.flops, self.unit, self.traffic = name, compute, flops, unit, traffic

    def __repr__(self) -> str:
        return f"Op({self.name})"


def bytes_of(tensors: Iterable[Any]) -> int:
    """The bytes of the tensors' elements; numbers and the like have none."""
    nbytes = 0
    for t in tensors:
        if isinstance(t, Tensor):
            nbytes += t._array.nbytes if t._array is not None else t.nbytes
    return nbytes


def gathered(outputs: Outputs, inputs: Inputs) -> int:
    """The traffic where the first operand is read only as far as the result needs it."""
    return 2 * bytes_of(outputs) + bytes_of(inputs[1:])


def scattered(outputs: Outputs, inputs: Inputs) -> int:
    """The traffic where the output is written only as far as the first operand reaches."""
    return 2 * bytes_of(inputs[:1]) + bytes_of(inputs[1:])


def cost(op: Op, outputs: Outputs, inputs: Inputs) -> tuple[int, int, str]:
    """Returns what a call takes of its device, as launch has it."""
    nbytes = op.traffic(outputs, inputs) if op.traffic else bytes_of((*outputs, *inputs))
    unit = next(t.dtype.name for t in inputs if isinstance(t, Tensor)) if op.unit == MATRIX else op.unit
    return nbytes, op.flops(outputs, inputs), unit


def _done(op: Op, outputs: Outputs, inputs: Inputs, params: tuple[Any, ...]) -> None:
    """Charges an operation to the device.

    Operations among tensors of the host cost nothing.
    """
    world = outputs[0]._storage.world
    if world.watches:
        memory_uses.touch(op.name, inputs, outputs)
    if outputs[0].device.is_sip:
        context = launching(world)
        told = Costing.told(context)
        launch(context, op.name, *(cost(op, outputs, inputs) if told is None else told(outputs)), outputs)


def _op(op: Op, operands: Inputs, *params: Any, kind: dtypes.dtype | None = None) -> Tensor:
    """Runs an operation and returns its result as a new tensor.

    Args:
        op: what to do.
        operands: tensors, at least one, and numbers.
        params: further arguments of op.compute.
        kind: the dtype of the result; None is that of the first tensor.
    """
    first, arrays, tracked = read(operands)
    if arrays is None:
        return called_later(op, operands, params, lambda *args: (quietly(op.compute, *args),), [kind or first.dtype])[0]
    computed = quietly(op.compute, *arrays, *params)
    for array in arrays:
        if array is computed:
            computed = computed.copy()
    result = wrapped(computed, kind or first.dtype, first)
    _done(op, (result,), operands, params)
    if tracked:
        record.record(op, (result,), operands, params)
    return result


def _op_several(op: Op, operands: Inputs, *params: Any, kinds: Sequence[dtypes.dtype | None]) -> tuple[Tensor, ...]:
    """Like _op, for an operation that computes a tuple of new arrays, of these dtypes (None: as computed)."""
    first, arrays, tracked = read(operands)
    if arrays is None:
        return called_later(op, operands, params, functools.partial(quietly, op.compute), kinds)
    computed = quietly(op.compute, *arrays, *params)
    results = tuple([wrapped(array, kind, first) for array, kind in zip(computed, kinds, strict=True)])
    _done(op, results, operands, params)
    if tracked:
        record.record(op, results, operands, params)
    return results


def _op_view(
    op: Op,
    base: Tensor,
    shape: Sequence[int],
    strides: Sequence[int],
    offset: int,
    *params: Any,
    kind: dtypes.dtype | None = None,
) -> Tensor:
    """A view of base: another shape and strides on the same storage. It looks at no element and costs nothing."""
    view = aliased(base, shape, strides, offset, kind)
    root = base._base
    view._base = base if root is None else root
    if base._storage.tracked:
        record.record_view(op, view, base, params)
    return view


def _op_in_place(op: Op, target: Tensor, operands: Inputs, *params: Any) -> None:
    """Runs an operation that writes into the array of an existing tensor, which comes before those of its operands."""
    _, arrays, tracked = read(operands) if operands else (None, [], False)
    if arrays is None or (target._storage.unsettled and not target._settles(writes=True)):
        _written_later(op, target, operands, *params)
        return
    check_writable(target)
    call = None
    if tracked or target._storage.tracked:
        call = record.before_write(op, target, (target, *operands), params)
        arrays = read(operands)[1]  # that may have been an operation
    quietly(op.compute, target._write(), *arrays, *params)
    _done(op, (target,), operands, params)
    written(target, call)


def called_later(
    op: Op,
    operands: Inputs,
    params: tuple[Any, ...],
    compute: Callable[..., tuple[Any, ...]],
    kinds: Sequence[dtypes.dtype | None],
) -> tuple[Tensor, ...]:
    """The results of a call, as _op_several's, which compute(*operands, *params) makes when these are known."""
    given, later = deferral.known_later(operands), deferral.drawn_again(params)
    call = op, *kinds, deferral.alike((tuple(operands), params))
    layouts = deferral.current().layouts(call)
    if layouts is not None:
        results = _blank(layouts, _first(operands))
    else:
        arrays = deferral.stand_ins(given)
        made = [array.copy() if any(array is x for x in arrays) else array for array in compute(*arrays, *params)]
        results = tuple([wrapped(array, kind, _first(operands)) for array, kind in zip(made, kinds, strict=True)])
        if all(t._strides is None for t in results):
            deferral.current().learn(call, tuple([(t._shape, t.dtype) for t in results]))
    into = [deferral.elements(t) for t in results]

    def fill() -> None:
        for array, elements in zip(into, compute(*deferral.found(given), *later), strict=True):
            quietly(_store, array, np.asarray(elements))

    deferral.put_off(op.name, fill, given, results)
    _done(op, results, operands, params)
    if any(t._storage.tracked for t in operands if isinstance(t, Tensor)):
        record.record(op, results, operands, params)
    return results


def _blank(layouts: deferral.Layouts, like: Tensor) -> tuple[Tensor, ...]:
    """Tensors to put results into, where another one is."""
    world = like._storage.world
    return tuple([adopted(world, np.zeros(shape, kind.numpy), kind, like.device) for shape, kind in layouts])


def written_later(
    op: Op, targets: Outputs, operands: Inputs, write: Callable[..., Any], params: tuple[Any, ...] = ()
) -> None:
    """Lets a call write into tensors when these and its operands are known: ``write(*targets, *operands, *params)``, of
    arrays and numbers. Recording it is left to the caller."""
    given, into = deferral.known_later(operands), [*map(deferral.alias, targets)]
    call = op, len(targets), deferral.alike((targets, tuple(operands), params))
    if deferral.current().layouts(call) is None:
        write(*map(deferral.stand_in, targets), *deferral.stand_ins(given), *params)
        deferral.current().learn(call, ())

    def fill() -> None:
        write(*[deferral.elements(t, writable=True) for t in into], *deferral.found(given), *params)

    deferral.put_off(op.name, fill, given, into)
    _done(op, targets, operands, params)


def _written_later(op: Op, target: Tensor, operands: Inputs, *params: Any) -> None:
    """_op_in_place of elements that are not known."""
    check_writable(target)
    call = None
    if target._storage.tracked or any(t._storage.tracked for t in operands if isinstance(t, Tensor)):
        call = record.before_write(op, target, (target, *operands), params)
    if operands:
        written_later(op, (target,), operands, functools.partial(quietly, op.compute), params)
    else:  # what is written depends on nothing
        array = deferral.stand_in(target)
        quietly(op.compute, array, *params)
        written_later(op, (target,), (), lambda into: np.copyto(into, array))
    written(target, call)


def written(target: Tensor, call: Any) -> None:
    """Ends a write into a tensor; call is what record.before_write said, if it was asked."""
    storage = target._storage
    if call is not None or storage.tracked:
        record.after_write(target, call)
    else:
        storage.version += 1


def stored(op: Op, result: Tensor, out: Tensor | None) -> Tensor:
    """The result of a call, or out with that in it, where it was called with out.

    Raises:
        RuntimeError: gradients are wanted of the result, or of out.
    """
    if out is None:
        return result
    record.refuse_out(op, (result, out))
    return out.copy_(result)


def read(operands: Inputs) -> tuple[Tensor, Any, bool]:
    """The first tensor; the arrays of the operands, numbers being themselves; and whether one may require a gradient.

    All are settled first: other ranks may run meanwhile, and an array that is looked at may move by what they do. There
    are no arrays, but None, where the elements of one are not known, and the call is to be put off.
    """
    first: Any = None
    tracked = False
    for t in operands:
        if isinstance(t, Tensor):
            if first is None:
                first = t
            elif t.device is not first.device:
                first = _of_one_device(first, t)
            storage = t._storage
            if storage.unsettled and not t._settles():
                return _first(operands), None, False
            if storage.tracked:
                tracked = True
    arrays = [
        (t._array if t._array is not None else t._read())
        if isinstance(t, Tensor)
        else (t.item() if isinstance(t, np.generic) else t)
        for t in operands
    ]
    return first, arrays, tracked


def _first(operands: Inputs) -> Tensor:
    """The tensor on whose device the result is to be."""
    first, *others = (t for t in operands if isinstance(t, Tensor))
    for t in others:
        if t.device is not first.device:
            first = _of_one_device(first, t)
    return first


def _of_one_device(a: Tensor, b: Tensor) -> Tensor:
    """The one that is on the device where both can be used: the host's memory is everybody's."""
    if a.device == b.device:
        return a
    if a.device.is_host or b.device.is_host:
        return b if a.device.is_host else a
    raise RuntimeError(
        f"Expected all tensors to be on the same device, but found at least two devices, {a.device} and {b.device}!"
    )


def wrapped(computed: Any, kind: dtypes.dtype | None, like: Tensor, where: device | None = None) -> Tensor:
    """A new tensor of computed elements; kind None: of the dtype that they have."""
    array = computed if type(computed) is np.ndarray else np.asarray(computed)
    kind = kind or dtypes.of_numpy(array)
    if array.dtype is not kind.numpy and array.dtype != kind.numpy:
        array = quietly(converted, array, kind.numpy)
    if not array.flags.owndata:  # perhaps part of an operand
        array = array.copy()
    return adopted(like._storage.world, array, kind, where or like.device)


def store(array: np.ndarray, computed: Any, op: Op) -> None:
    """Writes computed elements into an existing tensor's.

    Raises:
        RuntimeError: the shape or the category of the dtype is another.
    """
    shape = np.shape(computed)
    if shape != array.shape:
        raise RuntimeError(
            f"{op.name}: output with shape {list(array.shape)} doesn't match the broadcast shape {list(shape)}"
        )
    quietly(_store, array, np.asarray(computed))


def _store(array: np.ndarray, computed: np.ndarray) -> None:
    np.copyto(array, converted(computed, array.dtype))


def broadcasting(function: Callable[..., Any], *args: Any) -> Any:
    """function(*args) with PyTorch's words for arrays of shapes that do not broadcast.

    Raises:
        RuntimeError: they do not.
    """
    try:
        return quietly(function, *args)
    except ValueError as error:
        raise _unbroadcastable([np.shape(a) for a in args if isinstance(a, np.ndarray)]) or error from None


def _unbroadcastable(shapes: list[tuple[int, ...]]) -> RuntimeError | None:
    """Names the first two sizes that do not fit."""
    for i, b in enumerate(shapes):
        for a in shapes[:i]:
            for axis in range(-1, -1 - min(len(a), len(b)), -1):
                if a[axis] != b[axis] and 1 not in (a[axis], b[axis]):
                    return RuntimeError(
                        f"The size of tensor a ({a[axis]}) must match the size of tensor b ({b[axis]}) "
                        f"at non-singleton dimension {max(len(a), len(b)) + axis}"
                    )
    return None


def check_writable(target: Tensor) -> None:
    """Raises:
    RuntimeError: several elements are in one place, as in what expand() returns.
    """
    steps = target._strides
    if steps is not None and 0 in steps and any(s == 0 and n > 1 for s, n in zip(steps, target._shape, strict=True)):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            f"Please clone() the tensor, of shape {Size(target._shape)!r}, before performing the operation."
        )


def not_implemented(op: str, kind: dtypes.dtype) -> NotImplementedError:
    """Returns what PyTorch raises for an operation that a dtype has not."""
    return NotImplementedError(f'"{op}" not implemented for {kind.title!r}')
