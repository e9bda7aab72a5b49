"""Agents of remote procedure calls: a rank's part, in the place of the agent in C++ that a process has."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
from torch._C._distributed_rpc import WorkerInfo

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.frontends.torch.rpc import clusters
from torchemu.runtime import threads
from torchemu.runtime.rank_local import RankLocal

PS_PER_MS = 10**9
DEFAULT_MS = 60_000
"""PyTorch's own limit of a call. It is nobody's plan: a call that cannot end is in the report of a deadlock."""


class Slots:
    """The threads that run what others call, as far as one rank has them at once.

    Args:
        count: how many.
    """

    def __init__(self, count: int) -> None:
        self.count = self.free = count
        self._places = threads.Places()

    def __enter__(self) -> None:
        if self.free:
            self.free -= 1
        else:
            self._places.is_called(f"one of {self.count} threads for RPCs (num_worker_threads)", None)

    def __exit__(self, *_: object) -> None:
        if not self._places.call_next():
            self.free += 1


class TensorPipeAgent:
    """One rank's agent, by PyTorch's name.

    Args:
        store: by which workers find each other.
        name: of the worker.
        worker_id: its number.
        world_size: how many workers there are; None where they come and go.
        opts: the options.
        reverse_device_maps: for what others have sent, the device for each of this rank's, by their names.
        devices: of this rank, that are used.

    Attributes:
        id, name, options, reverse_device_maps: the arguments.
        info: what others know of the worker.
        rank: the worker's in the World.
        context: of the rank.
        cluster: what the agents have in common.
        stream: the core's, on which the messages of the rank begin.
        ms: the limit of a call in milliseconds, where none is given.
        slots: the threads for what others call.
        is_running: it has not shut down.
        pending: is called for each call that has no answer yet, when the agent shuts down.
    """

    def __init__(
        self,
        store: Any,
        name: str,
        worker_id: int,
        world_size: int | None,
        opts: Any,
        reverse_device_maps: dict[str, dict[torch.device, torch.device]],
        devices: list[torch.device],
    ) -> None:
        self._store, self.options, self._size = store, opts, world_size
        self.reverse_device_maps, self._devices = reverse_device_maps, devices
        self.cluster = clusters.of_store(store)
        self.context = runtime.current()
        self.rank, self.id, self.name = self.context.rank, worker_id, name
        self.stream: int = go.NewStream(self.context.world.handle, self.rank)
        self.ms = milliseconds(opts.rpc_timeout)
        self.slots = Slots(opts.num_worker_threads)
        self.is_running, self.pending = True, dict[object, Callable[[str], None]]()
        self._has_begun, self._places = False, threads.Places()
        self._numbers = itertools.count()
        others = [*self.cluster.agents.values()]
        self.cluster.agents[worker_id] = self
        self.info = WorkerInfo(name, worker_id)
        self._infos = {info.id: info for info in self._known(self.info, others)}

    def _known(self, own: WorkerInfo, others: list[TensorPipeAgent]) -> list[WorkerInfo]:
        """Returns the workers there are, after this one has told its name. Others are those that were there before it.

        Raises:
            RuntimeError: two have one name.
        """
        if self._size is None:
            return [own, *(WorkerInfo(other.name, other.id) for other in others if other.is_running)]
        self._store.set(f"name/{own.id}", own.name)
        found = [WorkerInfo(self._store.get(f"name/{n}").decode(), n) for n in range(self._size)]
        numbers: dict[str, int] = {}
        for info in found:
            if numbers.setdefault(info.name, info.id) != info.id:
                raise RuntimeError(
                    f"RPC worker name {info.name} is not unique. Workers {numbers[info.name]} and {info.id} share the "
                    "same name."
                )
        return found

    def begin(self) -> None:
        """Makes it the running rank's, and lets those go on that others have sent it messages for."""
        self._has_begun = True
        _current.get()[:] = [self]
        self._places.call_all()

    def await_begin(self) -> None:
        """Blocks the running thread, of its rank, until it has begun."""
        if not self._has_begun:
            self._places.is_called("the begin of an RPC agent", None)

    def number(self) -> int:
        """Returns a number that the rank gives to one thing only."""
        return next(self._numbers)

    @property
    def is_there(self) -> bool:
        """Says whether it hears messages: it has not shut down, nor has the rank's program ended."""
        tasks = self.context.tasks
        return self.is_running and tasks is not None and tasks.exit_codes[self.rank] is None

    def get_worker_info(self, worker: str | int | None = None) -> WorkerInfo:
        """Returns what is known of a worker, by its name or number; of this one, if none is given.

        Raises:
            RuntimeError: there is no such worker.
        """
        if worker is None:
            return self.info
        kind = "name" if isinstance(worker, str) else "id"
        for info in self._infos.values():
            if worker == (info.name if kind == "name" else info.id):
                return info
        raise RuntimeError(f"name:{self.name},rank:{self.id} could not find destination {kind} {worker}")

    def get_worker_infos(self) -> list[WorkerInfo]:
        """Returns what is known of each worker."""
        return [self._infos[number] for number in sorted(self._infos)]

    def _get_device_map(self, dst: WorkerInfo) -> dict[torch.device, torch.device]:
        found: dict[torch.device, torch.device] = self.options.device_maps.get(dst.name, {})
        return found

    def _get_backend_options(self) -> Any:
        return self.options

    def _update_group_membership(
        self,
        worker_info: WorkerInfo,
        my_devices: list[torch.device],
        reverse_device_map: dict[str, dict[torch.device, torch.device]],
        is_join: bool,
    ) -> None:
        if not is_join:
            self._infos.pop(worker_info.id, None)
            return
        self._infos[worker_info.id] = worker_info
        self.reverse_device_maps = {**self.reverse_device_maps, **reverse_device_map}
        self._devices = [*{*self._devices, *my_devices}]

    def get_debug_info(self) -> dict[str, str]:
        """Returns figures of the agent."""
        busy = self.slots.count - self.slots.free
        return {
            "agent.num_idle_threads": str(self.slots.free),
            "agent.thread_pool_size": str(self.slots.count),
            "agent.server_active_calls": str(busy),
            "agent.server_active_async_calls": "0",
            "agent.client_active_calls": str(len(self.pending)),
        }

    get_metrics = get_debug_info

    def join(self, shutdown: bool = False, timeout: float = 0) -> None:
        """Waits until all workers have come here, where their number is fixed, and no call goes on."""
        if self.is_static_group:
            ms = milliseconds(timeout)
            self.cluster.leave(self, ms * PS_PER_MS if ms else None)

    def sync(self) -> None:
        """Does nothing: what an agent has told the others they know."""

    def shutdown(self) -> None:
        """Ends the agent: others reach it no more, and what it has called is not answered."""
        self.is_running = False
        for end in [*self.pending.values()]:
            end("the RPC agent has shut down, and no answer has come")

    @property
    def is_static_group(self) -> bool:
        """Says whether the number of workers is fixed."""
        return self._size is not None

    @property
    def store(self) -> Any:
        """The store by which workers find each other."""
        return self._store


Agent = TensorPipeAgent


def milliseconds(seconds: float | timedelta) -> int:
    """Returns whole milliseconds, by which PyTorch counts limits; 0 is no limit."""
    return int((seconds.total_seconds() if isinstance(seconds, timedelta) else seconds) * 1000)


_current: RankLocal[list[Agent]] = RankLocal(list)


def is_set() -> bool:
    """Says whether the running rank has an agent."""
    return bool(_current.get())


def current() -> Agent:
    """Returns the running rank's agent.

    Raises:
        RuntimeError: it has none.
    """
    found = _current.get()
    if not found:
        raise RuntimeError(
            "Current RPC agent is not set! Did you initialize the RPC framework (e.g. by calling `rpc.init_rpc`)?"
        )
    return found[0]


def reset() -> None:
    """Forgets the running rank's."""
    _current.get().clear()


def get_rpc_timeout() -> float:
    """Returns the limit of the running rank's calls in seconds."""
    return current().ms / 1000


def set_rpc_timeout(seconds: float) -> None:
    """Changes the limit."""
    current().ms = milliseconds(seconds)
