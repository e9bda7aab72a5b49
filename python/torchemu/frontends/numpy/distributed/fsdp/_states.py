"""What FullyShardedDataParallel saves and restores: whole parameters, and the optimizer's state of them."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from torchemu.frontends.numpy._grad_mode import no_grad
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import empty
from torchemu.frontends.numpy.distributed import all_gather_object
from torchemu.frontends.numpy.distributed.fsdp.api import (
    FullOptimStateDictConfig,
    FullStateDictConfig,
    OptimStateDictConfig,
    StateDictConfig,
    StateDictSettings,
    StateDictType,
)
from torchemu.frontends.numpy.nn.modules.module import Module
from torchemu.frontends.numpy.nn.parameter import Parameter
from torchemu.unsupported import unsupported

if TYPE_CHECKING:
    from torchemu.frontends.numpy.distributed.fsdp._flat import FlatHandle
    from torchemu.frontends.numpy.distributed.fsdp.fully_sharded_data_parallel import FullyShardedDataParallel

WRAPPED = "_fsdp_wrapped_module."
_WRAPPERS = (WRAPPED, "_checkpoint_wrapped_module.", "_orig_mod.")


def plain(name: str) -> str:
    """The name of a parameter without those of the wrappers around modules."""
    for wrapper in _WRAPPERS:
        name = name.replace(wrapper, "")
    return name


class StateMethods(Module):
    """The part of FullyShardedDataParallel that saves and restores."""

    _handle: FlatHandle | None
    process_group: Any

    def _prepare_states(self) -> None:
        self._summoned = False
        self._settings = StateDictSettings(
            StateDictType.FULL_STATE_DICT, FullStateDictConfig(), FullOptimStateDictConfig(offload_to_cpu=False)
        )
        self._loading: Any = None
        self._register_load_state_dict_pre_hook(_begin_loading, with_module=True)
        self.register_load_state_dict_post_hook(_end_loading)

    # -- which kind

    @staticmethod
    def set_state_dict_type(
        module: Module,
        state_dict_type: StateDictType,
        state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ) -> StateDictSettings:
        """Says what state_dict and optim_state_dict return, for all units in a module. Returns what was set before.

        Raises:
            NotImplementedError: it is not FULL_STATE_DICT.
        """
        if state_dict_type is not StateDictType.FULL_STATE_DICT:
            raise unsupported(str(state_dict_type), "use StateDictType.FULL_STATE_DICT")
        new = StateDictSettings(
            state_dict_type,
            state_dict_config or FullStateDictConfig(),
            optim_state_dict_config or FullOptimStateDictConfig(),
        )
        before = [unit._settings for unit in units_of(module)]
        for unit in units_of(module):
            unit._settings = new
        return before[0] if before else new

    @staticmethod
    def get_state_dict_type(module: Module) -> StateDictSettings:
        """What is set."""
        return units_of(module)[0]._settings

    @staticmethod
    @contextlib.contextmanager
    def state_dict_type(
        module: Module,
        state_dict_type: StateDictType,
        state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ) -> Iterator[None]:
        """As set_state_dict_type, inside the with block."""
        set_type = StateMethods.set_state_dict_type
        before = set_type(module, state_dict_type, state_dict_config, optim_state_dict_config)
        try:
            yield
        finally:
            for unit in units_of(module):
                unit._settings = before

    # -- whole parameters

    @staticmethod
    @contextlib.contextmanager
    def summon_full_params(
        module: Module,
        recurse: bool = True,
        writeback: bool = True,
        rank0_only: bool = False,
        offload_to_cpu: bool = False,
        with_grads: bool = False,
    ) -> Iterator[None]:
        """Inside it parameters are whole, and can be looked at and changed.

        Args:
            recurse: those of inner units, too.
            writeback: keep what was changed, each rank its part.
            rank0_only, offload_to_cpu: mean nothing here.
            with_grads: not supported.
        """
        if with_grads:
            raise unsupported("summon_full_params(with_grads=True)", "look at the gradients of the parts")
        units = [unit for unit in (units_of(module) if recurse else units_of(module)[:1]) if not unit._summoned]
        fulls = [_summoned(unit) for unit in units]
        try:
            yield
        finally:
            for unit, full in zip(units, fulls, strict=True):
                _dismiss(unit, full, writeback)

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters and their names; while they are whole without a word of units."""
        for name, p in super().named_parameters(prefix, recurse, remove_duplicate):
            yield (plain(name) if self._summoned else name), p

    # -- state_dict

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Whole parameters and buffers by the names they have without units. All ranks of the group call it."""
        if args:
            named = dict(zip(("destination", "prefix", "keep_vars"), args, strict=False))
            destination, prefix = named.get("destination", destination), named.get("prefix", prefix)
            keep_vars = named.get("keep_vars", keep_vars)
        found: Any = OrderedDict() if destination is None else destination
        if not hasattr(found, "_metadata"):
            found._metadata = OrderedDict()
        config = self._settings.state_dict_config
        with self.summon_full_params(self, writeback=False):
            before = set(found)
            self._fsdp_wrapped_module.state_dict(destination=found, prefix=prefix, keep_vars=keep_vars)
            for name in found.keys() - before:
                found[name] = _kept(found[name], config.offload_to_cpu)
        if getattr(config, "rank0_only", False) and self.process_group.rank() > 0:
            for name in found.keys() - before:
                del found[name]
        return found

    # -- optimizers

    @staticmethod
    def optim_state_dict(model: Module, optim: Any, optim_state_dict: Any = None, group: Any = None) -> dict[str, Any]:
        """The state of an optimizer of a module's parameters, whole, by the parameters' names.

        Args:
            model: the module that has the units.
            optim: its optimizer.
            optim_state_dict: the optimizer's state_dict(); None: that of now.
            group: means nothing here.
        """
        state = optim.state_dict() if optim_state_dict is None else optim_state_dict
        owners = _owners(model)
        entries, groups = {}, []
        for given, saved in zip(optim.param_groups, state["param_groups"], strict=True):
            names: list[str] = []
            for p, key in zip(given["params"], saved["params"], strict=True):
                parts = _whole_state(owners[id(p)], p, state["state"].get(key))
                names += parts
                entries.update({name: entry for name, entry in parts.items() if entry})
            groups.append({**saved, "params": names})
        config = units_of(model)[0]._settings.optim_state_dict_config
        if config.offload_to_cpu:
            entries = {name: {k: _kept(v, True) for k, v in entry.items()} for name, entry in entries.items()}
        if getattr(config, "rank0_only", False) and units_of(model)[0].process_group.rank() > 0:
            return {}
        return {"state": entries, "param_groups": groups}

    full_optim_state_dict = optim_state_dict

    @staticmethod
    def optim_state_dict_to_load(
        model: Module, optim: Any, optim_state_dict: dict[str, Any], is_named_optimizer: bool = False, **others: Any
    ) -> dict[str, Any]:
        """What optim_state_dict has returned, as the optimizer's load_state_dict wants it on this rank."""
        owners, state = _owners(model), optim_state_dict["state"]
        entries, groups, number = {}, [], 0
        for given, saved in zip(optim.param_groups, optim_state_dict["param_groups"], strict=True):
            numbers = []
            for p in given["params"]:
                entry = _own_state(owners[id(p)], p, state)
                if entry:
                    entries[number] = entry
                numbers.append(number)
                number += 1
            groups.append({**saved, "params": numbers})
        return {"state": entries, "param_groups": groups}


