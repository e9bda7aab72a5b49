"""The operations that PyTorch hands down, by what they do to devices: a table that fills itself from their schemas."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import torch
from torch._library import custom_ops

from torchemu.frontends.torch.device import (
    convolutions,
    float_only,
    mixed_products,
    mixing,
    norms,
    places,
    products,
    traffic,
    waits,
)
from torchemu.frontends.torch.device.places import HOST, STATED_HOST, Place

aten = torch.ops.aten

_READS = {
    "_local_scalar_dense", "equal", "is_nonzero", "nonzero", "nonzero_numpy", "masked_select", "_unique", "_unique2",
    "unique_dim", "unique_consecutive", "unique_dim_consecutive", "bincount", "allclose", "repeat_interleave",
}  # fmt: skip
"""Operations of which the host needs the result, or its size."""

_RESIZES = ("resize_", "resize_as_", "_resize_output_")
"""Operations that may give a tensor other memory."""

_NO_WORK = {
    "empty", "empty_strided", "empty_like", "new_empty", "new_empty_strided", "_unsafe_view", "unsafe_split",
    "unsafe_split_with_sizes", "unsafe_chunk", "set_", *_RESIZES,
    "_local_scalar_dense", "lift", "lift_fresh", "is_same_size", "sym_size", "sym_stride", "sym_numel",
    "sym_storage_offset", "size", "stride", "numel", "is_pinned", "prim_device", "device", "layout", "storage_offset",
    "is_contiguous", "is_strides_like_format", "dim", "requires_grad_", "_has_compatible_shallow_copy_type",
    "_nested_tensor_size", "record_stream", "is_set_to", "_version", "detach_", "t_", "transpose_", "squeeze_",
    "unsqueeze_", "as_strided_", "swapaxes_", "swapdims_", "_reshape_alias", "_make_dual", "_fw_primal",
}  # fmt: skip
"""Operations that touch no element."""

_MOVES = {"_to_copy", "copy_", "_copy_from", "_copy_from_and_resize"}

_TOUCHING = ("kernel", "read", "move")
"""Kinds of operations that read and write elements; those of other kinds are made of such, or look at none."""

_KINDS = {
    **dict.fromkeys(_MOVES, "move"),
    **dict.fromkeys((*_READS, *waits.BY_LOOK), "read"),
    **dict.fromkeys(_RESIZES, "resize"),
    **dict.fromkeys(("is_pinned", "_pin_memory", "pin_memory"), "foreign"),
    "_pack_padded_sequence": "packed",
    "_fused_rms_norm": "kernel",  # CUDA's only; for others it is made of others
}
"""The kinds of operations that their names tell."""

BELOW = {"c10d", "profiler", "aten", "prim", "prims", "inductor", "torchbind"}
"""Namespaces of operations that are not made of others, or whose others are nobody's business."""


def _has_kernel(func: Any, key: str = "CPU") -> bool:
    """Says whether an operation has a kernel of its own for a key. PyTorch dies of a direct call for another one, also
    where it has a kernel for any device."""
    found: bool = torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), key)
    return found


def _is_for_any(func: Any) -> bool:
    """Says whether an operation that is no collective has a kernel for any device, which calls others."""
    space = func.name().partition("::")[0]
    return _has_kernel(func, _ANY) and space not in _OWN and space not in FUNCTIONAL


def _is_for_cuda(func: Any) -> bool:
    """Says whether a program has given an operation a kernel of CUDA, and none for any device. One that was compiled
    would need a GPU."""
    space, _, name = func.name().partition("::")
    return f"{space}/{name}/CUDA" in torch.library._impls and not _has_kernel(func, _ANY) and space not in _OWN


_OWN = {"symm_mem"}  # PyTorch's kernels of CUDA look into peers' memory, which takes no time here; the front end's send
FUNCTIONAL = {"_c10d_functional", "_c10d_functional_autograd", "_dtensor"}
"""Namespaces of collectives that return their results, in tensors that C++ makes where no mode sees it."""
_ANY = "CompositeExplicitAutograd"
_ANY_KEY = torch._C.DispatchKey.CompositeExplicitAutograd
_CPU_KEY = torch._C.DispatchKey.CPU
_CUDA_KEY = torch._C.DispatchKey.CUDA

PLAIN = frozenset({torch.Tensor, torch.nn.Parameter})

_NAMESPACES = ("aten", "prims", "torchvision", "quantized", "mkldnn", "xnnpack")
"""Namespaces whose operations take time. Others are PyTorch's own bookkeeping, and collectives."""


