"""Switches that PyTorch has once for a process: each rank's are its own.

Fused kernels of attention, deterministic algorithms, precision of products, cuDNN's choices, the search for anomalies,
the device of the default type, torch.distributed's debug level, and how tensors are printed. Only what a program has
set is exchanged when another rank goes on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import _tensor_str
from torch.backends import ContextProp

from torchemu import runtime
from torchemu.c10d import debug
from torchemu.frontends.torch.session import Session

_KERNELS = ("flash", "mem_efficient", "math", "cudnn", "overrideable")  # of attention
_PAIRS = {
    **{f"_set_sdp_use_{kernel}": f"_get_{kernel}_sdp_enabled" for kernel in _KERNELS},
    **{
        f"_set_{name}": f"_get_{name}"
        for name in (
            "blas_preferred_backend",
            "check_sparse_tensor_invariants",
            "cublas_allow_bf16_reduced_precision_reduction",
            "cublas_allow_fp16_accumulation",
            "cublas_allow_fp16_reduced_precision_reduction",
            "cublas_allow_tf32",
            "cudnn_allow_tf32",
            "cudnn_benchmark",
            "cudnn_deterministic",
            "cudnn_enabled",
            "deterministic_fill_uninitialized_memory",
            "float32_matmul_precision",
            "linalg_preferred_backend",
            "math_sdp_allow_fp16_bf16_reduction",
            "mkldnn_deterministic",
            "mkldnn_enabled",
            "sdp_priority_order",
            "warnAlways",
        )
    },
}
"""Functions of torch._C that set a switch, and those that tell its value."""


class _Switch(NamedTuple):
    """A switch: `get` returns what `set` is to be called with for the present value; None where PyTorch refuses it."""

    get: Callable[[], tuple[Any, ...] | None]
    set: Callable[..., object]


class Switches:
    """Exchanges the switches of a run's ranks.

    Args:
        run: the run. At its end they are as before.
    """

    def __init__(self, run: Session) -> None:
        self._set: dict[Hashable, _Switch] = {}  # by programs
        self._first: dict[Hashable, tuple[Any, ...] | None] = {}
        self._own: dict[runtime.Context | None, dict[Hashable, tuple[Any, ...] | None]] = {}
        self._replace_pairs(run)
        self._replace_others(run)
        self._replace_debug_level(run)
        run.on_switch.append(self.exchange)
        run.stack.callback(self._restore)

    def exchange(self, before: runtime.Context | None, after: runtime.Context | None) -> None:
        """Puts a rank's in place of another one's."""
        if not self._set:
            return
        last, own = self._own.setdefault(before, {}), self._own.get(after, {})
        for key, switch in self._set.items():  # all before one is set: some are two names of one, and must agree
            last[key] = switch.get()
        for key, switch in self._set.items():
            value = own.get(key, self._first[key])
            if value is not None and value != last[key]:
                switch.set(*value)

    def values(self) -> dict[Hashable, tuple[Any, ...] | None]:
        """Returns the running rank's values of the switches that programs have set."""
        return {key: switch.get() for key, switch in self._set.items()}

    def first(self, key: Hashable) -> tuple[Any, ...] | None:
        """Returns a switch's value at the beginning."""
        return self._first[key]

    def put(self, key: Hashable, value: tuple[Any, ...] | None) -> None:
        """Sets a switch for the running rank."""
        if value is not None:
            self._set[key].set(*value)

    def _restore(self) -> None:
        for key, switch in self._set.items():
            first = self._first[key]
            if first is not None:
                switch.set(*first)

    def _noting(self, key: Hashable, switch: _Switch) -> Callable[..., object]:
        """Returns the function that sets a switch for programs, and notes that one does."""

        def setter(*args: Any, **kwargs: Any) -> object:
            self._note(key, switch)
            return switch.set(*args, **kwargs)

        return setter

    def _note(self, key: Hashable, switch: _Switch) -> None:
        if key not in self._set:
            if key not in self._first:
                self._first[key] = switch.get()
            self._set[key] = switch

    def _replace_pairs(self, run: Session) -> None:
        for name, getter in _PAIRS.items():
            if not (hasattr(torch._C, name) and hasattr(torch._C, getter)):
                continue  # in this version
            real = getattr(torch._C, name)
            switch = _Switch(_getting(getattr(torch._C, getter)), real)
            self._first[name] = switch.get()  # now: the setter of another one may change it, too
            setter = self._noting(name, switch)
            run.replace(torch._C, name, setter)
            for prop in _properties():
                if prop.setter is real:
                    run.replace(prop, "setter", setter)

    def _replace_others(self, run: Session) -> None:
        """Replaces setters of two values, and that of precisions, which has a switch for each kind of operation."""
        core, precision = torch._C, torch._C._set_fp32_precision_setter
        deterministic = _Switch(
            lambda: (core._get_deterministic_algorithms(), core._get_deterministic_algorithms_warn_only()),
            lambda mode, warn_only=False, real=core._set_deterministic_algorithms: real(mode, warn_only=warn_only),
        )
        run.replace(core, "_set_deterministic_algorithms", self._noting("deterministic", deterministic))
        anomaly = _Switch(
            lambda: (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()), torch.set_anomaly_enabled
        )
        run.replace(torch, "set_anomaly_enabled", self._noting("anomaly", anomaly))

        def set_precision(backend: str, op: str, value: str) -> object:
            self._note(
                ("precision", backend, op),
                _Switch(lambda: (backend, op, core._get_fp32_precision_getter(backend, op)), precision),
            )
            return precision(backend, op, value)

        run.replace(core, "_set_fp32_precision_setter", set_precision)
        self._replace_default_type(run)

    def _replace_debug_level(self, run: Session) -> None:
        """Replaces the setters of torch.distributed's debug level, of which the core's errors hear, too."""
        library = torch._C._distributed_c10d
        level, set_level = library.get_debug_level, library.set_debug_level
        note = self._noting("debug level", _Switch(lambda: (level(),), set_level))

        def set_debug_level(level: Any) -> None:
            note(level)
            debug.set_debug_level(debug.DebugLevel[level.name])

        def set_debug_level_from_env() -> None:
            debug.set_debug_level_from_env()
            note(getattr(library.DebugLevel, debug.get_debug_level().name))

        def make_group(*args: Any, **kwargs: Any) -> Any:  # the environment may have got its level since the import
            if debug.get_debug_level().name != level().name:
                note(getattr(library.DebugLevel, debug.get_debug_level().name))
            return make(*args, **kwargs)

        make = dist.distributed_c10d._new_process_group_helper
        run.replace(dist.distributed_c10d, "_new_process_group_helper", make_group)
        for module in (library, dist):
            run.replace(module, "set_debug_level", set_debug_level)
            run.replace(module, "set_debug_level_from_env", set_debug_level_from_env)

    def _replace_default_type(self, run: Session) -> None:
        """Replaces the setter of the default type of tensors. Its device is a switch; its dtype is no switch but state,
        as set_default_dtype sets it, too."""
        types = {
            (module.__name__ == "torch.cuda", getattr(module, name).dtype): getattr(module, name)
            for module in (torch, torch.cuda)
            for name in ("BFloat16Tensor", "DoubleTensor", "FloatTensor", "HalfTensor")
        }
        set_type, device = torch._C._set_default_tensor_type, torch._C._get_default_device
        switch = _Switch(
            lambda: (device(),), lambda device: set_type(types[device == "cuda", torch.get_default_dtype()])
        )

        def set_default_type(kind: Any) -> None:
            self._note("default device", switch)
            set_type(kind)

        run.replace(torch._C, "_set_default_tensor_type", set_default_type)


