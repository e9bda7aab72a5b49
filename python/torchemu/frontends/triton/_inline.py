"""tl.inline_asm_elementwise: PTX that a kernel has in its text, done element by element.

An element of a block is the thread's of its number, and each thread has a scalar. Loads, stores and atomic operations
are those of the language, with PTX's semantics and scopes; a loop that looks at a word waits until the word changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from torchemu.frontends.triton import _access, _ptx, _ptx_arithmetic, _threads
from torchemu.frontends.triton import _types as t
from torchemu.frontends.triton._control import Loop
from torchemu.frontends.triton._memory import changed_words
from torchemu.frontends.triton._program import Block, current
from torchemu.frontends.triton._ptx import Code, Instruction
from torchemu.frontends.triton._values import made, plain, tensor, value_of

_WIDTHS = {"h": 2, "r": 4, "f": 4, "l": 8, "d": 8, "c": 1, "b": 1}
"""Bytes of a register, by the letter of a constraint."""

_MEMORY = {"ld", "st", "atom", "red"}
_ORDERING = {"fence", "membar", "bar", "barrier"}
_NOTHING = {"nanosleep", "prefetch", "discard", "griddepcontrol", "pragma"}
_OWN = ("%tid", "%laneid", "%warpid")
"""Registers that are others in each thread."""


def inline_asm_elementwise(
    asm: Any, constraints: Any, args: Sequence[Any], dtype: Any, is_pure: Any = True, pack: Any = 1, **_: Any
) -> Any:
    """Does instructions of PTX for each element of some blocks, or for each thread, and returns what they make.

    Args:
        asm: the instructions; $0 and so on are the results' registers, and then the arguments'.
        constraints: of these registers, such as "=r,r,l".
        args: scalars, or blocks of one shape.
        dtype: the type of the result, or a tuple of several.
        is_pure: means nothing here.
        pack: how many elements are given to the instructions at a time.

    Raises:
        NotImplementedError: an instruction that is not emulated.
        ValueError: constraints that do not fit; an address in no window.
    """
    code = _ptx.parse(str(plain(asm)))
    kinds = plain(dtype)
    several = isinstance(kinds, tuple | list)
    wanted = [t.scalar_type(plain(kind)) for kind in (kinds if several else [kinds])]
    call = _Call(code, str(plain(constraints)), [value_of(plain(a)) for a in plain(args)], wanted, int(plain(pack)))
    results = call.results()
    return tuple(results) if several else results[0]


class _Call:
    """One call.

    Args:
        code: the instructions.
        constraints: of the registers.
        args, wanted: the arguments, and the results' types.
        pack: elements at a time.
    """

    def __init__(self, code: Code, constraints: str, args: list[tensor], wanted: list[t.dtype], pack: int) -> None:
        self._code, self._args, self._wanted, self._pack = code, args, wanted, pack
        self._program = current()
        letters = [c.strip().lstrip("=&+") for c in constraints.split(",") if c.strip() and "~" not in c]
        self._outs = sum("=" in c for c in constraints.split(","))
        self._letters = [letters[int(c)] if c.isdigit() else c for c in letters]
        blocks = [a for a in args if a.shape]
        self._shape = np.broadcast_shapes(*[a.shape for a in blocks]) if blocks else ()
        own = any(name in one.text for one in code.instructions for name in _OWN)
        changes = bool(code.names & {"atom", "red"})
        self._by_thread = not blocks and (own or changes or any(a.lanes for a in args))

    def results(self) -> list[tensor]:
        """Does the instructions and returns what they have made."""
        n = int(np.prod(self._shape)) if self._shape else self._program.threads if self._by_thread else 1
        registers = self._registers(n)
        alone = bool(self._code.labels or self._code.names & (_MEMORY | _ORDERING))
        chosen = self._chosen(n // self._pack)
        if alone:
            for i in chosen:
                one = {name: bits[i : i + 1].copy() for name, bits in registers.items()}
                _Execution(self._program, self._code, one, i).run()
                for name in self._names(self._outs):
                    registers[name][i : i + 1] = one[name]
        elif chosen:
            _Execution(self._program, self._code, registers, np.arange(n // self._pack)).run()
        return self._made(registers, n)

    def _chosen(self, n: int) -> list[int]:
        """The elements that active threads have, once for each thread that has them."""
        active = self._program.active()
        threads = len(active)
        if self._by_thread:
            return np.flatnonzero(active).tolist()
        if not self._shape:
            return [0] if active.any() else []
        if n >= threads:
            return [i for i in range(n) if active[i % threads]]
        return [i for first in range(0, threads, n) for i in range(n) if first + i < threads and active[first + i]]

    @staticmethod
    def _names(count: int) -> list[str]:
        return [f"${i}" for i in range(count)]

    def _registers(self, n: int) -> dict[str, np.ndarray]:
        """The bits of $0 and so on, as uint64: an array for each register."""
        groups = n // self._pack
        given: list[np.ndarray] = []
        letters = iter(self._letters[self._outs :])
        for arg in self._args:
            given += self._split(arg, n, letters)
        if self._outs + len(given) != len(self._letters) or self._outs < len(self._wanted):
            raise ValueError(
                f"inline assembly has constraints for {self._outs} results and {len(self._letters) - self._outs} "
                f"arguments, and not for {len(self._wanted)} results and {len(given)} registers of arguments"
            )
        outs = [np.zeros(groups, np.uint64) for _ in range(self._outs)]
        return dict(zip(self._names(len(self._letters)), [*outs, *given], strict=True))

    def _split(self, arg: tensor, n: int, letters: Iterator[str]) -> list[np.ndarray]:
        """The registers of an argument: of each, its bits for all groups of elements."""
        data = np.ascontiguousarray(np.broadcast_to(arg.data, self._shape or (n,))).reshape(-1, self._pack)
        raw = data.view(np.uint8).reshape(len(data), -1)
        parts, at = [], 0
        while at < raw.shape[1]:
            width = _WIDTHS.get(next(letters, ""), 8)
            part = raw[:, at : at + width]
            parts.append(_bits(part))
            at += width
        return parts

    def _uses(self, lo: int, hi: int) -> bool:
        """Says whether instructions name results from lo up to hi. Programs give one that none names any type."""
        names = {f"${i}" for i in range(lo, hi)}
        return any(names & set(one.operands) for one in self._code.instructions)

    def _made(self, registers: dict[str, np.ndarray], n: int) -> list[tensor]:
        results, at = [], 0
        for kind in self._wanted:
            nbytes, raw, first = self._pack * kind.itemsize, list[np.ndarray](), at
            while (missing := nbytes - sum(part.shape[1] for part in raw)) > 0:
                if at == self._outs:
                    if self._uses(first, at):
                        raise ValueError(f"inline assembly: a result of {kind} does not fit into its registers")
                    raw.append(np.zeros((n // self._pack, missing), np.uint8))
                    break
                width = min(_WIDTHS.get(self._letters[at], 8), nbytes)
                raw.append(registers[f"${at}"].view(np.uint8).reshape(-1, 8)[:, :width])
                at += 1
            data = np.ascontiguousarray(np.concatenate(raw, 1)).view(kind.numpy).reshape(self._shape or (n,))
            scalar = not self._shape and not self._by_thread
            results.append(made(data[0] if scalar else data, kind, self._by_thread))
        return results


def _bits(raw: np.ndarray) -> np.ndarray:
    """Rows of up to 8 bytes as uint64."""
    wide = np.zeros((len(raw), 8), np.uint8)
    wide[:, : raw.shape[1]] = raw
    return wide.view(np.uint64).reshape(-1)


class _Execution:
    """The instructions for some elements at once, or for one.

    Args:
        registers: their bits, by name.
        element: the numbers of the elements.
    """

    def __init__(self, program: Block, code: Code, registers: dict[str, np.ndarray], element: Any) -> None:
        self._program, self._code, self._registers = program, code, registers
        self._element = np.atleast_1d(element)
        self._loop: Loop | None = None

    def run(self) -> None:
        """Does the instructions."""
        at = 0
        try:
            while at < len(self._code.instructions):
                at = self._step(at, self._code.instructions[at])
        finally:
            if self._loop is not None:
                self._loop.end()

    def _step(self, at: int, one: Instruction) -> int:
        """Does an instruction, and returns the number of the next one."""
        held: np.ndarray | None = None
        if one.guard:
            held = (self._read(one.guard, _ptx.TYPES["pred"]) != 0) ^ one.negated
            if not held.any():
                return at + 1
        if one.name == "bra":
            return self._branch(at, one)
        if one.name == "ret":
            return len(self._code.instructions)
        if one.name in _ptx_arithmetic.NAMES:
            self._calculate(one, held)
        elif one.name in _MEMORY:
            _OPERATIONS[one.name](self, one)
        elif one.name in _ORDERING:
            _order(one)
        elif one.name not in _NOTHING:
            raise NotImplementedError(f"inline assembly: {one.text!r} is not emulated")
        return at + 1

    def _branch(self, at: int, one: Instruction) -> int:
        to = self._code.labels.get(one.operands[0])
        if to is None:
            raise ValueError(f"inline assembly: {one.text!r} goes to a label that is not there")
        if to <= at:
            if self._loop is None:
                looks = next((i.text for i in self._code.instructions[to:at] if i.name in _MEMORY), one.text)
                self._loop = Loop((), f"the loop of {looks!r}", False)
            self._loop.goes(True)
        return to

    def _calculate(self, one: Instruction, held: np.ndarray | None) -> None:
        sources = one.operands[1:]
        if one.name == "cvt":
            kinds = [[_ptx.TYPES[m] for m in one.modifiers if m in _ptx.TYPES][-1]]
        else:
            kinds = _ptx_arithmetic.operand_types(one, len(sources))
        values = [self._read(source, kind) for source, kind in zip(sources, kinds, strict=True)]
        with np.errstate(all="ignore"):
            result = _ptx_arithmetic.calculated(one, values)
        self._write(one.operands[0].split("|")[0], result, held)

    def _read(self, operand: str, kind: np.dtype) -> np.ndarray:
        """A register, or a constant, as elements of a type."""
        n = len(self._element)
        constant = _ptx.number(operand, kind)
        if constant is not None:
            return np.broadcast_to(constant, n)
        bits = self._registers.get(operand)
        if bits is None:
            bits = np.broadcast_to(self._special(operand), n).astype(np.uint64)
        return (
            np.ascontiguousarray(bits).view(np.uint8).reshape(-1, 8)[:, : kind.itemsize].copy().view(kind).reshape(-1)
        )

    def _write(self, register: str, values: np.ndarray, held: np.ndarray | None = None) -> None:
        bits = _bits(np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1))
        if held is not None and not held.all():
            before = self._registers.get(register, np.zeros_like(bits))
            bits = np.where(held, bits, before)
        self._registers[register] = bits

    def _special(self, name: str) -> Any:
        """A register that the device fills."""
        program = self._program
        base, _, axis = name.partition(".")
        number = "xyz".find(axis) if axis else 0
        if base == "%tid":
            return self._element if number == 0 else 0
        values: dict[str, Callable[[], Any]] = {
            "%ntid": lambda: program.threads if number == 0 else 1,
            "%ctaid": lambda: program.place[number],
            "%nctaid": lambda: program.launch.grid.sizes[number],
            "%laneid": lambda: self._element % _threads.WARP,
            "%warpid": lambda: self._element // _threads.WARP,
            "%smid": lambda: _threads.smid().data,
            "%globaltimer": lambda: _threads.globaltimer().data,
            "%globaltimer_lo": lambda: _threads.globaltimer().data & 0xFFFFFFFF,
            "%clock": lambda: _threads.globaltimer().data & 0xFFFFFFFF,
            "%clock64": lambda: _threads.globaltimer().data,
            "WARP_SZ": lambda: _threads.WARP,
        }
        if base not in values:
            raise NotImplementedError(f"inline assembly: the register {name} is not emulated, or has no value yet")
        return values[base]()

    def _address(self, operand: str) -> int:
        """Returns the address that a memory operand, such as [%rd1+8], gives."""
        match = re.fullmatch(r"\[\s*([\w%$.]+)\s*(?:\+\s*(-?\w+))?\s*\]", operand)
        if match is None:
            raise ValueError(f"inline assembly: {operand!r} is no place in memory")
        base = int(self._read(match[1], np.dtype(np.int64))[0])
        return base + (int(match[2], 0) if match[2] else 0)

    # -- memory

    def load(self, one: Instruction) -> None:
        """ld, of one element or several after another."""
        kind, address = one.kind, self._address(one.operands[1])
        look = _access.PLAIN
        if one.has("acquire", "volatile"):
            look = _access.FRESH
        elif one.has("relaxed"):
            look = _access.RELAXED_LOOK
        self._narrow(one, address)
        for i, register in enumerate(_listed(one.operands[0])):
            at = np.array([address + i * kind.itemsize])
            self._write(register, _access.read(self._program, at, kind, _what(one), look, False))

    def store(self, one: Instruction) -> None:
        """st, of one element or several after another."""
        kind, address = one.kind, self._address(one.operands[0])
        values = np.concatenate([self._read(register, kind) for register in _listed(one.operands[1])])
        flat = address + np.arange(len(values)) * kind.itemsize
        if not one.has("release", "relaxed", "volatile"):
            _access.write(self._program, flat, values, _what(one), False)
            return
        self._narrow(one, address)
        if one.has("release"):
            _threads.fence()
        use = _access.RELEASES if one.has("release") else _access.RELAXED
        _threads.store_words(flat, values, _what(one), use)

    def change(self, one: Instruction) -> None:
        """atom and red."""
        name = {"exch": "xchg"}.get(one.has("exch"), one.has("add", "cas", "min", "max", "and", "or", "xor"))
        if not name:
            raise NotImplementedError(f"inline assembly: {one.text!r} is not emulated")
        kind, has_result = _scalar(one.kind), one.name == "atom"
        place, *given = one.operands[1:] if has_result else one.operands
        address = self._address(place)
        values = [self._read(operand, one.kind) for operand in given]
        self._narrow(one, address)
        sem = one.has("acq_rel", "acquire", "release") or "relaxed"
        with self._program.hearing():
            old = changed_words(self._program, name, np.array([address]), values, kind, False, _access.ORDERS[sem])
        if has_result and one.operands[0] != "_":
            self._write(one.operands[0], old)

    def _narrow(self, one: Instruction, address: int) -> None:
        scope = one.has("cta", "gpu", "sys")
        if scope:
            _access.narrowed(self._program, [address], one.kind.itemsize, _what(one), scope)


_OPERATIONS: dict[str, Callable[[_Execution, Instruction], None]] = {
    "ld": _Execution.load,
    "st": _Execution.store,
    "atom": _Execution.change,
    "red": _Execution.change,
}


def _what(one: Instruction) -> str:
    """Returns the name of an instruction in reports."""
    return ".".join((one.name, *one.modifiers))


def _listed(operand: str) -> list[str]:
    """The registers of a vector, such as {%r1, %r2}, or the one."""
    return [part.strip() for part in operand.strip("{}").split(",")]


def _scalar(kind: np.dtype) -> t.dtype:
    """The language's type for one of NumPy's."""
    names = {"i": "int", "u": "uint", "f": "fp"}
    return t.scalar_type(f"{names[kind.kind]}{8 * kind.itemsize}")


def _order(one: Instruction) -> None:
    """Fences and barriers."""
    if one.name in ("bar", "barrier"):
        _threads.meet()
    else:
        _threads.fence(scope=one.has("cta") or None)


__all__ = ["inline_asm_elementwise"]