class Operation:
    """One overload of an operation, and what is known of it.

    Attributes:
        func: the overload.
        name: without the namespace.
        in_place: it writes into its first operand and returns that.
        fills: the names of the arguments that it writes its results into.
        changes: the places of the arguments that it writes.
        space: its namespace.
        aliases: results may be operands, or views of such.
        is_made_of_others: it is in no list of PyTorch's own, and has a kernel that calls such.
        is_odd: results may be views of operands, and are not simply the first one.
        random: it draws random numbers.
        writes_by_index: it writes elements by indices, which need not be where these are.
        flops: the formula of what its matrix units do; None where it has none.
        of_floats: its kernel's name, where CUDA has none for integers; "" for others.
        compute: calls the operation, below autograd.
        on_host: does so with the kernels of the host, where CUDA's have other results.
        run: the mode's method for operations of its kind.
        counted: counts what a call takes that has one result.
        costs: the kernels of calls, by the shapes and dtypes of their operands and by their settings.
        works: it is a kernel of its own.
        touches: it reads or writes elements, on the device or for the host.
        waits: "first" or "last", where the host waits before or after it; else "".
        other: the same for some calls, and None where they are all alike; see for_call.
    """

    __slots__ = (
        "aliases", "changes", "compute", "costs", "counted", "fills", "flops", "func", "in_place",
        "is_made_of_others", "is_odd", "kind", "lists", "name", "of_floats", "on_host", "other", "random", "run",
        "seeded", "space", "touches", "waits", "works", "writes_by_index",
    )  # fmt: skip

    def __init__(self, func: Any, kind: str) -> None:
        self.func, self.kind = func, kind
        self.changes = tuple(i for i, a in enumerate(func._schema.arguments) if a.alias_info and a.alias_info.is_write)
        self.fills = tuple(a.name for a in func._schema.arguments if a.is_out)
        self.costs: dict[Any, tuple[products.Kernel, ...]] = {}
        schema = func._schema
        self.name = schema.name.partition("::")[2]
        self.writes_by_index = self.name in mixing.WRITES_BY_INDEX or func in mixing.FILLS
        self.other: Operation | None = None
        self.counted = traffic.counter(self.name)
        self.waits = waits.when(self.name) if kind == "read" else ""
        self.run: Callable[..., Any] = RUN[self._way()]
        self.lists = any("List" in str(a.type) and "Tensor" in str(a.type) for a in schema.arguments)
        first = schema.returns[0].alias_info if schema.returns else None
        self.in_place = (first is not None and first.is_write) or (not schema.returns and self.name.endswith("_"))
        self.space = schema.name.partition("::")[0]
        self.aliases = any(r.alias_info is not None for r in schema.returns)
        self.is_made_of_others = self.space not in BELOW and (
            self.definition() is not None or _has_kernel(func) or _is_for_cuda(func) or _is_for_any(func)
        )
        self.is_odd = self.aliases and not self.in_place
        self.random = torch.Tag.nondeterministic_seeded in func.tags
        self.seeded = seeded(func) if self.random else None
        self.flops = products.formula(func)
        self.of_floats = float_only.kernel(self.name)
        self.works = self.name not in _NO_WORK
        self.touches = kind in _TOUCHING and (self.works or kind == "read")
        self.on_host: Callable[..., Any] = FAST.get(func, func._op)
        self.compute: Callable[..., Any] = AS_CUDA.get(func, self.on_host)

    def _way(self) -> str:
        """Returns the name of the mode's method that does the operation."""
        if self.waits:
            return f"waits_{self.waits}"
        if self.kind != "kernel":
            return self.kind
        if self.fills:
            return "filling"
        return "placing" if self.writes_by_index else "kernel"

    def for_call(self, args: Sequence[Any], kwargs: dict[str, Any] | None) -> Operation:
        """Returns the operation as it is for these arguments."""
        if self.other is None or not waits.OTHERWISE[self.name][1](args, kwargs or {}):
            return self
        return self.other

    def definition(self) -> Any:
        """Returns what defines the operation in Python for the running rank; None for others."""
        return custom_ops.OPDEFS.get(self.func._schema.name)

    def parts(self, at: Place | None) -> Callable[..., Any]:
        """Returns what calls the operations that it is made of, for operands at a place."""
        definition = self.definition()
        if definition is not None:
            kernels = definition._backend_fns
            for device in (None if at is None else at.device.type, None, "cpu"):
                if device in kernels:
                    return kernels[device]
        if at is not None and at.device.type == "cuda" and _is_for_cuda(self.func):
            return functools.partial(self.func._op_dk, _CUDA_KEY)
        if not _has_kernel(self.func) and _is_for_any(self.func):
            return functools.partial(self.func._op_dk, _ANY_KEY)
        if definition is None and not _has_kernel(self.func):
            raise NotImplementedError(
                f"Could not run '{self.func.name()}' with arguments from the 'CPU' backend: its only kernel is CUDA's"
            )
        return functools.partial(self.func._op_dk, _CPU_KEY)

    def refuse(self, args: Sequence[Any], kwargs: dict[str, Any]) -> NoReturn:
        """Raises what PyTorch raises for operands on several devices."""
        raise mixing.error(self.func, args, kwargs)

    def survey(self, args: Sequence[Any], kwargs: dict[str, Any], checks: bool = True) -> tuple[Place | None, int]:
        """Returns where the operands are, None for the host, and how many bytes those of a device have.

        Raises:
            RuntimeError: they are on several devices, and the operation does not mix them.
            NotImplementedError: they are integers on a device, and CUDA has no kernel for these.
        """
        at, host, nbytes = None, False, 0
        for a in _flat(args, kwargs) if kwargs or self.lists else args:
            if a.__class__ in PLAIN or isinstance(a, torch.Tensor):
                if a.layout is _STRIDED:
                    where = getattr(a.untyped_storage(), "_place", None)
                    if where is not None:
                        nbytes += a.nbytes
                else:
                    where = places.of(a)
                if where is None:
                    host = host or a.dim() > 0
                elif at is None:
                    at = where
                elif where is not at and where.number != at.number and checks:
                    self.refuse(args, kwargs)
        if host and at is not None and checks and not mixing.check(self.func, args, kwargs):
            at = None
        if self.of_floats and at is not None:
            float_only.check(self.of_floats, args)
        return at, nbytes


