"""Functions of other languages that kernels call by their symbols: NVSHMEM's, which PyTorch and others have so."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from torchemu.frontends.triton import _shmem
from torchemu.frontends.triton import _types as t
from torchemu.frontends.triton._conversions import cast
from torchemu.frontends.triton._program import current
from torchemu.frontends.triton._shmem import BLOCK, THREAD
from torchemu.frontends.triton._values import plain, tensor, value_of

_SET, _ADD = 9, 10
"""Operations on signals. Seen on H100s: all numbers but 9 add, also 0, which PyTorch's documentation says sets."""

_WORDS = 4, 8
"""Bytes of words that ranks wait for."""

_TYPES = {
    "int8": t.int8, "int16": t.int16, "int32": t.int32, "int64": t.int64, "uint8": t.uint8, "uint16": t.uint16,
    "uint32": t.uint32, "uint64": t.uint64, "half": t.float16, "bfloat16": t.bfloat16, "float": t.float32,
    "double": t.float64,
}  # fmt: skip
_REDUCTIONS = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}


def call(symbols: Mapping[Any, tuple[str, t.dtype]], args: Sequence[Any]) -> Any:
    """Calls the function of a symbol.

    Args:
        symbols: by the types of arguments: the symbol, and the type of the result.

    Raises:
        NotImplementedError: there is no such function here.
        RuntimeError: the kernel was launched without a library.
        TypeError: the arguments are not so many.
    """
    kinds, (symbol, result) = next(iter(symbols.items()))
    found = _function(symbol)
    if found is None:
        raise NotImplementedError(
            f"{symbol} is not emulated: of functions that kernels call by their symbols torchemu has NVSHMEM's, as "
            "far as docs/triton.md lists them"
        )
    if not current().launch.has_libraries:
        raise RuntimeError(
            f"Unresolved extern function {symbol!r}: kernel {current().launch.kernel.name!r} is launched without a "
            "library that has it: decorate the kernel with requires_nvshmem, above triton.jit"
        )
    if len(args) != len(kinds):
        raise TypeError(f"{symbol} takes {len(kinds)} arguments, not {len(args)}")
    given = [
        plain(a) if kind.name == "int64" and _is_pointer(a) else cast(a, kind)
        for a, kind in zip(args, kinds, strict=True)
    ]
    value = found(*given)
    return value_of(0).to(result) if value is None else cast(value, result)


def _is_pointer(value: Any) -> bool:
    value = plain(value)
    return isinstance(value, tensor) and value.dtype.is_ptr()


@functools.cache
def _function(symbol: str) -> Callable[..., Any] | None:
    name = symbol.removeprefix("nvshmemx_").removeprefix("nvshmem_")
    if name == symbol:
        return None
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    kind, _, operation = name.removesuffix("_reduce").partition("_")
    if name.endswith("_reduce") and kind in _TYPES and operation in _REDUCTIONS:
        return functools.partial(_reduce, _TYPES[kind], _REDUCTIONS[operation])
    return None


def _place(address: Any, kind: t.dtype = t.int8) -> tensor:
    return cast(address, t.pointer_type(kind))


def _operation(code: Any) -> int:
    return _SET if _shmem.whole(code) == _SET else _ADD


def _putmem(later: bool, group: str) -> Callable[..., None]:
    def put(dest: Any, source: Any, nbytes: Any, pe: Any) -> None:
        to, of = _place(dest), _place(source)
        if group == BLOCK and _is_word(to, of, nbytes):
            _shmem.put_word(group, to, of, _shmem.whole(nbytes), pe)
        else:
            _shmem.put("putmem", group, later, to, of, nbytes, pe)

    return put


def _is_word(to: tensor, of: tensor, nbytes: Any) -> bool:
    """Says whether a put is of a word, which is written at once: peers may wait for it, as for a signal."""
    n = _shmem.whole(nbytes)
    return n in _WORDS and not (to.lanes or of.lanes) and int(to.data) % n == 0 and int(of.data) % n == 0


def _getmem(later: bool, group: str) -> Callable[..., None]:
    def get(dest: Any, source: Any, nbytes: Any, pe: Any) -> None:
        _shmem.get("getmem", group, later, _place(dest), _place(source), nbytes, pe)

    return get


def _putmem_signal(later: bool, group: str) -> Callable[..., None]:
    def put(dest: Any, source: Any, nbytes: Any, word: Any, value: Any, op: Any, pe: Any) -> None:
        signal = _place(word, t.uint64), value, _operation(op)
        _shmem.put("putmem_signal", group, later, _place(dest), _place(source), nbytes, pe, signal)

    return put


def _signal_op(word: Any, value: Any, op: Any, pe: Any) -> None:
    _shmem.signal_op(_place(word, t.uint64), value, _operation(op), pe)


def _signal_wait_until(word: Any, comparison: Any, value: Any) -> tensor:
    return _shmem.wait_until(_place(word, t.uint64), comparison, value)


def _int_wait_until(word: Any, comparison: Any, value: Any) -> None:
    _shmem.wait_until(_place(word, t.int32), comparison, value, 4)


def _my_pe() -> tensor:
    return value_of(current().launch.index)


def _n_pes() -> tensor:
    return value_of(len(current().launch.ranks))


def _alltoallmem(team: Any, dest: Any, source: Any, nbytes: Any) -> None:
    _shmem.exchange(team, _place(dest), _place(source), _shmem.whole(nbytes))


def _broadcastmem(team: Any, dest: Any, source: Any, nbytes: Any, root: Any) -> None:
    _shmem.collect(BLOCK, team, _place(dest), _place(source), _shmem.whole(nbytes), _shmem.whole(root))


def _fcollectmem(team: Any, dest: Any, source: Any, nbytes: Any) -> None:
    _shmem.collect(BLOCK, team, _place(dest), _place(source), _shmem.whole(nbytes), None)


def _reduce(kind: t.dtype, combine: Callable[[Any, Any], Any], team: Any, dest: Any, source: Any, n: Any) -> None:
    _shmem.reduce(team, _place(dest, kind), _place(source, kind), _shmem.whole(n), combine)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "my_pe": _my_pe,
    "n_pes": _n_pes,
    "fence": lambda: _shmem.order("fence"),
    "quiet": lambda: _shmem.order("quiet"),
    "signal_op": _signal_op,
    "signal_wait_until": _signal_wait_until,
    "int_wait_until": _int_wait_until,
    "alltoallmem_block": _alltoallmem,
    "broadcastmem_block": _broadcastmem,
    "fcollectmem_block": _fcollectmem,
}
for _suffix, _group in (("", THREAD), ("_warp", _shmem.WARP), ("_block", BLOCK)):
    for _later, _nbi in ((False, ""), (True, "_nbi")):
        _FUNCTIONS[f"putmem{_nbi}{_suffix}"] = _putmem(_later, _group)
        _FUNCTIONS[f"getmem{_nbi}{_suffix}"] = _getmem(_later, _group)
        _FUNCTIONS[f"putmem_signal{_nbi}{_suffix}"] = _putmem_signal(_later, _group)
    for _name, _quiet in (("barrier", True), ("sync", False)):
        _FUNCTIONS[f"{_name}_all{_suffix}"] = functools.partial(_shmem.barrier, _group, _shmem.WORLD, _quiet)
