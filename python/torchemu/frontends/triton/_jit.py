"""``@triton.jit``: functions that are kernels, and that kernels call."""

from __future__ import annotations

import functools
import inspect
import re
import textwrap
from collections.abc import Callable
from typing import Any

from torchemu import runtime
from torchemu.frontends.triton import _launching
from torchemu.frontends.triton._launching import Grid, GridLaunch
from torchemu.frontends.triton._program import running
from torchemu.frontends.triton._rewriting import rewritten
from torchemu.frontends.triton._values import constexpr, plain
from torchemu.runtime import capture as captures

_OPTIONS = {
    "num_warps": 4,
    "num_stages": 3,
    "num_ctas": 1,
    "maxnreg": None,
    "launch_cooperative_grid": False,
    "launch_pdl": False,
    "cluster_dims": (1, 1, 1),
    "extern_libs": None,
    "debug": None,
    "warp_size": 32,
    "sanitize_overflow": None,
    "instrumentation_mode": "",
    "enable_fp_fusion": True,
    "arch": None,
    "waves_per_eu": 0,
    "matrix_instr_nonkdim": 0,
    "kpack": 1,
}
"""Arguments of a launch beside those of the kernel."""


class _Parameter:
    """A parameter of a kernel.

    Attributes:
        name: its.
        is_constexpr: it is known when the kernel is compiled.
        default: without an argument; inspect.Parameter.empty for none.
        specializes: an argument of 1 is known when the kernel is compiled.
    """

    def __init__(self, of: inspect.Parameter, number: int, fixed: Any) -> None:
        self.name, self.default, self.num = of.name, of.default, number
        text = of.annotation if isinstance(of.annotation, str) else getattr(of.annotation, "__name__", "")
        self.is_constexpr = of.annotation is constexpr or "constexpr" in text
        self.specializes = not (of.name in fixed or number in fixed)


class KernelInterface:
    """Something that is launched with a grid: a class of it has a method run."""

    run: Callable[..., Any]

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """Returns what launches the kernel with a grid: one to three numbers, or what makes them of the arguments."""
        return functools.partial(self.run, grid=grid, warmup=False)


_VOLATILE = re.compile(r"\bvolatile\s*=\s*(?!False\b)")


class JITFunction(KernelInterface):
    """A function of Triton's: launched with ``kernel[grid](…)``, or called by another one.

    Attributes:
        fn: the Python function.
        name: its.
        params: its parameters.
        place: where it is: the same for all ranks.
    """

    is_jit = True
    collective, interlock = None, False

    def __init__(self, fn: Callable[..., Any], do_not_specialize: Any = None, **_: Any) -> None:
        functools.update_wrapper(self, fn)
        self.fn = fn
        self.name: str = fn.__name__
        code = fn.__code__
        self.place = (code.co_filename, code.co_firstlineno, code.co_qualname)
        self.signature = inspect.signature(fn)
        fixed = tuple(do_not_specialize or ())
        self.params = [_Parameter(p, i, fixed) for i, p in enumerate(self.signature.parameters.values())]
        self.arg_names = [p.name for p in self.params]
        self._by_name = {p.name: p for p in self.params}
        self._positional = all(
            p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for p in self.signature.parameters.values()
        )
        self.pre_run_hooks: list[Callable[..., Any]] = []

    @functools.cached_property
    def src(self) -> str:
        """The function's text, from its def on: what generates kernels from others parses it."""
        text = textwrap.dedent(inspect.getsource(self.fn))
        found = re.search(r"^def\s", text, re.MULTILINE)
        return text if found is None else text[found.start() :]

    @functools.cached_property
    def loads_volatile(self) -> bool:
        """Reports whether the function, or one that it calls, has a load that is volatile."""
        found = [self]
        for one in found:  # and what is found on the way
            named = map(one.fn.__globals__.get, one.fn.__code__.co_names)
            found += [f for f in named if isinstance(f, JITFunction) and f not in found]
        return any(_VOLATILE.search(one.src) for one in found)

    @functools.cached_property
    def body(self) -> Callable[..., Any]:
        """The function as it runs in a program."""
        return rewritten(self.fn)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function from a kernel.

        Raises:
            RuntimeError: outside of kernels.
        """
        program = running()
        if program is None:
            raise RuntimeError("Cannot call @triton.jit'd outside of the scope of a kernel")
        outer, frame = program.mask, program.frame
        result = self.body(**self._known(self._bound(args, kwargs)))
        program.go_into(frame)
        if program.mask is not outer:
            program.mask = outer
            raise NotImplementedError(f"{self.name} returns under a condition that differs between threads")
        return result

    def __repr__(self) -> str:
        return f"JITFunction({self.fn.__module__}:{self.fn.__qualname__})"

    def add_pre_run_hook(self, hook: Callable[..., Any]) -> None:
        """Calls a function before each launch with its arguments."""
        self.pre_run_hooks.append(hook)

    def warmup(self, *args: Any, grid: Any = None, **kwargs: Any) -> Any:
        """Binds the arguments and launches nothing: there is nothing to compile."""
        return self.run(*args, grid=grid, warmup=True, **kwargs)

    def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        """Puts the kernel on the rank's current stream.

        Raises:
            TypeError: the arguments are not the function's, or not such as kernels have.
            ValueError: a tensor is on another device; the grid or an option is impossible.
            RuntimeError: it is called in a kernel; a cooperative grid does not fit.
        """
        if running() is not None:
            raise RuntimeError(f"a kernel cannot launch another one: call its function, {self.name}(...)")
        options = {key: kwargs.pop(key, default) for key, default in _OPTIONS.items() if key not in self._by_name}
        bound = self._bound(args, kwargs)
        warps = int(bound["num_warps"] if "num_warps" in bound else options["num_warps"])
        for hook in self.pre_run_hooks:
            hook(**bound)
        if warmup:
            return Compiled(self, warps, bound)
        shape = Grid(grid({**options, **bound}) if callable(grid) else grid)
        self._check(shape, warps, bool(options.get("launch_cooperative_grid")))
        if shape.blocks:
            captures.do(functools.partial(self._launch, shape, warps, bound, bool(options.get("extern_libs"))))
        return Compiled(self, warps, bound)

    def _check(self, grid: Grid, warps: int, cooperative: bool) -> None:
        if warps < 1 or warps > _launching.MOST_WARPS or warps & (warps - 1):
            raise ValueError(f"num_warps is a power of 2 from 1 to {_launching.MOST_WARPS}, not {warps}")
        if not cooperative:
            return
        fits = _launching.resident(warps * _launching.WARP)
        if grid.blocks > fits:
            raise RuntimeError(
                f"Triton Error [CUDA]: too many blocks in cooperative launch: kernel {self.name!r} wants {grid.blocks} "
                f"blocks of {warps * _launching.WARP} threads at once, and {fits} fit"
            )

    def _launch(self, grid: Grid, warps: int, bound: dict[str, Any], has_libraries: bool) -> None:
        body = self.body
        given: dict[str, Any] = {}
        launch = GridLaunch(self, grid, warps, lambda: body(**given))
        launch.has_libraries, launch.loads_volatile = has_libraries, self.loads_volatile
        given.update(self._arguments(launch, bound))

    def _arguments(self, launch: GridLaunch, bound: dict[str, Any]) -> dict[str, Any]:
        """The arguments as programs get them; it starts the launch."""
        known, values = {}, {}
        for name, value in bound.items():
            p = self._by_name[name]
            if p.is_constexpr:
                known[name] = plain(value)
            elif p.specializes and value is not None and type(value) is int and value == 1:
                known[name] = 1
            else:
                values[name] = value
        return {**known, **launch.start(values)}

    def _known(self, bound: dict[str, Any]) -> dict[str, Any]:
        return {name: plain(v) if self._by_name[name].is_constexpr else v for name, v in bound.items()}

    def _bound(self, args: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments by the names of parameters."""
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.name}{self._shown()}: {error}") from None
        bound.apply_defaults()
        return dict(bound.arguments)

    def _shown(self) -> str:
        return f"({', '.join(self.arg_names)})"