_STRIDED = torch.strided


def _flat(args: Sequence[Any], kwargs: dict[str, Any]) -> Iterator[Any]:
    """The operands of a call, also those in lists."""
    for a in (*args, *kwargs.values()):
        if a.__class__ is list or a.__class__ is tuple:
            yield from a
        else:
            yield a


def learned(func: Any) -> Operation:
    """Adds an overload to the table."""
    space, _, name = func._schema.name.partition("::")
    arguments = {a.name for a in func._schema.arguments}
    if space not in _NAMESPACES:
        kind = "foreign"
    elif name in _KINDS and not (_KINDS[name] == "read" and _is_composite(func)):  # its parts say what is read
        kind = _KINDS[name]
    elif name in _NO_WORK and "device" not in arguments:
        kind = "view"
    elif _is_composite(func):
        kind = "composite"  # before views: what may return its operand, such as contiguous, may copy it, too
    elif "device" in arguments:
        kind = "factory"
    elif func.is_view:
        kind = "view"
    else:
        kind = "kernel"
    operation = KNOWN[func] = Operation(func, kind)
    if name in waits.OTHERWISE and kind in ("kernel", "read"):
        operation.other = Operation(func, waits.OTHERWISE[name][0])
    return operation


def of(func: Any, args: Sequence[Any], kwargs: dict[str, Any] | None) -> Operation:
    """Returns the operation that a call is."""
    return (KNOWN.get(func) or learned(func)).for_call(args, kwargs)


def _is_composite(func: Any) -> bool:
    """Says whether PyTorch takes an operation apart: it has that definition, and no kernel of its own for a device."""
    name, has = func.name(), torch._C._dispatch_has_kernel_for_dispatch_key
    return has(name, "CompositeImplicitAutograd") and not has(name, "CPU")


RUN: dict[str, Callable[..., Any]] = {}
"""Methods of the mode for operations, by their kinds."""

KNOWN: dict[Any, Operation] = {}
"""The operations by their overloads."""


def seeded(func: Any) -> Any:
    """Returns the overload that takes a generator in place of one that does not; None where there is none."""
    if any(a.name == "generator" for a in func._schema.arguments):
        return func
    plain = func._overloadname
    packet = func._overloadpacket
    for other in ("generator",) if plain == "default" else (f"{plain}_generator", f"generator_{plain}"):
        if other in packet.overloads():
            return getattr(packet, other)
    return None


def _fast() -> dict[Any, Callable[..., Any]]:
    """The frequent operations by functions of the same arguments that are called in half the time."""
    functions = torch._C._VariableFunctions
    found: dict[Any, Callable[..., Any]] = {}
    for name, overload in (
        ("add", "Tensor"), ("sub", "Tensor"), ("mul", "Tensor"), ("div", "Tensor"), ("mm", "default"),
        ("addmm", "default"), ("bmm", "default"), ("relu", "default"), ("t", "default"), ("detach", "default"),
        ("transpose", "int"), ("threshold_backward", "default"), ("neg", "default"), ("exp", "default"),
        ("tanh", "default"), ("sigmoid", "default"), ("rsqrt", "default"), ("unsqueeze", "default"),
        ("select", "int"), ("permute", "default"),
    ):  # fmt: skip
        function = getattr(functions, name, None)
        if function is not None:
            found[getattr(getattr(aten, name), overload)] = function
    base = torch._C.TensorBase
    for name, overload in (("add_", "Tensor"), ("mul_", "Tensor"), ("sub_", "Tensor"), ("div_", "Tensor")):
        found[getattr(getattr(aten, name), overload)] = getattr(base, name)
    return found


FAST = _fast()

AS_CUDA = {**norms.KERNELS, **mixed_products.KERNELS, **convolutions.KERNELS}
"""Functions that compute on devices as CUDA's kernels do, where the host's do otherwise or are missing."""


def result_place(
    kwargs: dict[str, Any], at: Place | None, has_operands: bool, last: Place | None = None
) -> tuple[Place | None, Any]:
    """Returns where a new tensor is to be, by a call's device, where its operands are and where the thread's last
    operation was, and the device to ask for."""
    device = kwargs.get("device")
    if device is None:
        return at, None
    if device.type in places.ACCELERATORS:
        return places.found(device), HOST
    if device == STATED_HOST:
        return None, HOST
    if device.type == "cpu":
        by_code = "pin_memory" not in kwargs  # which calls from Python have
        return (at if has_operands else places.default_for_code(last, by_code)), HOST
    return None, device
