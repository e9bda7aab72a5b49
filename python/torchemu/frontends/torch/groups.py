"""Process groups: one rank's side of a group of the core."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NoReturn

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import ErrorType

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.c10d import flight_files
from torchemu.c10d.hooks import Hooked
from torchemu.frontends.torch import host_tensors
from torchemu.frontends.torch.collectives import CollectiveGroup
from torchemu.frontends.torch.device import deferral
from torchemu.frontends.torch.issuing import DEFAULT
from torchemu.frontends.torch.membership import Membership, leave, met, shared
from torchemu.frontends.torch.works import Several
from torchemu.runtime import footprints, launches

_KEEPS_ORDER = hasattr(dist, "gather_single")
"""PyTorch, from 2.14 on, numbers the ranks of a group that is split off in the order in which they are given."""


class AhbmGroup(Hooked, CollectiveGroup):
    """One rank's side of a group: what c10d asks of one beside its operations."""

    def _set_group_desc(self, desc: str) -> None:
        super()._set_group_desc(desc)
        for core in {self._core, self._device_core}:
            go.DescribeGroup(core, desc)
        flight_files.watch_as_asked_for(self)  # c10d sets the name before, and nothing after

    setGroupDesc = _set_group_desc  # noqa: N815

    def _enable_collectives_timing(self) -> None:
        flight_files.enable_timing(self)

    def collectives(self, on_host: bool) -> int:
        """Counts the collectives that this rank has issued, of the host's tensors or of devices'."""
        return int(go.NextSeq(self._core if on_host else self._device_core, runtime.current().rank))

    def _start_coalescing(self, device: Any = None) -> None:
        if self._backend_for(device is None or torch.device(device).type == "cpu") == "gloo":
            raise RuntimeError("Backend gloo does not implement startCoalescing")
        self._coalescing = []
        launches.launch_together(True)

    def _end_coalescing(self, device: Any = None) -> Any:
        issued, self._coalescing = self._coalescing or [], None
        launches.launch_together(False)
        return Several(issued, list(deferral.tensors([work.outputs for work in issued])))

    def size(self) -> int:
        """The number of ranks."""
        return self._size

    def rank(self) -> int:
        """This rank's number in the group."""
        return self._rank

    def getSize(self) -> int:  # noqa: N802 (what C++ calls it)
        """Returns the same as size."""
        return self._size

    def getRank(self) -> int:  # noqa: N802
        """Returns the same as rank."""
        return self._rank

    def get_group_store(self) -> Any:
        """A store that the members share."""
        return self._store

    @property
    def supports_coalescing(self) -> bool:
        """Answers as PyTorch's backend of this name does."""
        return self.backend != "gloo"

    supports_splitting = True
    supports_time_estimate = supports_shrinking = supports_reconfigure = supports_window = False
    supports_completion_hooks = supports_abort_hooks = False

    def supports_tensor_alloc(self, device: Any) -> bool:
        """Answers as NCCL does without memory of its own: tensors are PyTorch's."""
        return False

    def allocate_tensor(self, size: int, *, dtype: Any = None, device: Any = None) -> NoReturn:
        """Refuses to allocate what supports_tensor_alloc has said that it cannot."""
        raise RuntimeError(f"Backend {self.backend} does not support allocateTensor: make tensors by torch.empty")

    def _get_backend(self, device: Any) -> AhbmGroup:
        if torch.device(device).type == "cpu" and host_tensors.are_refused(self):
            raise RuntimeError(host_tensors.NO_BACKEND)
        return self

    def new_window(self, tensor: torch.Tensor | None = None) -> NoReturn:
        """Refuses to make a window, as supports_window says."""
        raise NotImplementedError("windows of groups are not simulated: torch.distributed._symmetric_memory is")

    def reconfigure(self, opts: Any = None) -> NoReturn:
        """Refuses to change the members, as supports_reconfigure says."""
        raise NotImplementedError("groups whose members change are not simulated: make a group of those that are left")

    get_reconfigure_handle = reconfigure

    def suspend(self) -> NoReturn:
        """Refuses to give back memory of NCCL's, which a simulated device has none of; gloo has its own words."""
        if self.backend == "gloo":
            raise RuntimeError("Backend gloo does not support suspend")
        raise NotImplementedError(
            "the memory of communicators is not simulated: a process group has nothing to suspend, resume or count"
        )

    resume = memory_stats = suspend

    def get_backend(self, device: Any) -> AhbmGroup:
        """The group itself: it is its own backend.

        Raises:
            RuntimeError: it has none for the device.
        """
        return self._get_backend(device)

    @property
    def has_only_devices(self) -> bool:
        """Says whether no backend of the group is for tensors of the host: NCCL is alone, and devices are there."""
        return self.backend == "nccl" and self._core == self._device_core and torch.cuda.is_available()

    @property
    def _device_types(self) -> list[torch.device]:
        devices = [torch.device("cuda")] if torch.cuda.is_available() else []
        return devices if self.has_only_devices else [torch.device("cpu"), *devices]

    @property
    def options(self) -> Any:
        """The options of the group, whose timeout is the group's."""
        return self._options

    def _take_options(self, options: Any) -> None:
        options._timeout, self._options = self._limit, options

    def split_group(
        self,
        new_ranks: Sequence[int],
        timeout: timedelta | None = None,
        opts: Any = None,
        group_name: str | None = None,
        group_desc: str | None = None,
        device_types: Sequence[torch.device] | None = None,
    ) -> AhbmGroup | None:
        """A group of some of the ranks; None on the others. It is for the devices that are named, or all that this one
        is for. PyTorch before 2.14 numbers the ranks as they are here, others as they are given."""
        number, self._splits = self._splits, self._splits + 1
        if self._rank not in new_ranks:
            return None
        name = group_name or f"{self._name}:split:{number}"
        mine = list(new_ranks) if _KEEPS_ORDER else sorted(new_ranks)
        world_ranks = [self.membership.members[r] for r in mine]
        on_host = {torch.device(device).type == "cpu" for device in device_types or ()}
        is_parted = self._core != self._device_core and len(on_host) != 1
        membership = shared(name, world_ranks, are_world_ranks=True, is_parted=is_parted)
        backend = self._backend_for(*on_host) if len(on_host) == 1 else self.backend
        made = self._like(dist.PrefixStore(f"{name}/", self._store), mine.index(self._rank), membership, backend)
        if timeout is not None or opts is not None:
            made._options = copy.copy(opts or self._options)
            made._set_default_timeout(timeout or self._timeout)
        made._set_group_desc(group_desc or f"{self._desc}:split:{number}")
        return made

    def merge_remote_group(
        self,
        store: Any,
        size: int,
        timeout: timedelta = DEFAULT,
        group_name: str | None = None,
        group_desc: str | None = None,
    ) -> AhbmGroup:
        """A group of this rank and of others that share a store; they are numbered as they come."""
        name, rank = group_name or f"{self._name}:merge", store.add("mergeGroupRank", 1) - 1
        members = met(store, rank, size)
        membership = shared(name, members, are_world_ranks=True, is_parted=self._core != self._device_core)
        made = self._like(store, rank, membership)
        made._set_default_timeout(timeout)
        made._set_group_desc(group_desc or f"{self._desc}:merge")
        return made

    def _like(self, store: Any, rank: int, membership: Membership, backend: str = "") -> AhbmGroup:
        """A group of the same kind with other members, with options of its own, and this one's backend or another."""
        made = type(self).__new__(type(self))
        AhbmGroup.__init__(made, store, rank, membership, backend or self.backend, self._timeout)
        made._set_group_name(membership.name)
        made._options = copy.copy(self._options)
        return made

    def comm_split_count(self) -> int:
        """Counts how often groups have been split off, with this rank or without it."""
        return self._splits + self.made_of_it

    def perform_nocolor_split(self, device: Any) -> None:
        """Takes part in a split that makes no group for this rank: nothing is to be done."""

    made_of_it = 0
    """How many groups torch.distributed has made while this one, the default group, was bound to a device: NCCL splits
    them off."""

    def get_error(self) -> Any:
        """Says whether an operation has lasted too long: one that this rank has waited for, or another rank."""
        footprints.use(self.membership.key)
        late = self.membership.late
        if self._rank in late:
            return ErrorType.TIMEOUT
        return ErrorType.REMOTE_ERROR if late else ErrorType.SUCCESS

    def _verify_work_timeout(self, work: Any, timeout: timedelta) -> bool:
        return bool(timeout == work.timeout)

    def _set_sequence_number_for_group(self) -> None:
        """The core counts by itself."""

    def _get_sequence_number_for_group(self) -> int:
        return int(go.NextSeq(self._core, runtime.current().rank))

    is_connected = False

    def eager_connect_single_device(self, device: Any) -> None:
        """Notes that devices are connected, for which nothing is to be done."""
        self.is_connected = True

    def _has_hooks(self) -> bool:
        return False

    def _wait_for_pending_works(self) -> None:
        """Nothing calls hooks on other threads."""

    def _group_start(self) -> None:
        """Begins aborting several groups at once."""

    def _group_end(self) -> None:
        """Ends it."""

    def shutdown(self) -> None:
        """Leaves the group."""
        leave(self.membership)

    def abort(self) -> None:
        """Ends, with an error, what this rank has a part in and that cannot go on."""
        for core in {self._core, self._device_core}:
            go.AbortGroup(core, runtime.current().rank)

    def __repr__(self) -> str:
        return f"<torch.distributed.ProcessGroup {self._name} ({self.backend}), rank {self._rank} of {self._size}>"
