"""Messages between agents: what they carry, and how long they take, which is what a message of as many bytes takes."""

from __future__ import annotations

import functools
import sys
import traceback
from collections.abc import Callable, Sequence

import greenlet
import torch
from torch._C._distributed_rpc import WorkerInfo

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.errors import RankKilledError
from torchemu.frontends.torch.memory import regions
from torchemu.frontends.torch.rpc import joints
from torchemu.frontends.torch.rpc.agents import Agent
from torchemu.frontends.torch.works import AhbmWork
from torchemu.runtime import threads, waiting
from torchemu.runtime.tasks import Unwound

ENDS = (Unwound, RankKilledError, greenlet.GreenletExit)
"""Exceptions by which torchemu ends threads, and of which no program is to hear."""

_LEAST_RECOPIED = 8 << 10
"""Bytes of a storage from which on PyTorch sends only the part of it that a tensor has, where that is half or less."""


class Parcel:
    """The content of a message: pickled bytes, and copies of the tensors in them.

    Args:
        data: the bytes.
        tensors: the copies, on the host.
        devices: where the receiver has each.
        wanting: for each, whether it requires a gradient.
        joint: what joins the graphs of both sides; None for nothing.
    """

    def __init__(
        self,
        data: bytes,
        tensors: Sequence[torch.Tensor],
        devices: Sequence[torch.device],
        wanting: Sequence[bool],
        joint: joints.Joint | None,
    ) -> None:
        self.data, self.tensors, self.devices, self.wanting, self.joint = data, tensors, devices, wanting, joint

    @property
    def nbytes(self) -> int:
        """The size of the message."""
        return len(self.data) + size(self.tensors)

    def received(self) -> list[torch.Tensor]:
        """Returns the tensors as the receiver has them, whose thread calls this."""
        placed = [t.to(d) if d.type != "cpu" else t for t, d in zip(self.tensors, self.devices, strict=True)]
        if self.joint is not None:
            return self.joint.received(placed, self.wanting)
        return [t.requires_grad_() if wants else t for t, wants in zip(placed, self.wanting, strict=True)]


def size(tensors: Sequence[torch.Tensor]) -> int:
    """Returns the bytes of tensors' elements."""
    return sum(t.numel() * t.element_size() for t in tensors)


def packed(
    agent: Agent, to: WorkerInfo, data: bytes, tensors: Sequence[torch.Tensor], context: int | None, answers: bool
) -> Parcel:
    """Returns what is sent to a worker.

    Args:
        agent: the sender's.
        to: the worker.
        data: pickled bytes.
        tensors: in them.
        context: the number of the distributed autograd's context that the call is in; None for none.
        answers: it is an answer.

    Raises:
        RuntimeError: a tensor is on a device for which nothing says where the worker is to have it.
    """
    known = agent.reverse_device_maps.get(to.name, {}) if answers else agent._get_device_map(to)
    devices = [_target(t.device, known, to, answers) for t in tensors]
    joint = None if context is None else joints.of(agent, to.id, context, tensors)
    return Parcel(data, [_copied(t) for t in tensors], devices, [t.requires_grad for t in tensors], joint)


def _target(
    device: torch.device, known: dict[torch.device, torch.device], to: WorkerInfo, answers: bool
) -> torch.device:
    found = known.get(device)
    if found is None and device.type != "cpu":
        raise RuntimeError(
            "TensorPipe RPC backend only supports CPU tensors by default, please move your tensors to CPU before "
            "sending them over RPC, or call `set_device_map` on `TensorPipeRpcBackendOptions` to explicitly configure "
            f"device mapping. {'Response' if answers else 'Request'} device mapping is not available for destination "
            f"{to.name}, but found tensor on device: {device}"
        )
    return found or device


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a copy on the host, with the strides that PyTorch's has, which sends all of a storage that is small."""
    plain = tensor.detach()
    if plain.device.type != "cpu":
        return plain.cpu()
    if plain.layout is not torch.strided or plain.is_contiguous():
        return plain.clone()
    whole = plain.untyped_storage().nbytes()
    if whole >= max(_LEAST_RECOPIED, 2 * size([plain])):
        return plain.clone()
    flat = plain.as_strided((whole // plain.element_size(),), (1,), 0).clone()
    return flat.as_strided(plain.shape, plain.stride(), plain.storage_offset())


def deliver(sender: Agent, to: Agent, nbytes: int, action: Callable[[], object]) -> None:
    """Sends a message, and returns. When it has come, a thread of the receiver's rank does what it is for.

    Args:
        sender: the agent of the running rank.
        to: the receiver's.
        nbytes: the size.
        action: what it is for.

    Raises:
        RuntimeError: the receiver has shut down, or its rank has ended.
    """
    if not to.is_there:
        raise RuntimeError(f"{to.info} has shut down RPC, or ended: no message reaches it")
    site = sender.context.world.site()
    come = functools.partial(waiting.reach, waiting.MICROSECOND)
    if to is not sender:
        tag = sender.cluster.tag()
        _post(sender, to, True, tag, nbytes, site)
        come = functools.partial(_receive, sender, to, tag, nbytes, site)

    def arrive() -> None:
        come()
        to.await_begin()
        action()

    begin(to, f"an RPC from {sender.name}", arrive)


def begin(agent: Agent, name: str, call: Callable[[], object]) -> None:
    """Starts a thread of an agent's rank, which need not be the running one."""
    context = agent.context
    if context.threads is None:
        context.threads = threads.Threads(context)
    context.threads.begin(repr(name), True, functools.partial(_run, call))


def _run(call: Callable[[], object]) -> None:
    """Makes the call; what it raises is nobody else's."""
    try:
        call()
    except (SystemExit, *ENDS):
        pass
    except BaseException:
        traceback.print_exc(file=sys.stderr)


def _post(agent: Agent, peer: Agent, sending: bool, tag: int, nbytes: int, site: int) -> AhbmWork:
    """Issues one side of a message: its data goes another way, and this takes the time."""
    room = torch.empty(nbytes, dtype=torch.uint8, device="cpu")
    handle = go.PostRegion(agent.cluster.core, agent.stream, site, True, sending, peer.rank, tag, regions([room]))
    return AhbmWork(handle, None, [room.untyped_storage()], True)


def _receive(sender: Agent, to: Agent, tag: int, nbytes: int, site: int) -> None:
    work = _post(to, sender, False, tag, nbytes, site)
    runtime.current().wait(work.handle)


def told(error: BaseException) -> Exception:
    """Returns an exception as PyTorch raises it that has passed through C++: a ValueError or TypeError stays one, and
    another one is a RuntimeError; with the places of the calls below the one that has caught it."""
    kind = next((kind for kind in (ValueError, TypeError) if isinstance(error, kind)), RuntimeError)
    frames = traceback.extract_tb(error.__traceback__)[:0:-1]
    places = "".join(f"  {frame.filename}({frame.lineno}): {frame.name}\n" for frame in frames)
    return kind(f"{type(error).__name__}: {error}\n\nAt:\n{places}")
