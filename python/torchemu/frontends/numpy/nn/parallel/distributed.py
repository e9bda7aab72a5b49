"""torch.nn.parallel.DistributedDataParallel."""

from __future__ import annotations

import contextlib
import functools
import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torchemu.c10d.futures import Future
from torchemu.frontends.numpy import _settings
from torchemu.frontends.numpy._grad_mode import no_grad
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.from_data import tensor
from torchemu.frontends.numpy._tensor.joining import cat
from torchemu.frontends.numpy.distributed import (
    GradBucket,
    ProcessGroup,
    ReduceOp,
    all_gather_into_tensor,
    all_reduce,
    broadcast,
)
from torchemu.frontends.numpy.distributed._missing import BuiltinCommHookType
from torchemu.frontends.numpy.distributed._process_group import resolved
from torchemu.frontends.numpy.distributed.algorithms.ddp_comm_hooks.default_hooks import (
    allreduce_hook,
    fp16_compress_hook,
)
from torchemu.frontends.numpy.distributed.algorithms.join import Join, Joinable, JoinHook
from torchemu.frontends.numpy.nn.modules.module import Module
from torchemu.frontends.numpy.nn.parallel._buckets import FIRST_LIMIT, MIB
from torchemu.frontends.numpy.nn.parallel._delayed import Delayed
from torchemu.frontends.numpy.nn.parallel._reducer import Reducer
from torchemu.frontends.numpy.nn.parallel._report import logging_data
from torchemu.frontends.numpy.nn.parameter import is_lazy
from torchemu.unsupported import unsupported

__all__ = ["DistributedDataParallel"]

_STATIC_FINDS = (
    "You passed find_unused_parameters=true to DistributedDataParallel, `_set_static_graph` will detect unused "
    "parameters automatically, so you do not need to set find_unused_parameters=true, just be sure these unused "
    "parameters will not change during training loop while calling `_set_static_graph`."
)

_COALESCED = 250 * MIB
"""Bytes of parameters and buffers that are broadcast at once."""


def _kept_in_step(tensors: Sequence[Tensor], group: ProcessGroup, source: int = 0) -> None:
    """Makes tensors those of one rank: many of one dtype in one broadcast."""
    for part in _parts(tensors):
        flat = cat([t.detach().reshape(-1) for t in part])
        broadcast(flat, group=group, group_src=source)
        with no_grad():
            for t, piece in zip(part, flat.split([t.numel() for t in part]), strict=True):
                t.copy_(piece.view(t.shape))


