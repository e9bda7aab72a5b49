"""Operations that programs define (torch.library): each rank defines them, and PyTorch has one table for a process.

The first rank's definition is PyTorch's. The others' must be the same, and their kernels stand beside the first one's:
a call runs the kernel of the rank that calls. An installed package, which is loaded once, defines its own for all.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torch._library import custom_ops
from torch.library import Library, fallthrough_kernel

from torchemu import runtime
from torchemu.frontends.torch.session import Session
from torchemu.frontends.torch.tables import OfRanks, definer


class _Kernels:
    """The functions that ranks have given one kernel of an operation.

    Args:
        function: the first one, which is also that of ranks that give none.
        library: by which PyTorch knows it.
    """

    def __init__(self, function: Callable[..., Any], library: Library) -> None:
        self.first, self.library, self.own = function, library, {definer(): function}
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.own.get(runtime.running(), self.first)(*args, **kwargs)


class _Definition:
    """An operation that ranks have defined.

    Args:
        schema: what the first one has said.
        library: the one by which PyTorch knows it.

    Attributes:
        ranks: who has it now, and by which of its libraries.
    """

    def __init__(self, schema: str, library: Library) -> None:
        self.schema, self.library = schema, library
        self.ranks = {definer(): library}


class Definitions:
    """The operations that a run's ranks define, and the kernels that they give operations."""

    def __init__(self, run: Session) -> None:
        self._spaces: dict[str, runtime.Context] = {}  # namespaces, and who has opened them
        self._operations: dict[str, _Definition] = {}  # by the qualified names
        self._kernels: dict[tuple[str, str], _Kernels] = {}  # by these and the dispatch keys; "" is for shapes
        self._kept: dict[int, Library] = {}  # PyTorch forgets what is in a library that is gone
        patched: dict[str, Callable[..., Any]] = {
            "__init__": self._open, "define": self._define, "impl": self._implement, "_register_fake": self._fake,
            "_destroy": self._forget,
        }  # fmt: skip
        self._original: dict[str, Callable[..., Any]] = {name: getattr(Library, name) for name in patched}
        for name, does in patched.items():
            run.replace(Library, name, _method(does, self._original[name]))
        run.replace(custom_ops, "OPDEFS", OfRanks(custom_ops.OPDEFS, for_all=True))
        run.replace(custom_ops, "OPDEF_TO_LIB", OfRanks(custom_ops.OPDEF_TO_LIB, for_all=False))
        run.stack.callback(self._end)

    def _open(self, library: Library, ns: str, kind: str, dispatch_key: str = "") -> None:
        """Opens a namespace that another rank may have opened: PyTorch has each once."""
        context = definer()
        if kind == "DEF" and context is not None and self._spaces.setdefault(ns, context) is not context:
            kind = "FRAGMENT"
        self._original["__init__"](library, ns, kind, dispatch_key)

    def _define(self, library: Library, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> Any:
        """Defines an operation, unless another rank has."""
        context, name = definer(), schema.partition("(")[0]
        qualified = f"{library.ns}::{name}"
        known = self._operations.get(qualified)
        if context is None or known is None or context in known.ranks:
            made = self._original["define"](library, schema, alias_analysis, tags=tags)
            if context is not None:
                self._operations[qualified] = _Definition(schema, library)
                self._kept[id(library)] = library
            return made
        if known.schema != schema:
            raise RuntimeError(
                f"ranks define {qualified} as {known.schema} and as {schema}; they are threads of one process here, in "
                "which PyTorch has one operation of a name"
            )
        known.ranks[context] = library
        return name

    def _implement(
        self,
        library: Library,
        op_name: Any,
        fn: Any,
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = False,
    ) -> None:
        """Gives an operation a kernel, or the running rank's to one that it has."""
        name = op_name if isinstance(op_name, str) else op_name.name()
        if fn is not fallthrough_kernel and callable(fn):
            key = dispatch_key or library.dispatch_key or "CompositeImplicitAutograd"
            fn = self._given(library, name, key, fn, allow_override)
        if fn is not None:
            does = self._original["impl"]
            does(library, op_name, fn, dispatch_key, with_keyset=with_keyset, allow_override=allow_override)

    def _fake(
        self, library: Library, op_name: str, fn: Any, _stacklevel: int = 1, *, allow_override: bool = False
    ) -> None:
        """Gives an operation what computes its shapes, or the running rank's to one that has it."""
        given = self._given(library, op_name, "", fn, allow_override)
        if given is not None:
            does = self._original["_register_fake"]
            does(library, op_name, given, _stacklevel + 2, allow_override=allow_override)

    def _given(self, library: Library, name: str, key: str, function: Callable[..., Any], again: bool) -> Any:
        """Returns what PyTorch is to know as a kernel of an operation; None where it knows one by another rank.

        Args:
            library: by which it is given.
            name: the operation's.
            key: the kernel's.
            function: the running rank's.
            again: it may take the place of one that the rank has given before.
        """
        context = definer()
        if context is None:
            return function
        of = f"{library.ns}::{name.rpartition('::')[2]}", key
        kernels = self._kernels.get(of)
        if kernels is None:
            kernels = self._kernels[of] = _Kernels(function, library)
            self._kept[id(library)] = library
            return kernels
        if context in kernels.own and not again:
            return function  # which is an error of PyTorch's
        kernels.own[context] = function
        return None

    def _forget(self, library: Library) -> None:
        """Ends a library of a rank, but for the operations in it that others have defined, too."""
        context = definer()
        ended = {name: known for name, known in self._operations.items() if known.ranks.get(context) is library}
        for known in ended.values():
            del known.ranks[context]
        for (name, _), kernels in self._kernels.items():
            if name in ended:
                kernels.own.pop(context, None)
        for real in {id(known.library): known.library for known in ended.values()}.values() or (library,):
            if not any(known.ranks for known in self._operations.values() if known.library is real):
                self._drop(real)

    def _drop(self, library: Library) -> None:
        """Has PyTorch forget what is in a library."""
        self._operations = {name: known for name, known in self._operations.items() if known.library is not library}
        self._kernels = {of: kernels for of, kernels in self._kernels.items() if kernels.library is not library}
        self._kept.pop(id(library), None)
        self._original["_destroy"](library)

    def _end(self) -> None:
        for library in self._kept.values():
            self._original["_destroy"](library)


def _method(does: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that is a method where it is in a class."""

    @functools.wraps(original)
    def method(*args: Any, **kwargs: Any) -> Any:
        return does(*args, **kwargs)

    return method


def install(run: Session) -> None:
    """Lets each rank define operations, until the run ends."""
    Definitions(run)
