"""DistributedDataParallel: its reducer, in C++, makes buckets on what it takes for the device of the parameters."""

from __future__ import annotations

import contextlib
import functools
import os
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

from torchemu.frontends.torch import device, futures
from torchemu.frontends.torch.session import Session

_MAKING = ("_rebuild_buckets", "prepare_for_forward", "prepare_for_backward", "_set_static_graph")
"""Methods in which it makes tensors."""
_VARIABLES = {
    "gloo": ("gloo_socket_ifname", "gloo_device_transport"),
    "nccl": ("nccl_socket_ifname", "nccl_blocking_wait", "nccl_async_error_handling", "nccl_debug", "nccl_nthreads"),
}
"""Variables of the environment that the record of a DDP model has, by backend."""

_places: weakref.WeakKeyDictionary[Any, torch.device] = weakref.WeakKeyDictionary()  # by reducer

_mixed: weakref.WeakSet[Any] = weakref.WeakSet()  # reducers of parameters on several devices

_works: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()  # of the last forward pass, by reducer


def install(run: Session) -> None:
    """Puts what reducers make on the devices of their parameters, until the run ends."""
    kind = dist.Reducer
    run.replace(dist, "_compute_bucket_assignment_by_size", _by_device(dist._compute_bucket_assignment_by_size))
    run.replace(dist, "_broadcast_coalesced", _broadcast_by_device(dist._broadcast_coalesced))
    run.replace(kind, "_rebuild_buckets", _rebuilding(kind._rebuild_buckets))
    run.replace(kind, "__init__", _beginning(kind.__init__))
    for name in _MAKING:
        run.replace(kind, name, _made_like_parameters(getattr(kind, name)))
    run.replace(kind, "_set_forward_pass_work_handle", _keeping(kind._set_forward_pass_work_handle))
    run.replace(kind, "_delay_all_reduce", _waiting(kind._delay_all_reduce))
    ddp = torch.nn.parallel.DistributedDataParallel
    run.replace(ddp, "_register_builtin_comm_hook", _register_builtin)
    run.replace(ddp, "_get_ddp_logging_data", _logged(ddp._get_ddp_logging_data))


def _register_builtin(self: Any, comm_hook_type: dist.BuiltinCommHookType) -> None:
    """Gives a model Python's hook for one in C++, which asks futures for what only those of C++ have."""
    self.logger._set_comm_hook_name(str(comm_hook_type))
    is_half = comm_hook_type == dist.BuiltinCommHookType.FP16_COMPRESS
    hook = default_hooks.fp16_compress_hook if is_half else default_hooks.allreduce_hook
    dist._register_comm_hook(self.reducer, self.process_group, hook)


def _place(parameters: Iterable[torch.Tensor]) -> torch.device:
    return next((p.device for p in parameters), torch.device("cpu"))


def _beginning(init: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(init)
    def begin(self: Any, parameters: list[torch.Tensor], *args: Any, **kwargs: Any) -> None:
        place, buckets = _place(parameters), args[0] if args else kwargs["bucket_indices"]
        if len({p.device for p in parameters}) > 1:
            _mixed.add(self)
        with device.made_in_turn([*(parameters[bucket[0]].device for bucket in buckets), place]):
            init(self, parameters, *args, **kwargs)
        _places[self] = place

    return begin


def _indices_by_device(tensors: Sequence[torch.Tensor]) -> list[list[int]]:
    """The indices of the tensors of each device."""
    found: dict[torch.device, list[int]] = {}
    for index, tensor in enumerate(tensors):
        found.setdefault(tensor.device, []).append(index)
    return list(found.values())


def _by_device(assign: Callable[..., Any]) -> Callable[..., Any]:
    """The function that makes buckets of parameters, which C++ takes to be on one device."""

    @functools.wraps(assign)
    def compute(
        tensors: Any, limits: Any, expect_sparse: Any = (), indices: Any = (), *rest: Any, **kwargs: Any
    ) -> Any:
        parts = _indices_by_device(tensors)
        if len(parts) < 2 or indices:
            return assign(tensors, limits, expect_sparse or [], indices or [], *rest, **kwargs)
        found = []
        for part in parts:
            sparse = [expect_sparse[i] for i in part] if expect_sparse else []
            buckets, sizes = assign([tensors[i] for i in part], limits, sparse, [], *rest, **kwargs)
            found += [([part[i] for i in bucket], size) for bucket, size in zip(buckets, sizes, strict=True)]
        found.sort(key=lambda one: min(one[0]))
        return [bucket for bucket, _ in found], [size for _, size in found]

    return compute


def _broadcast_by_device(broadcast: Callable[..., None]) -> Callable[..., None]:
    """The function that broadcasts a model, whose tensors C++ puts together as if they were on one device."""

    @functools.wraps(broadcast)
    def call(process_group: Any, tensors: Any, *args: Any, **kwargs: Any) -> None:
        for part in _indices_by_device(tensors) or [[]]:
            broadcast(process_group, [tensors[i] for i in part], *args, **kwargs)

    return call


def _rebuilding(rebuild: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """The method that makes buckets anew: those of several devices stay, as C++ would put these together."""

    @functools.wraps(rebuild)
    def call(self: Any) -> bool:
        return False if self in _mixed else rebuild(self)

    return call


def _made_like_parameters(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: Any, *args: Any) -> Any:
        place = _places.get(self)
        with contextlib.nullcontext() if place is None else device.made_on(place):
            return method(self, *args)

    return call


def _keeping(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that is given a work, and keeps its part in C++ alone: without the rest nobody would wait."""

    @functools.wraps(method)
    def call(self: Any, work: Any, *args: Any) -> Any:
        _works[self] = work
        return method(self, work, *args)

    return call


def _waiting(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that waits in C++ for the futures of the works that it issues."""

    @functools.wraps(method)
    def call(self: Any, *args: Any) -> Any:
        with futures.resolved_at_once():
            return method(self, *args)

    return call


def _logged(told: Callable[[Any], dict[str, Any]]) -> Callable[[Any], dict[str, Any]]:
    """The record of a DDP model. C++ hears another name of the backend, and sees no rank's environment."""

    @functools.wraps(told)
    def get_logging_data(self: Any) -> dict[str, Any]:
        known = told(self)
        for name, value in known.items():
            if value == "N/A":
                known[name] = os.environ.get(name.upper(), value)
        if self.process_group not in c10d._world.pg_map:  # a program's own, which C++ knows as it is
            return known
        backend = dist.get_backend(self.process_group)
        own: dict[str, Any] = {name: os.environ.get(name.upper(), "N/A") for name in _VARIABLES.get(backend, ())}
        if backend == "gloo":
            own["gloo_num_threads"] = 2
        return {**known, **own, "backend_name": backend}

    return get_logging_data