def _parts(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Tensors of one dtype, and together of not too many bytes."""
    by_dtype: dict[Any, list[Tensor]] = {}
    for t in tensors:
        part = by_dtype.setdefault(t.dtype, [])
        part.append(t)
        if sum(each.nbytes for each in part) >= _COALESCED:
            yield by_dtype.pop(t.dtype)
    yield from by_dtype.values()


def _check_same(params: Sequence[Tensor], group: ProcessGroup) -> None:
    """Raises:
    RuntimeError: another rank has another number of parameters, or rank 0 has other shapes.
    """
    rank, where = group.rank(), params[0].device
    sizes = [[p.dim(), *p.shape] for p in params]
    width = max(map(len, sizes))
    about = tensor([[0, 0]] * group.size(), device=where)
    all_gather_into_tensor(about, tensor([len(params), width], device=where), group)
    for other, (count, _) in enumerate(about.tolist()):
        if count != len(params):
            raise RuntimeError(
                f"DDP expects same model across all ranks, but Rank {rank} has {len(params)} params, "
                f"while rank {other} has inconsistent {count} params."
            )
    columns = int(about[0, 1])
    table = [(each + [0] * columns)[:columns] for each in sizes]
    first = tensor(table, device=where)
    broadcast(first, group=group, group_src=0)
    for number, (p, (ndim, *wanted)) in enumerate(zip(params, first.tolist(), strict=True)):
        if list(p.shape) != wanted[:ndim]:
            raise RuntimeError(
                f"[{rank}]: params[{number}] in this process with sizes {list(p.shape)} appears not to match "
                "sizes of the same param in process 0."
            )


def _moved(value: Any, where: Any) -> Any:
    """What the module is called with, all tensors on its device."""
    if isinstance(value, Tensor):
        return value.to(where)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[_moved(each, where) for each in value])
    if isinstance(value, list | tuple):
        return type(value)([_moved(each, where) for each in value])
    if isinstance(value, dict):
        return type(value)((key, _moved(each, where)) for key, each in value.items())
    return value


class DistributedDataParallel(Module, Joinable):
    """A module that is trained on every rank of a group, each with a part of the data.

    Parameters and buffers begin as those of rank 0. While a backward pass goes on, gradients are averaged over the
    ranks, bucket by bucket: in the first pass buckets have the parameters in the reverse of their order, afterwards in
    the order in which their gradients arrive.

    Args:
        module: the module; its parameters must be on one kind of device.
        device_ids: the one device of the module, to which arguments of forward are moved; None: they stay.
        output_device, dim: mean nothing here.
        broadcast_buffers: before each forward pass, make the buffers those of rank 0.
        init_sync: check the parameters' shapes, and make parameters and buffers those of rank 0.
        process_group: the ranks; None: the default group.
        bucket_cap_mb: how many MiB a bucket has; None: 25, and the first bucket 1.
        find_unused_parameters: look in each forward pass which parameters get no gradient, and do without them.
        check_reduction: means nothing.
        gradient_as_bucket_view: let gradients be the parts of the buckets, instead of copying them to and fro.
        static_graph: the same parameters are used in every pass; they are looked for all the same.
        device_mesh: a mesh of one dimension, whose group is the ranks.
        delay_all_reduce_named_params: names and parameters that the module does without; their gradients are averaged
            together when that of param_to_hook_all_reduce comes.
        param_to_hook_all_reduce: a parameter whose gradient comes last.
        bucket_cap_mb_list: the MiB of each bucket, in the order in which they are filled; the last one's is that of
            all others.
        others: skip_all_reduce_unused_params, which means nothing; mixed_precision, which is not supported.

    Attributes:
        module: the module.

    Raises:
        RuntimeError: no parameter needs a gradient, or the ranks' modules differ.
        ValueError: no process group; device_ids do not fit.
        NotImplementedError: something that is not supported.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: ProcessGroup | None = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Sequence[tuple[str, Tensor]] | None = None,
        param_to_hook_all_reduce: Tensor | None = None,
        device_mesh: Any = None,
        bucket_cap_mb_list: Sequence[float] | None = None,
        **others: Any,
    ) -> None:
        super().__init__()
        _check_supported(others)
        delayed = _delayed(delay_all_reduce_named_params, param_to_hook_all_reduce)
        self.process_group = _group_of(process_group, device_mesh)
        self.module, self.dim, self.output_device = module, dim, output_device
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", [])) | {*delayed}
        named = self._named()
        if not named and not delayed:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a "
                "gradient."
            )
        if any(is_lazy(p) for _, p in named):
            raise RuntimeError(
                "Modules with uninitialized parameters can't be used with `DistributedDataParallel`. Run a dummy "
                "forward pass to correctly initialize the modules"
            )
        self.device_ids = _devices(device_ids, output_device, [p for _, p in named])
        self.device = named[0][1].device
        self.broadcast_buffers, self.static_graph = broadcast_buffers, static_graph
        self.find_unused_parameters, self.gradient_as_bucket_view = find_unused_parameters, gradient_as_bucket_view
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        caps = list(bucket_cap_mb_list or [25 if bucket_cap_mb is None else bucket_cap_mb])
        self.bucket_bytes_cap = int(max(caps) * MIB)
        if init_sync:
            _check_same([p for _, p in named], self.process_group)
            synced = [*self._synced(module.named_parameters()), *delayed.values(), *self._buffers_in_step()]
            _kept_in_step(synced, self.process_group)
        first = [FIRST_LIMIT] if bucket_cap_mb is None and not bucket_cap_mb_list else []
        self._bucket_limits = [*first, *(int(cap * MIB) for cap in caps)]
        self._make_reducer(named)
        self._delayed: Delayed | None = None
        if param_to_hook_all_reduce is not None:
            self._delayed = Delayed(list(delayed.values()), param_to_hook_all_reduce, self.process_group)
        if static_graph and find_unused_parameters:
            warnings.warn(_STATIC_FINDS, stacklevel=2)

    def _make_reducer(self, named: Sequence[tuple[str, Tensor]]) -> None:
        finds = self.find_unused_parameters or self.static_graph
        self.reducer = Reducer(named, self.process_group, self._bucket_limits, finds, self.gradient_as_bucket_view)

    def _named(self) -> list[tuple[str, Tensor]]:
        """The parameters whose gradients are averaged."""
        named = self.module.named_parameters()
        return [(n, p) for n, p in named if p.requires_grad and n not in self.parameters_to_ignore]

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k not in ("process_group", "reducer")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.process_group = resolved(None)  # as in PyTorch, copies are of the default group
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self._make_reducer(self._named())

    def _synced(self, named: Any) -> list[Tensor]:
        return [t for name, t in named if name not in self.parameters_to_ignore]

    def _buffers_in_step(self) -> list[Tensor]:
        return self._synced(self.module.named_buffers())

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the module returns."""
        syncs = _settings.current().gradients and self.require_backward_grad_sync
        self._announce()
        if _settings.current().gradients:
            self.reducer.rebuild_buckets()
        self._sync_buffers()
        if self._join_config.enable:
            self._highest(int(self.require_backward_grad_sync))
        if self.device_ids:
            inputs, kwargs = _moved((inputs, kwargs), self.device)
        output = self.module(*inputs, **kwargs)
        if syncs:
            self.reducer.prepare(output)
        if self._delayed is not None:
            self._delayed.active = syncs
        self.require_forward_param_sync = syncs
        return output

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Inside it gradients are added up on each rank; the first pass behind it averages the sums."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Join:
        """A context for ranks with different numbers of batches; see torch.distributed.algorithms.Join.

        Args:
            divide_by_initial_world_size: divide sums of gradients by the number of all ranks; False: by that of those
                that have a batch.
            enable: False: nothing of the kind.
            throw_on_early_termination: fail on all ranks as soon as one has no batch left.
        """
        options = {"divide_by_initial_world_size": divide_by_initial_world_size}
        return Join([self], enable, throw_on_early_termination, **options)

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What takes part in the passes of ranks that still have batches."""
        self._divides_by_all = kwargs.get("divide_by_initial_world_size", True)
        return _Shadow(self)

    @property
    def join_device(self) -> Any:
        """That of the parameters."""
        return self.device

    @property
    def join_process_group(self) -> ProcessGroup:
        """The ranks."""
        return self.process_group

    def _announce(self) -> None:
        """Tells ranks that have no batch left that this one has, and learns how many do."""
        work = Join.notify_join_context(self)
        if work is not None and not self._divides_by_all:
            work.wait()
            self.reducer.divide_by(int(work.result()[0].item()))

    def _highest(self, value: int) -> int:
        """The highest of all ranks' values."""
        found = tensor(value, device=self.device)
        all_reduce(found, ReduceOp.MAX, group=self.process_group)
        return int(found.item())

    def _sync_buffers(self, has_batch: bool = True) -> None:
        """Makes the buffers those of rank 0; of a rank that has a batch, where some have none."""
        buffers = self._buffers_in_step() if self.broadcast_buffers else []
        if buffers and self.require_forward_param_sync:
            source = self._highest(self.process_group.rank() if has_batch else -1) if self._join_config.enable else 0
            _kept_in_step(buffers, self.process_group, source)

    def _shadow_pass(self) -> None:
        """Takes part in a pass of the others, with gradients of zeros."""
        self.reducer.rebuild_buckets()
        self._sync_buffers(has_batch=False)
        self.require_forward_param_sync = bool(self._highest(0))
        if self.require_forward_param_sync:
            self.reducer.shadow()

    def _adopt_final(self, was_last: bool) -> None:
        """Makes parameters and buffers those of a rank that had the most batches."""
        source = self._highest(self.process_group.rank() if was_last else -1)
        tensors = [*self._synced(self.module.named_parameters()), *self._buffers_in_step()]
        _kept_in_step(tensors, self.process_group, source)
        self.reducer.divide_by(self.process_group.size())

    def register_comm_hook(self, state: object, hook: Callable[..., Any]) -> None:
        """Has a function reduce the buckets, in the place of the mean.

        Args:
            state: its first argument.
            hook: called as hook(state, bucket) with a torch.distributed.GradBucket whose gradients are complete on
                this rank; returns a torch.futures.Future of what they are to become.

        Raises:
            TypeError: no function. ValueError: annotations that do not fit. RuntimeError: there is a hook already.
        """
        _check_hook(hook)
        self.reducer.reduce_by(functools.partial(hook, state), hook.__qualname__)

    def _register_builtin_comm_hook(self, comm_hook_type: BuiltinCommHookType) -> None:
        """Has the buckets averaged as they are, or as float16."""
        _register_builtin_comm_hook(self.reducer, comm_hook_type)

    def _set_static_graph(self) -> None:
        """As the argument static_graph.

        Raises:
            RuntimeError: there has been a pass.
        """
        if self.static_graph:
            warnings.warn("You've set static_graph to be True, no need to set it again.", stacklevel=2)
            return
        self.reducer._set_static_graph()
        self.static_graph = True
        if self.find_unused_parameters:
            warnings.warn(_STATIC_FINDS, stacklevel=2)

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """What PyTorch's logger would know of the module, but for times."""
        return logging_data(self)

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Module, params_and_buffers_to_ignore: list[str]) -> None:
        """Has a module that is to be wrapped say which of its parameters and buffers are left alone."""
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore


