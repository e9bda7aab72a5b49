"""Warnings of what runs here and is an error of NCCL's on a cluster, a line at the end of the run.

Scripts that choose nccl where a GPU is there were often run on gloo only: they have their tensors on the host, or leave
it to each process which device it uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from torchemu import runtime
from torchemu.frontends.torch import host_tensors
from torchemu.frontends.torch.device import named, places
from torchemu.frontends.torch.session import Session


def install(run: Session) -> None:
    """Looks at what ranks give nccl's groups, until the run ends."""
    run.suspect = look


def look(group: Any, call: str, tensors: Sequence[torch.Tensor], host: bool) -> None:
    """Looks at the tensors of an operation of nccl's, and notes what the run is to say.

    Args:
        group: the operation's.
        call: its name.
        host: the first tensor is in the host's memory; otherwise the group's devices have not been looked at.
    """
    if host:
        _look_at_host(group, call)
    else:
        group.is_placed = True
        at = places.of(tensors[0])
        if at is not None and at.device.type == "cuda":
            _look_at_devices(group, call, at)


def _look_at_host(group: Any, call: str) -> None:
    warnings = runtime.current().world.warnings
    if "host" not in warnings and group.has_only_devices and host_tensors.is_programs_own():
        warnings["host"] = (
            f"{call} at {runtime.call_site()} gives a group of nccl a tensor in the host's memory. On a cluster that "
            f"is an error: {host_tensors.NO_BACKEND}; move it to cuda, or make the group of gloo or cpu:gloo,cuda:nccl"
        )


def _look_at_devices(group: Any, call: str, at: places.Place) -> None:
    """Compares the device of a rank with those of the others of its node, as they would be on a cluster."""
    rank = runtime.current()
    if rank.tasks is None or "devices" in rank.world.warnings or group.bound_device_id is not None:
        return
    number, node = named.number_on_cluster(rank, at), 0 if rank.node is None else rank.node.start
    used = rank.tasks.shared.setdefault(("devices of", group.membership.key), {})
    other = used.setdefault((node, number), rank.rank)
    if other != rank.rank:
        rank.world.warnings["devices"] = (
            f"ranks {other} and {rank.rank} of one node give a group of nccl tensors on cuda:{number}, in {call} at "
            f"{runtime.call_site()}. On a cluster NCCL says: Duplicate GPU detected; call "
            'torch.cuda.set_device(int(os.environ["LOCAL_RANK"])) first'
        )