class Compiled:
    """The result of a launch: a kernel that would have been compiled. How many registers and how much shared memory it
    would need is not known: they are numbers with which programs find that it fits.

    Attributes:
        name: the kernel's.
        n_regs, n_spills: registers of a thread, and what does not fit into them.
        metadata: what it was compiled for.
    """

    n_regs, n_spills = 32, 0

    def __init__(self, kernel: JITFunction, warps: int, bound: dict[str, Any]) -> None:
        self.name, self.kernel = kernel.name, kernel
        self.metadata = _Metadata(warps)
        self._constants = {p.name: bound[p.name] for p in kernel.params if p.is_constexpr}

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """Returns what launches it with a grid; what it was compiled for need not be given again."""
        return functools.partial(self._launch, grid)

    def _launch(self, grid: Any, *args: Any) -> Any:
        names = self.kernel.arg_names if len(args) == len(self.kernel.arg_names) else self._variable()
        given = {**self._constants, **dict(zip(names, args, strict=True))}
        options = {"num_warps": self.metadata.num_warps} if "num_warps" not in given else {}
        return self.kernel.run(grid=grid, warmup=False, **given, **options)

    def _variable(self) -> list[str]:
        return [name for name in self.kernel.arg_names if name not in self._constants]

    def _init_handles(self) -> None:
        """Does nothing: there is nothing to load."""

    def __repr__(self) -> str:
        return f"<compiled kernel {self.name!r}>"


class _Metadata:
    """The target that a kernel was compiled for."""

    def __init__(self, warps: int) -> None:
        self.num_warps, self.shared = warps, 1024


def jit(fn: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Makes a function one of Triton's.

    Args:
        fn: the function; without it the decorator is returned.
        options: version, repr, launch_metadata, do_not_specialize, do_not_specialize_on_alignment, debug, noinline.

    Raises:
        TypeError: there is no such option.
    """
    unknown = set(options) - _JIT_OPTIONS
    if unknown:
        raise TypeError(f"triton.jit has no option {sorted(unknown)[0]!r}")
    if fn is None:
        return functools.partial(jit, **options)
    if isinstance(fn, JITFunction):
        return fn
    return JITFunction(fn, **options)


_JIT_OPTIONS = {
    "version",
    "repr",
    "launch_metadata",
    "do_not_specialize",
    "do_not_specialize_on_alignment",
    "debug",
    "noinline",
}


def constexpr_function(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a function one that kernels call with what is known when they are compiled."""

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        return fn(*[plain(a) for a in args], **{k: plain(v) for k, v in kwargs.items()})

    return call


def synchronize() -> None:
    """Waits until all operations of the rank have ended."""
    runtime.current().synchronize()
