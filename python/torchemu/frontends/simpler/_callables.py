"""Arguments of Worker.register: kernels, and the orchestration that passes a task's arguments on to one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torchemu.frontends.simpler._arguments import ArgDirection


@dataclass(frozen=True)
class CoreCallable:
    """A kernel of one core.

    Attributes:
        signature: what it does to each tensor.
        binary: what KernelCompiler.compile_incore gave.
    """

    signature: tuple[ArgDirection, ...]
    binary: bytes

    @classmethod
    def build(
        cls, signature: Sequence[ArgDirection], binary: bytes, arg_index: Sequence[int] | None = None
    ) -> CoreCallable:
        """A kernel. arg_index says which of the task's arguments its tensors are, where that is not all in order.

        Raises:
            ValueError: arg_index is for another number of tensors, or names them in another order: the stand-in passes
                all arguments on as they are.
        """
        directions = tuple(ArgDirection(d) for d in signature)
        if arg_index is not None and list(arg_index) != list(range(len(directions))):
            wanted = list(range(len(directions)))
            raise ValueError(f"arg_index {list(arg_index)}: want {wanted}, since arguments are passed on as they are")
        return cls(directions, bytes(binary))


@dataclass(frozen=True)
class ChipCallable:
    """A job for a chip: an orchestration with its kernels.

    Attributes:
        signature: what it does to each tensor.
        func_name: the orchestration's name.
        binary: what KernelCompiler.compile_orchestration gave.
        children: the kernels, with the numbers that the orchestration knows them by.
        config_name: the name of the function that says how many arguments it wants.
    """

    signature: tuple[ArgDirection, ...]
    func_name: str
    binary: bytes
    children: tuple[tuple[int, CoreCallable], ...]
    config_name: str

    @classmethod
    def build(
        cls,
        signature: Sequence[ArgDirection],
        func_name: str,
        binary: bytes,
        children: Sequence[tuple[int, CoreCallable]],
        config_name: str = "",
    ) -> ChipCallable:
        """An orchestration with its kernels.

        Raises:
            ValueError: it has none, or two of the same number.
        """
        numbered = tuple((int(i), c) for i, c in children)
        if not numbered or len(dict(numbered)) != len(numbered):
            numbers = [i for i, _ in numbered]
            raise ValueError(f"{func_name}: kernels {numbers}; want one or several, each with a number of its own")
        return cls(tuple(ArgDirection(d) for d in signature), func_name, bytes(binary), numbered, config_name)