class _Shadow(JoinHook):
    """Takes part in the passes of ranks that still have batches."""

    def __init__(self, ddp: DistributedDataParallel) -> None:
        self._ddp = ddp

    def main_hook(self) -> None:
        """A pass."""
        self._ddp._shadow_pass()

    def post_hook(self, is_last_joiner: bool) -> None:
        """Parameters become those of a rank that had the most batches."""
        self._ddp._adopt_final(is_last_joiner)


def _register_builtin_comm_hook(reducer: Reducer, comm_hook_type: BuiltinCommHookType) -> None:
    """Has a reducer's buckets averaged as they are, or as float16."""
    if not isinstance(comm_hook_type, BuiltinCommHookType):
        raise TypeError(
            "_register_builtin_comm_hook(): incompatible function arguments: comm_hook_type must be a "
            f"BuiltinCommHookType, not {comm_hook_type!r}"
        )
    hook = allreduce_hook if comm_hook_type is BuiltinCommHookType.ALLREDUCE else fp16_compress_hook
    reducer.reduce_by(functools.partial(hook, reducer.group), str(comm_hook_type))


def _delayed(named: Sequence[tuple[str, Tensor]] | None, last: Tensor | None) -> dict[str, Tensor]:
    """The parameters whose gradients are averaged together, by name."""
    if (named is None) != (last is None):
        raise ValueError("delay_all_reduce_named_params and param_to_hook_all_reduce need to be set at the same time.")
    return dict(named or ())


