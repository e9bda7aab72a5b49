"""Changes of a run to torch.distributed.rpc and torch.distributed.autograd: what they take from C++ is each rank's."""

from __future__ import annotations

import collections
import functools
import pickle
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc
from torch._C import _distributed_autograd, _distributed_rpc
from torch.distributed.rpc import api, backend_registry, internal

from torchemu.frontends.torch.packages import Variables
from torchemu.frontends.torch.rpc import agents, calls, contexts, optimizers, passes, references, waits
from torchemu.frontends.torch.session import Session
from torchemu.runtime.rank_local import RankTable

_RPC: dict[str, Any] = {
    "PyRRef": references.PyRRef,
    "TensorPipeAgent": agents.TensorPipeAgent,
    "_cleanup_python_rpc_handler": lambda: None,
    "_delete_all_user_and_unforked_owner_rrefs": lambda *_: None,
    "_destroy_rref_context": lambda ignore_leak: None,
    "_get_current_rpc_agent": agents.current,
    "_invoke_remote_builtin": references.remote_operation,
    "_invoke_remote_python_udf": references.remote_python,
    "_invoke_remote_torchscript": references.remote_script,
    "_invoke_rpc_builtin": calls.invoke_operation,
    "_invoke_rpc_python_udf": calls.invoke_python,
    "_invoke_rpc_torchscript": calls.invoke_script,
    "_is_current_rpc_agent_set": agents.is_set,
    "_reset_current_rpc_agent": agents.reset,
    "_rref_context_get_debug_info": references.debug_info,
    "_set_and_start_rpc_agent": agents.Agent.begin,
    "_set_profiler_node_id": lambda number: None,
    "_set_rpc_timeout": agents.set_rpc_timeout,
    "get_rpc_timeout": agents.get_rpc_timeout,
}
"""The names that torch.distributed.rpc takes from C++, and what takes their place."""

_AUTOGRAD: dict[str, Any] = {
    "DistAutogradContext": contexts.DistAutogradContext,
    "_current_context": contexts.current,
    "_get_debug_info": contexts.debug_info,
    "_get_max_id": contexts.most,
    "_init": contexts.begin,
    "_is_valid_context": contexts.is_valid,
    "_new_context": contexts.new,
    "_release_context": contexts.release,
    "_retrieve_context": contexts.retrieve,
    "backward": passes.backward,
    "get_gradients": contexts.get_gradients,
}
"""The names that torch.distributed.autograd takes from C++, and what takes their place."""

_VARIABLES = {
    rpc: ("_init_counter", "rendezvous_iterator"),
    api: ("_ALL_WORKER_NAMES", "_all_gather_sequence_id", "_default_pickler"),
}
"""Variables of PyTorch's modules that each rank has for itself."""


class _Meeting:
    """A meeting of workers, which wait for each other as they begin. PyTorch makes a process group for that.

    Args:
        store: that they share.
        rank: the number of this one.
        size: how many there are.
    """

    def __init__(self, store: Any, rank: int, size: int) -> None:
        self._store, self._rank, self._size = store, rank, size

    def told(self, value: Any) -> list[Any]:
        """Returns what each worker has given this."""
        self._store.set(f"told/{self._rank}", pickle.dumps(value))
        return [pickle.loads(self._store.get(f"told/{number}")) for number in range(self._size)]

    def barrier(self) -> _Meeting:
        """Returns what waits for all workers."""
        return self

    def wait(self) -> None:
        """Waits for all workers."""
        if self._store.add("come", 1) == self._size:
            self._store.set("all", "come")
        self._store.wait(["all"])


def _exchanged(name: str, device_count: int, device_maps: Any, devices: Any, group: _Meeting) -> Any:
    """Returns the reverse device maps, and the devices, of a worker, after all have told theirs."""
    told = group.told((name, device_count, device_maps, devices))
    names = [about[0] for about in told]
    maps = {about[0]: about[2] for about in told}
    backend_registry._validate_device_maps(
        names, {about[0]: about[1] for about in told}, maps, {about[0]: about[3] for about in told}
    )
    reverse = backend_registry._create_reverse_mapping(name, names, maps)
    return reverse, backend_registry._create_device_list(devices, device_maps, reverse)


def install(run: Session) -> None:
    """Makes both each rank's own, until the run ends."""
    for owners, names in (
        ((_distributed_rpc, rpc, api, internal), _RPC),
        ((_distributed_autograd, dist_autograd), _AUTOGRAD),
    ):
        for name, value in names.items():
            for owner in owners:
                if hasattr(owner, name):
                    run.replace(owner, name, value)
    for module in (rpc, api):
        run.replace(module, "RRef", references.RRef)
    run.replace(api, "threading", waits.Threading())
    run.replace(api, "_get_should_profile", lambda: False)
    run.replace(
        api, "_all_gather_sequence_id_to_states", RankTable(lambda: collections.defaultdict(api.AllGatherStates))
    )
    run.replace(backend_registry, "_init_process_group", _Meeting)
    run.replace(backend_registry, "_tensorpipe_exchange_and_check_all_device_maps", _exchanged)
    run.replace(rpc, "init_rpc", _beginning(run, rpc.init_rpc))
    run.on_load["torch.distributed.optim.optimizer"] = functools.partial(_optimize_in_python, run)
    ddp = torch.nn.parallel.DistributedDataParallel
    run.replace(ddp, "_ddp_init_helper", _noting_models(ddp._ddp_init_helper))


def _beginning(run: Session, init_rpc: Callable[..., None]) -> Callable[..., None]:
    """init_rpc, after which variables of PyTorch's modules are exchanged when ranks change."""
    begun: list[Variables] = []

    @functools.wraps(init_rpc)
    def init(*args: Any, **kwargs: Any) -> None:
        if run.world.calls is not None:
            raise RuntimeError(
                "torch.distributed.rpc.init_rpc: with --mirror ranks do not call each other; leave it out"
            )
        if not begun:
            begun.append(Variables())
            begun[0].note_names(_VARIABLES)
            run.on_switch.append(begun[0].exchange)
        init_rpc(*args, **kwargs)

    return init


def _optimize_in_python(run: Session, module: Any) -> None:
    run.replace(module, "_new_script_local_optimizer", optimizers.new_local_optimizer)
    run.replace(module, "_script_local_optimizer_step", optimizers.step)
    run.replace(module, "RRef", references.RRef)
    run.replace(module._LocalOptimizer, "global_lock", waits.Turns())


def _noting_models(init: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(init)
    def begin(self: Any, parameters: Any, *args: Any, **kwargs: Any) -> None:
        passes.note_model(parameters)
        init(self, parameters, *args, **kwargs)

    return begin
