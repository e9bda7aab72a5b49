"""torch.distributed.fsdp.fully_sharded_data_parallel: each rank keeps a part of a module's parameters."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from torchemu.frontends.numpy import _settings
from torchemu.frontends.numpy._grad_mode import no_grad
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.from_data import tensor
from torchemu.frontends.numpy.distributed import ProcessGroup, ReduceOp, all_reduce, broadcast
from torchemu.frontends.numpy.distributed.fsdp._flat import FlatHandle, FlatParameter, Regathering, Sharding, Streams
from torchemu.frontends.numpy.distributed.fsdp._groups import groups_of
from torchemu.frontends.numpy.distributed.fsdp._states import StateMethods
from torchemu.frontends.numpy.distributed.fsdp.api import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    LocalOptimStateDictConfig,
    LocalStateDictConfig,
    MixedPrecision,
    OptimStateDictConfig,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictConfig,
    StateDictSettings,
    StateDictType,
)
from torchemu.frontends.numpy.distributed.fsdp.wrap import wrap_parts
from torchemu.frontends.numpy.nn.modules.module import Module
from torchemu.unsupported import unsupported

__all__ = [
    "BackwardPrefetch",
    "CPUOffload",
    "FlatParameter",
    "FullOptimStateDictConfig",
    "FullStateDictConfig",
    "FullyShardedDataParallel",
    "LocalOptimStateDictConfig",
    "LocalStateDictConfig",
    "MixedPrecision",
    "OptimStateDictConfig",
    "ShardedOptimStateDictConfig",
    "ShardedStateDictConfig",
    "ShardingStrategy",
    "StateDictConfig",
    "StateDictSettings",
    "StateDictType",
]

_WITHOUT_REGATHERING = (
    ShardingStrategy.SHARD_GRAD_OP,
    ShardingStrategy.NO_SHARD,
    ShardingStrategy._HYBRID_SHARD_ZERO2,
)


_NO_SHARD = (
    "The `NO_SHARD` sharding strategy is deprecated. If having issues, please use `DistributedDataParallel` instead."
)


class FullyShardedDataParallel(StateMethods, Module):
    """A module of whose parameters, gradients and optimizer's state each rank of a group keeps a part.

    Parameters are gathered before forward and before backward, and gradients reduced and split behind that; so does
    each part of the module that auto_wrap_policy makes a unit of its own. Both run on streams beside the computation.

    Args:
        module: the module.
        process_group: the ranks; for hybrid strategies two groups, of those that share and of those that have the same;
            None: the default group.
        sharding_strategy: a ShardingStrategy; None: FULL_SHARD.
        cpu_offload: not supported.
        auto_wrap_policy: which parts become units; see torch.distributed.fsdp.wrap.
        backward_prefetch: BACKWARD_PRE gathers the parameters of the next unit of a backward pass before the gradients
            of this one are reduced.
        forward_prefetch, limit_all_gathers: mean nothing here: hosts run ahead of devices.
        mixed_precision: a MixedPrecision.
        ignored_modules, ignored_states: modules, or modules or parameters, that are left alone.
        param_init_fn: not supported.
        device_id: the device that the module is moved to.
        sync_module_states: begin with the parameters and buffers of the first rank.
        use_orig_params: let the program see the original parameters, each this rank's part, as vectors.
        device_mesh: a mesh of one dimension in the place of process_group, or of two for hybrid strategies.

    Raises:
        ValueError: parameters differ in dtype, or, without use_orig_params, in requires_grad; both a group and a mesh
            are given. NotImplementedError: what is not supported.
    """

    def __init__(
        self,
        module: Module,
        process_group: Any = None,
        sharding_strategy: ShardingStrategy | None = None,
        cpu_offload: CPUOffload | None = None,
        auto_wrap_policy: Any = None,
        backward_prefetch: BackwardPrefetch | None = BackwardPrefetch.BACKWARD_PRE,
        mixed_precision: MixedPrecision | None = None,
        ignored_modules: Iterable[Module] | None = None,
        param_init_fn: Callable[[Module], None] | None = None,
        device_id: Any = None,
        sync_module_states: bool = False,
        forward_prefetch: bool = False,
        limit_all_gathers: bool = True,
        use_orig_params: bool = False,
        ignored_states: Iterable[Any] | None = None,
        device_mesh: Any = None,
    ) -> None:
        super().__init__()
        _check_supported(cpu_offload, param_init_fn)
        strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        if strategy is ShardingStrategy.NO_SHARD:
            warnings.warn(_NO_SHARD, FutureWarning, stacklevel=2)
        group, replicas = groups_of(process_group, device_mesh, strategy)
        self.process_group, self.sharding_strategy = group, strategy
        self.backward_prefetch = backward_prefetch
        left_alone = [*(ignored_modules or ()), *(ignored_states or ())]
        if device_id is not None:
            module.to(device_id)
        if sync_module_states:
            _synchronize(module, group, replicas)
        self.mixed_precision = mixed_precision or MixedPrecision()
        self._sharding = Sharding(
            group,
            replicas,
            splits=strategy is not ShardingStrategy.NO_SHARD,
            regathers=strategy not in _WITHOUT_REGATHERING,
            as_originals=use_orig_params,
            precision=self.mixed_precision,
        )
        if auto_wrap_policy is not None:
            self._wrap_parts(module, auto_wrap_policy, left_alone)
        self._fsdp_wrapped_module = module
        self._handle = self._flattened(left_alone)
        self._is_root: bool | None = None
        self._prepare_states()

    def _wrap_parts(self, module: Module, policy: Any, left_alone: Sequence[Any]) -> None:
        """Makes units of parts of the module, with the same settings."""
        shares = self._sharding
        settings: dict[str, Any] = {
            "sharding_strategy": self.sharding_strategy,
            "mixed_precision": self.mixed_precision,
            "use_orig_params": shares.as_originals,
            "backward_prefetch": self.backward_prefetch,
            "ignored_states": left_alone,
            "process_group": shares.group if shares.replicas is None else (shares.group, shares.replicas),
        }
        ignored = {each for each in left_alone if isinstance(each, Module)}
        wrap_parts(module, policy, ignored, lambda part, **own: type(self)(part, **{**settings, **own}))

    def _flattened(self, left_alone: Sequence[Any]) -> FlatHandle | None:
        """The parameters that belong to no inner unit, as a vector; None without any."""
        ignored = {id(each) for each in left_alone if isinstance(each, Tensor)}
        for each in left_alone:
            if isinstance(each, Module):
                ignored |= {id(p) for p in each.parameters()}
        named = [entry for entry in _own(self.module) if id(entry[1]) not in ignored]
        if not named:
            return None
        _check_uniform([p for _, p, _ in named], self._sharding.as_originals)
        handle = FlatHandle(named, self._sharding)
        if not self._sharding.as_originals:
            self.module._parameters["_flat_param"] = handle.shard
        return handle

    # -- what it is

    @property
    def module(self) -> Any:
        """The module itself."""
        return self._fsdp_wrapped_module

    @property
    def hidden_numel(self) -> int:
        """Elements of parameters that parameters() does not show on this rank."""
        if self._handle is None:
            return 0
        numel = sum(place.end - place.begin for place in self._handle.places)
        seen = [p.param.numel() for p in self._handle.places] if self._sharding.as_originals else [self._handle.length]
        return numel - sum(seen)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("_fsdp_wrapped_module"), name)

    def __getitem__(self, key: int) -> Any:
        return self.module[key]

    @staticmethod
    def fsdp_modules(module: Module, root_only: bool = False) -> list[FullyShardedDataParallel]:
        """The units in a module, itself among them.

        Args:
            root_only: only those that are in no other.
        """
        units = [each for each in module.modules() if isinstance(each, FullyShardedDataParallel)]
        if not root_only:
            return units
        inner = {id(part) for unit in units for part in unit.modules() if part is not unit}
        return [unit for unit in units if id(unit) not in inner]

    def check_is_root(self) -> bool:
        """Whether it is in no other unit, as far as forward passes have shown."""
        self._find_roots()
        return bool(self._is_root)

    def _find_roots(self) -> None:
        """The unit whose forward is called first is the outermost one."""
        if self._is_root is not None:
            return
        self._streams = Streams(self.backward_prefetch is BackwardPrefetch.BACKWARD_PRE)
        for unit in self.fsdp_modules(self):
            unit._is_root = unit is self
            if unit._handle is not None:
                unit._handle.streams = self._streams
        if self._handle is not None:
            self._handle.regathers = False
        kind = self.mixed_precision.buffer_dtype
        if kind is not None:
            for buffer in self.buffers():
                if buffer.is_floating_point():
                    buffer.data = buffer.data.to(kind)

    def apply(self, fn: Callable[[Module], Any]) -> Any:
        """Calls a function with each module in it, whose parameters are whole meanwhile."""
        with self.summon_full_params(self):
            return super().apply(fn)

    # -- passes

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module returns."""
        self._find_roots()
        if self._is_root:
            self._streams.begin()
        args, kwargs = self._cast(args), self._cast(kwargs)
        handle = self._handle
        if handle is None or self._summoned:
            return self.module(*args, **kwargs)
        full = handle.unshard()
        try:
            output = self.module(*args, **kwargs)
        finally:
            handle.show_shards()
        if _settings.current().gradients and full.requires_grad:
            regathering = Regathering(handle, full)
            handle.streams.expect(regathering)
            _before_backward(output, regathering.finish)
        return output

    def _cast(self, value: Any) -> Any:
        """Arguments, in the dtype that there is calculated in."""
        precision = self.mixed_precision
        wanted = precision.cast_root_forward_inputs if self._is_root else precision.cast_forward_inputs
        if precision.param_dtype is None or not wanted:
            return value
        return _mapped(value, lambda t: t.to(precision.param_dtype) if t.is_floating_point() else t)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Inside it gradients are added up on each rank; the first pass behind it reduces the sums."""
        handles = [unit._handle for unit in self.fsdp_modules(self) if unit._handle is not None]
        before = [handle.syncs for handle in handles]
        for handle in handles:
            handle.syncs = False
        try:
            yield
        finally:
            for handle, syncs in zip(handles, before, strict=True):
                handle.syncs = syncs

    @no_grad()
    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """Scales the gradients such that their norm, as if all were one vector, is not greater.

        Args:
            max_norm: the greatest norm.
            norm_type: of which kind; inf is that of the greatest.

        Returns:
            The norm before.
        """
        handles = [unit._handle for unit in self.fsdp_modules(self) if unit._handle is not None]
        grads = [grad for handle in handles for grad in handle.grads]
        whole = [grad for handle in handles if not handle.splits for grad in handle.grads]
        known = {id(grad) for grad in grads}
        seen = {id(p): p.grad for p in self.parameters() if p.grad is not None and id(p.grad) not in known}
        whole += seen.values()
        place = next((p.device for p in self.parameters()), None)  # also of a rank that has no gradients
        total = _norm(grads, whole, norm_type, self.process_group, tensor(0.0, device=place))
        scale = (max_norm / (total + 1e-6)).clamp(max=1.0)
        for grad in [*grads, *seen.values()]:
            grad.mul_(scale.to(grad.device, grad.dtype))
        return total


def _norm(
    grads: Sequence[Tensor], whole: Sequence[Tensor], kind: float, group: ProcessGroup, nothing: Tensor
) -> Tensor:
    """That of gradients of which each rank has a part, and of those that all have; nothing is that of none."""
    same = {id(grad) for grad in whole}
    parts = [grad.float() for grad in grads if id(grad) not in same]
    others = [grad.float() for grad in whole]
    sizes = [nothing.clone(), nothing.clone()]
    for number, part in enumerate((parts, others)):
        for grad in part:
            if grad.numel() and kind == float("inf"):
                sizes[number] = sizes[number].maximum(grad.abs().max())
            elif grad.numel():
                sizes[number] = sizes[number] + grad.abs().pow(kind).sum()
    all_reduce(sizes[0], ReduceOp.MAX if kind == float("inf") else ReduceOp.SUM, group=group)
    return sizes[0].maximum(sizes[1]) if kind == float("inf") else (sizes[0] + sizes[1]).pow(1 / kind)


def _own(module: Module) -> list[tuple[str, Tensor, tuple[tuple[Module, str], ...]]]:
    """The parameters that are in no unit: path, parameter, and the modules that have it, each with its name there."""
    found: dict[int, tuple[str, Tensor, list[tuple[Module, str]]]] = {}

    def look(each: Module, path: str) -> None:
        for name, p in each._parameters.items():
            if p is not None:
                found.setdefault(id(p), (path + name, p, []))[2].append((each, name))
        for name, child in each._modules.items():
            if child is not None and not isinstance(child, FullyShardedDataParallel):
                look(child, f"{path}{name}.")

    look(module, "")
    return [(path, p, tuple(owners)) for path, p, owners in found.values()]


def _check_supported(offload: CPUOffload | None, init: Any) -> None:
    if offload is not None and offload.offload_params:
        raise unsupported("FullyShardedDataParallel(cpu_offload=CPUOffload(offload_params=True))", "leave it out")
    if init is not None:
        raise unsupported("FullyShardedDataParallel(param_init_fn=…)", "make the module on a device")


def _check_uniform(params: Sequence[Tensor], as_originals: bool) -> None:
    kinds = {p.dtype for p in params}
    if len(kinds) > 1:
        found = "{" + ", ".join(sorted(str(kind) for kind in kinds)) + "}"
        raise ValueError(f"Must flatten tensors with uniform dtype but got {found}")
    if not all(p.is_floating_point() for p in params):
        raise ValueError("Cannot flatten integer dtype tensors")
    if len({p.requires_grad for p in params}) > 1 and not as_originals:
        raise ValueError("Must flatten tensors with uniform `requires_grad` when `use_orig_params=False`")


@no_grad()
def _synchronize(module: Module, group: ProcessGroup, replicas: ProcessGroup | None) -> None:
    for t in [*module.parameters(), *module.buffers()]:
        for ranks in filter(None, (group, replicas)):
            broadcast(t.data, group=ranks, group_src=0)


def _mapped(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """A structure, with another tensor in the place of each."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[_mapped(each, change) for each in value])
    if isinstance(value, list | tuple):
        return type(value)([_mapped(each, change) for each in value])
    if isinstance(value, dict):
        return type(value)((key, _mapped(each, change)) for key, each in value.items())
    return value


def _before_backward(output: Any, call: Callable[[], None]) -> None:
    """Calls a function when the first gradient gets to the output."""
    waiting = [call]

    def arrived(grad: Tensor) -> None:
        if waiting:
            waiting.pop()()

    def watched(t: Tensor) -> Tensor:
        if t.requires_grad:
            t.register_hook(arrived)
        return t

    _mapped(output, watched)