def _getting(get: Callable[[], Any]) -> Callable[[], tuple[Any, ...] | None]:
    def values() -> tuple[Any, ...] | None:
        try:
            value = get()
        except RuntimeError:
            return None  # the program has set another name of the switch to another value
        return value if isinstance(value, tuple) else (value,)

    return values


def _properties() -> list[ContextProp]:
    """Lists the properties of torch.backends' modules, which have setters of their own."""
    modules = [module for name, module in sys.modules.items() if name.startswith("torch.backends.")]
    return [prop for module in modules for prop in vars(type(module)).values() if isinstance(prop, ContextProp)]


class _Printing:
    """Exchanges how tensors are printed."""

    def __init__(self, run: Session) -> None:
        self._first = dict(vars(_tensor_str.PRINT_OPTS))
        self._own: dict[runtime.Context | None, dict[str, Any]] = {None: vars(_tensor_str.PRINT_OPTS)}
        run.on_switch.append(self.exchange)
        run.stack.callback(lambda: setattr(_tensor_str.PRINT_OPTS, "__dict__", self._own[None]))

    def exchange(self, _: runtime.Context | None, after: runtime.Context | None) -> None:
        """Puts a rank's in place."""
        own = self._own.get(after)
        if own is None:
            own = self._own[after] = dict(self._first)
        _tensor_str.PRINT_OPTS.__dict__ = own


def install(run: Session) -> Switches:
    """Gives each rank its own, until the run ends. Returns those that have two functions each."""
    _Printing(run)
    return Switches(run)
