"""Instructions on tiles: each reads tiles and writes one, on the vector or the matrix pipe.

The elements are calculated with when the instruction is due, by NumPy: element by element in the type of the tiles, and
sums from the first row, column or product on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from torchemu.frontends.pto._elements import RoundMode, converted
from torchemu.frontends.pto._operands import TileOperand

if TYPE_CHECKING:
    from torchemu.frontends.pto._calls import Calls, Words

Function = Callable[..., np.ndarray]


def _summed(values: np.ndarray) -> np.ndarray:
    """The sum of the columns, from the first on."""
    total = values[:, :1].copy()
    for j in range(1, values.shape[1]):
        total += values[:, j : j + 1]
    return total


def _by_columns(function: Function) -> Function:
    return lambda values: function(values.T).T


_BINARY: dict[str, Function] = {
    "TADD": np.add,
    "TSUB": np.subtract,
    "TMUL": np.multiply,
    "TDIV": np.divide,
    "TMAX": np.maximum,
    "TMIN": np.minimum,
    "TAND": np.bitwise_and,
    "TOR": np.bitwise_or,
}
_UNARY: dict[str, Function] = {
    "TMOV": np.array,
    "TNEG": np.negative,
    "TABS": np.abs,
    "TEXP": np.exp,
    "TLOG": np.log,
    "TSQRT": np.sqrt,
    "TRSQRT": lambda x: 1 / np.sqrt(x),
    "TRECIP": lambda x: 1 / x,
    "TRELU": lambda x: np.maximum(x, x.dtype.type(0)),
}
_ROWS: dict[str, Function] = {
    "TROWSUM": _summed,
    "TROWMAX": lambda x: x.max(1, keepdims=True),
    "TROWMIN": lambda x: x.min(1, keepdims=True),
}
_COLUMNS = {name.replace("ROW", "COL"): _by_columns(function) for name, function in _ROWS.items()}
_EXPANDED = {f"TROWEXPAND{name[1:]}": _BINARY[name] for name in ("TADD", "TSUB", "TMUL", "TDIV")}
_SCALAR = {f"{name}S": _BINARY[name] for name in ("TADD", "TSUB", "TMUL", "TDIV", "TMAX", "TMIN")}

Instruction = Callable[["Calls", "Words", str], None]


def issue(name: str, words: Words, calls: Calls) -> None:
    """Issues an instruction.

    Raises:
        ValueError: its operands do not fit together. RuntimeError: a tile has no place.
    """
    OPERATIONS[name](calls, words, name)


def _compute(
    calls: Calls,
    name: str,
    to: TileOperand,
    sources: list[TileOperand],
    function: Function,
    unit: str = "",
    ops: int = 0,
) -> None:
    """Issues an instruction that makes a tile of others."""
    if not to.count:
        return
    out = to.array(calls.scratch)
    arrays = [t.array(calls.scratch) for t in sources]

    def run() -> None:
        with np.errstate(all="ignore"):
            out[...] = function(*arrays)

    calls.compute(name, unit, ops, to, sources, run)


def _same(tiles: list[TileOperand]) -> None:
    first = tiles[0]
    for t in tiles[1:]:
        if (t.rows, t.columns, t.dtype) != (first.rows, first.columns, first.dtype):
            raise ValueError(f"tiles of {first} {first.dtype.name} and {t} {t.dtype.name}: want the same")


def _shape(tile: TileOperand, rows: int, columns: int) -> None:
    if (tile.rows, tile.columns) != (rows, columns):
        raise ValueError(f"a tile of {tile} elements where {rows}x{columns} are wanted")


def _elementwise(calls: Calls, words: Words, name: str) -> None:
    tiles = [calls.tile(words) for _ in range(3 if name in _BINARY else 2)]
    _same(tiles)
    _compute(calls, name, tiles[0], tiles[1:], {**_BINARY, **_UNARY}[name])


def _with_number(calls: Calls, words: Words, name: str) -> None:
    tiles = [calls.tile(words), calls.tile(words)]
    _same(tiles)
    number = np.array(words.real()).astype(tiles[0].dtype.numpy)
    _compute(calls, name, tiles[0], tiles[1:], lambda x: _SCALAR[name](x, number))


def _reduce(calls: Calls, words: Words, name: str) -> None:
    to, source = calls.tile(words), calls.tile(words)
    along_rows = name in _ROWS
    _shape(to, *((source.rows, 1) if along_rows else (1, source.columns)))
    if not source.count:
        raise ValueError(f"a reduction of {source} elements")
    _compute(calls, name, to, [source], (_ROWS if along_rows else _COLUMNS)[name])


def _expand(calls: Calls, words: Words, name: str) -> None:
    """One column, or one row, of the second tile for all of the first."""
    to, source = calls.tile(words), calls.tile(words)
    if name == "TROWEXPAND":
        _compute(calls, name, to, [source], lambda x: x[:, :1])
    else:
        _compute(calls, name, to, [source], lambda x: x[:1, :])


def _expanded(calls: Calls, words: Words, name: str) -> None:
    to, a, b = (calls.tile(words) for _ in range(3))
    _same([to, a])
    if b.rows * b.columns != a.rows and b.rows != a.rows:
        raise ValueError(f"a tile of {b} elements for the rows of one of {a}")
    one_each = b.count == a.rows
    _compute(calls, name, to, [a, b], lambda x, y: _EXPANDED[name](x, y.reshape(-1, 1) if one_each else y[:, :1]))


def _transpose(calls: Calls, words: Words, name: str) -> None:
    to, source = calls.tile(words), calls.tile(words)
    _shape(to, source.columns, source.rows)
    _compute(calls, name, to, [source], lambda x: x.T)


def _fill(calls: Calls, words: Words, name: str) -> None:
    to = calls.tile(words)
    number = np.array(words.real()).astype(to.dtype.numpy)
    _compute(calls, name, to, [], lambda: number)


def _convert(calls: Calls, words: Words, name: str) -> None:
    to, source = calls.tile(words), calls.tile(words)
    _shape(to, source.rows, source.columns)
    mode, kind = RoundMode(words.integer()), to.dtype.numpy
    _compute(calls, name, to, [source], lambda x: converted(x, kind, mode))


def _multiply(calls: Calls, words: Words, name: str) -> None:
    accumulates = name == "TMATMUL_ACC"
    to = calls.tile(words)
    before = [calls.tile(words)] if accumulates else []
    a, b = calls.tile(words), calls.tile(words)
    if (a.columns, to.rows, to.columns) != (b.rows, a.rows, b.columns) or a.dtype is not b.dtype:
        raise ValueError(f"{to} {to.dtype.name} = {a} {a.dtype.name} · {b} {b.dtype.name} does not fit")
    _same([to, *before])
    ops = 2 * a.rows * a.columns * b.columns
    _compute(calls, name, to, [*before, a, b], _product(to.dtype.numpy, accumulates), a.dtype.name, ops)


def _product(kind: np.dtype, accumulates: bool) -> Function:
    """The product of matrices in a type, summed from the first column on."""

    def product(*arrays: Any) -> np.ndarray:
        a, b = (x.astype(kind) for x in arrays[-2:])
        total = arrays[0].copy() if accumulates else np.zeros((a.shape[0], b.shape[1]), kind)
        for k in range(a.shape[1]):
            total += a[:, k : k + 1] * b[k : k + 1, :]
        return total

    return product


OPERATIONS: dict[str, Instruction] = {
    **dict.fromkeys((*_BINARY, *_UNARY), _elementwise),
    **dict.fromkeys(_SCALAR, _with_number),
    **dict.fromkeys((*_ROWS, *_COLUMNS), _reduce),
    **dict.fromkeys(("TROWEXPAND", "TCOLEXPAND"), _expand),
    **dict.fromkeys(_EXPANDED, _expanded),
    "TTRANS": _transpose,
    "TEXPANDS": _fill,
    "TCVT": _convert,
    "TMATMUL": _multiply,
    "TMATMUL_ACC": _multiply,
}
"""The instructions on tiles, by name."""
