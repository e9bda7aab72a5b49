"""State that PyTorch keeps once for a process, kept once for each rank."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from typing import Any

import torch
from torch.distributed import device_mesh
from torch.distributed import distributed_c10d as c10d

from torchemu import runtime
from torchemu.frontends.torch.session import Session


class RankWorld:
    """c10d's state. Its attributes are those of the rank that runs."""

    pg_config_info = c10d._World.pg_config_info

    def __init__(self) -> None:
        self.default_pg = None
        self.pg_map: dict[Any, Any] = {}
        self.pg_names: dict[Any, Any] = {}
        self.pg_group_ranks: dict[Any, Any] = {}
        self.pg_backend_config: dict[Any, Any] = {}
        self.group_count = 0
        self.tags_to_pg: dict[Any, Any] = {}
        self.pg_to_tag: dict[Any, Any] = {}
        self.pg_coalesce_state: dict[Any, Any] = {}
        self.pg_flight_recorder_hooks: dict[Any, Any] = {}
        self.comms: list[Any] = []


class _Own:
    """One rank's part of PyTorch's state while others run; at first, what it begins with."""

    def __init__(self, seed: int) -> None:
        self.world = vars(RankWorld())
        self.dtype = torch.float32
        self.seed: int | None = seed  # until it has run
        self.generator: torch.Tensor | None = None


class State:
    """Exchanges it.

    Args:
        run: the run.
        seed: of the ranks' generators.
    """

    def __init__(self, run: Session, seed: int) -> None:
        self._seed = seed
        self._world = RankWorld()
        self._own: dict[runtime.Context | None, _Own] = {None: _Own(seed)}
        run.replace(c10d, "_world", self._world)
        run.on_switch.append(self.exchange)

    def of(self, context: runtime.Context | None) -> _Own:
        """Returns a rank's part; outside of ranks, nobody's."""
        own = self._own.get(context)
        if own is None:
            own = self._own[context] = _Own(self._seed)
        return own

    def exchange(self, before: runtime.Context | None, after: runtime.Context | None) -> None:
        """Puts a rank's in place of another one's."""
        generator = torch.default_generator
        last, own = self.of(before), self.of(after)
        last.generator, last.dtype = generator.get_state(), torch.get_default_dtype()
        if own.generator is not None:
            generator.set_state(own.generator)
        elif own.seed is not None and after is not None:
            generator.manual_seed(own.seed)
        if own.dtype is not last.dtype:
            torch.set_default_dtype(own.dtype)
        self._world.__dict__ = own.world


def install(run: Session, seed: int = 0) -> None:
    """Gives each rank its own, until the run ends."""
    State(run, seed)
    torch._C._distributed_c10d._set_thread_isolation_mode(True)
    run.stack.callback(torch._C._distributed_c10d._set_thread_isolation_mode, False)
    run.on_turn.append(_know_groups)
    _keep_groups_out_of_defaults(run)
    _tell_meshes_apart(run)
    _set_guard_once(run)
    run.on_begin.append(lambda context: torch.autograd.grad_mode.set_multithreading_enabled(False).__enter__())


def _know_groups() -> None:
    """Lets the running thread find the groups that other threads of its rank have made, and forget what is no more."""
    registry, known = torch._C._distributed_c10d, vars(_groups)
    names = {name: group for group, name in c10d._world.pg_names.items()}
    if known == names:
        return
    for name in [name for name, group in known.items() if names.get(name) is not group]:
        with contextlib.suppress(RuntimeError):
            registry._unregister_process_group(name)
    for name in names.keys() - known.keys():
        try:
            registry._resolve_process_group(name)
        except RuntimeError:
            registry._register_process_group(name, names[name])
    known.clear()
    known.update(names)


_groups = threading.local()
"""The groups that each thread can find, by their names: PyTorch's table is a thread's."""


def _keep_groups_out_of_defaults(run: Session) -> None:
    """Lets an installed package that is loaded for all ranks see no default group: what it kept, as the default of a
    parameter, say, would be that of the rank which loads it. None means the running rank's."""
    world = c10d._WorldMeta.WORLD

    def get(cls: Any) -> Any:
        code = sys._getframe(1).f_code
        return None if code.co_name == "<module>" and code.co_filename.startswith(_PACKAGES) else world.fget(cls)

    run.replace(c10d._WorldMeta, "WORLD", property(get, world.fset))


_PACKAGES = os.path.dirname(os.path.dirname(torch.__file__)) + os.sep


def _tell_meshes_apart(run: Session) -> None:
    """Meshes of different ranks are never equal: what is cached for one is not for the other."""
    run.replace(device_mesh.DeviceMesh, "_thread_id", property(_rank_of_mesh, lambda mesh, number: None))


def _set_guard_once(run: Session) -> None:
    """Lets PyTorch compute shapes without CUDA's driver: a second thread that prepared that would crash."""
    name = "_ensureCUDADeviceGuardSet"
    if not _guard_set and hasattr(torch._C, name):
        getattr(torch._C, name)()
        _guard_set.append(True)
    run.replace(torch._C, name, lambda: None)


_guard_set: list[bool] = []


def _rank_of_mesh(mesh: Any) -> int | None:
    rank: int | None = vars(mesh).get("_torchemu_rank")
    if rank is None:
        context = runtime.running()
        rank = vars(mesh)["_torchemu_rank"] = None if context is None else context.rank
    return rank