def _check_hook(hook: Any) -> None:
    if not callable(hook):
        raise TypeError("Communication hook must be callable.")
    signature = inspect.signature(hook)
    parameters = list(signature.parameters.values())
    if len(parameters) > 1 and parameters[1].annotation not in (inspect.Parameter.empty, GradBucket, "GradBucket"):
        raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
    wanted = (inspect.Signature.empty, Future, Future[Tensor], "Future[Tensor]")
    if signature.return_annotation not in wanted:
        raise ValueError("Communication hook: return annotation should be torch.futures.Future[torch.Tensor].")


def _check_supported(others: dict[str, Any]) -> None:
    for name, value in others.items():
        if name not in ("mixed_precision", "skip_all_reduce_unused_params"):
            raise TypeError(f"DistributedDataParallel.__init__() got an unexpected keyword argument '{name}'")
        if name == "mixed_precision" and value is not None:
            raise unsupported("DistributedDataParallel(mixed_precision=…)", "use torch.autocast")


def _group_of(group: ProcessGroup | None, mesh: Any) -> ProcessGroup:
    if group is not None and mesh is not None:
        raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
    if mesh is not None:
        if mesh.ndim != 1:
            raise RuntimeError(f"Only 1D device mesh is supported, but got {mesh}.")
        group = mesh.get_group(mesh_dim=0)
    return resolved(group)


def _devices(device_ids: Sequence[Any] | None, output_device: Any, params: Sequence[Tensor]) -> list[Any] | None:
    """The device ids, where they mean something.

    Raises:
        ValueError: they do not fit the module's devices.
    """
    found = {p.device for p in params}
    if len({where.type for where in found}) != 1:
        kinds = {where.type for where in found}
        raise ValueError(
            "DistributedDataParallel's input module must be on the same type of devices, but input module parameters "
            f"locate in {kinds}."
        )
    if device_ids is not None and len(device_ids) > 1:
        raise ValueError("device_ids can only be None or contain a single element.")
    if (device_ids or output_device is not None) and (len(found) != 1 or not params[0].is_cuda):
        raise ValueError(
            "DistributedDataParallel device_ids and output_device arguments only work with "
            "single-device/multiple-device GPU modules or CPU modules, but got "
            f"device_ids {device_ids}, output_device {output_device}, and module parameters {found}."
        )
    return list(device_ids) if device_ids else None