def units_of(module: Module) -> list[FullyShardedDataParallel]:
    """The units in a module."""
    from torchemu.frontends.numpy.distributed.fsdp.fully_sharded_data_parallel import FullyShardedDataParallel

    return FullyShardedDataParallel.fsdp_modules(module)


def _kept(value: Any, to_host: bool) -> Any:
    """A tensor of its own."""
    if not isinstance(value, Tensor):
        return value
    return value.detach().cpu() if to_host and not value.device.is_host else value.detach().clone()


def _begin_loading(unit: StateMethods, state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
    """Parameters become whole, also where a module around the unit is what is loaded; and names without units those of
    the modules in them."""
    if not unit._summoned:
        unit._loading = unit.summon_full_params(unit)
        unit._loading.__enter__()
    for name in [name for name in state_dict if name.startswith(prefix)]:
        rest = name.removeprefix(prefix)
        if not rest.startswith(WRAPPED):
            state_dict[prefix + WRAPPED + rest] = state_dict.pop(name)


def _end_loading(unit: StateMethods, _: Any) -> None:
    """Each rank keeps its part."""
    loading, unit._loading = unit._loading, None
    if loading is not None:
        loading.__exit__(None, None, None)


@no_grad()
def _summoned(unit: FullyShardedDataParallel) -> Tensor | None:
    """Makes a unit's parameters whole. Returns the vector that they are parts of; None where there is none."""
    unit._summoned = True
    handle = unit._handle
    if handle is None:
        return None
    handle.streams.begin()
    full = handle.whole(handle.shard.data)
    unit.module._parameters.pop("_flat_param", None)
    for place, part in handle.parts(full):
        whole = Parameter(part, place.param.requires_grad)
        for module, name in place.owners:
            vars(module).pop(name, None)
            module._parameters[name] = whole
    return full


@no_grad()
def _dismiss(unit: FullyShardedDataParallel, full: Tensor | None, writeback: bool) -> None:
    unit._summoned = False
    handle = unit._handle
    if handle is None or full is None:
        return
    if writeback:
        for place, part in handle.parts(full):
            module, name = place.owners[0]
            found = module._parameters.get(name)
            if found is not None and found.data_ptr() != part.data_ptr():
                part.copy_(found.data)
        handle.adopt(full)
    for place in handle.places:
        for module, name in place.owners:
            module._parameters.pop(name, None)
    handle.show_shards()
    if not handle.as_originals:
        unit.module._parameters["_flat_param"] = handle.shard


# -- the optimizer's state

Owner = tuple["FlatHandle | None", dict[str, Any]]
"""Of a parameter that an optimizer has: the vector that it is in, and the places of the original ones by name."""


def _owners(model: Module) -> dict[int, Owner]:
    found: dict[int, Owner] = {}
    for path, module in model.named_modules():
        handle = getattr(module, "_handle", None) if module in set(units_of(model)) else None
        if handle is None:
            continue
        prefix = plain(f"{path}." if path else "")
        places = {prefix + plain(place.path): place for place in handle.places}
        if handle.as_originals:
            found.update({id(place.param): (handle, {name: place}) for name, place in places.items()})
        else:
            found[id(handle.shard)] = handle, places
    known = {id(place.param) for handle, _ in found.values() if handle for place in handle.places}
    for name, p in model.named_parameters():
        if id(p) not in found and id(p) not in known:
            found[id(p)] = None, {plain(name): None}
    return found


def _whole_state(owner: Owner, p: Tensor, entry: dict[str, Any] | None) -> dict[str, dict[str, Any]]:
    """The state of each original parameter that is in one of an optimizer's, by name."""
    handle, places = owner
    found: dict[str, dict[str, Any]] = {name: {} for name in places}
    entry = dict(entry or {})
    for key, kind in _kinds(handle, p, entry).items():
        if handle is None or kind is None:
            wholes = dict.fromkeys(places, entry.get(key))
        else:
            whole = handle.whole_of(p, entry.get(key, empty(0, dtype=kind, device=handle.shard.device)))
            wholes = {name: whole[place.begin : place.end].view(place.shape) for name, place in places.items()}
        for name, value in wholes.items():
            found[name][key] = _kept(value, False)
    return found


def _kinds(handle: FlatHandle | None, p: Tensor, entry: dict[str, Any]) -> dict[str, Any]:
    """What is in a state: the dtype of what each rank has a part of, None for what all have. A rank that has nothing of
    an original parameter learns of it from others, whose numbers it gets, too."""
    kinds: dict[str, Any] = {}
    for key, value in entry.items():
        is_part = isinstance(value, Tensor) and value.shape == p.shape and value.dim() > 0
        kinds[key] = value.dtype if is_part else None
    if handle is None or not (handle.as_originals and handle.splits):
        return kinds
    mine = {key: (kind, entry[key] if kind is None else None) for key, kind in kinds.items()}
    everybody: list[Any] = [None] * handle.group.size()
    all_gather_object(everybody, mine, group=handle.group)
    for theirs in everybody:
        for key, (kind, value) in theirs.items():
            kinds.setdefault(key, kind)
            if kind is None:
                entry.setdefault(key, value)
    return kinds


def _own_state(owner: Owner, p: Tensor, state: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """This rank's part of the state of the original parameters that are in one of an optimizer's."""
    handle, places = owner
    entries = {name: state[name] for name in places if name in state}
    if not entries:
        return {}
    first = next(iter(entries.values()))
    if handle is None:
        return first
    found = {}
    for key, value in first.items():
        shape = places[next(iter(entries))].shape
        if isinstance(value, Tensor) and tuple(value.shape) == shape and value.dim() > 0:
            found[key] = handle.part_of(p, {name: entry[key] for name, entry in entries.items()}, places)
        else:
            found[key] = value
    return found
