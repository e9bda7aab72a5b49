"""The symmetric heap, as programs use it: by addresses in the process."""

from __future__ import annotations

import math
from typing import Any

from torchemu import dtypes, runtime
from torchemu.bridge.binding import go
from torchemu.bridge.handles import Handle
from torchemu.errors import MismatchError
from torchemu.frontends.mori import _state
from torchemu.frontends.mori._launch import Launch, Step
from torchemu.frontends.mori._state import Engines, Team, Window
from torchemu.frontends.triton_dist import _symmetric
from torchemu.frontends.triton_dist._streams import numbered, place
from torchemu.language import _windows
from torchemu.language._machine import machine_of
from torchemu.runtime.buffer import buffer_of, chosen
from torchemu.runtime.rank_local import RankLocal


class Allocation:
    """Memory of the heap.

    Attributes:
        window: it is a part of.
        address: of its first byte, in the process.
        nbytes: its length.
        tensor: its bytes, if the run has data.
    """

    tensor: Any = None

    def __init__(self, window: Window, nbytes: int) -> None:
        self.window, self.nbytes = window, nbytes
        own = runtime.current().rank
        machine = machine_of(runtime.current().world)
        start = go.PrimAddress(window.number, own, 0)
        _, self.address, _ = go.PrimInProcess(machine.handle, start)

    def show(self) -> None:
        """Lets programs make tensors of it by its address."""
        self.tensor = _shown(self.window, runtime.current().rank, dtypes.uint8, (self.nbytes,))
        self.tensor.data_ptr()

    def address_of(self, member: int) -> int:
        """Returns the address in the process of a PE's part."""
        machine = machine_of(runtime.current().world)
        _, address, _ = go.PrimInProcess(machine.handle, self.window.at(member))
        return int(address)


class Heap:
    """A rank's part of the heap.

    Attributes:
        team: all PEs.
        allocations: by address.
    """

    def __init__(self) -> None:
        self.team: Team | None = None
        self.allocations: dict[int, Allocation] = {}
        self.registered: dict[int, int] = {}


heap: RankLocal[Heap] = RankLocal(Heap)


def everybody() -> Team:
    """Returns the team of all PEs."""
    own = heap.get()
    if own.team is None or own.team.ranks != _state.ranks():
        own.team = Team("shmem", tuple(range(len(_state.ranks()))))
    return own.team


def allocate(size: int, alignment: int = 1) -> int:
    """Takes memory of the heap, on all PEs in step, and returns its address.

    Raises:
        MismatchError: another PE asks for something else.
        RuntimeError: there is not as much.
        ValueError: nothing is asked for, or the alignment is no power of two.
    """
    if size < 1:
        raise ValueError(f"shmem_malloc of {size} bytes: there have to be some")
    if alignment < 1 or alignment & (alignment - 1):
        raise ValueError(f"an alignment is a power of two, not {alignment}")
    _state.take(size, "shmem_malloc failed")
    made = Allocation(everybody().window("heap", size), size)
    heap.get().allocations[made.address] = made
    if not _state.timing_only():
        made.show()
    return made.address


def free(ptr: int) -> None:
    """Gives memory back, on all PEs in step. After finalize it does nothing.

    Raises:
        MismatchError: another PE frees something else.
        ValueError: it is no address that allocate has given.
    """
    if not _state.is_initialized():
        return
    own = heap.get()
    if ptr not in own.allocations:
        raise ValueError(f"shmem_free of {ptr:#x}, which shmem_malloc has not given, or which is free already")
    made = own.allocations.pop(ptr)
    in_step(f"shmem_free of allocation {made.window.number} of {made.nbytes} bytes")
    _state.give_back(made.nbytes)
    context = runtime.current()
    machine_of(context.world).heap.free(made.window.number, context.rank)


def in_step(what: str) -> None:
    """Waits until all PEs ask for the same.

    Raises:
        MismatchError: another one asks for something else.
    """
    team = everybody()
    number = team.steps = team.steps + 1
    asked = team.asked.setdefault(number, {})
    asked[team.index] = what
    other = next((pe for pe, wanted in asked.items() if wanted != what), None)
    if other is not None:
        raise MismatchError(
            f"PE {team.index} asks for {what}, and PE {other} for {asked[other]}. All must ask for the same."
        )
    barrier_all()


def barrier_all() -> None:
    """Makes the hosts of all PEs wait for each other, and for what their streams do."""
    barrier_on_stream(None)
    runtime.current().synchronize()


def barrier_on_stream(stream: Any) -> None:
    """Makes a stream wait for those of all PEs."""
    team = everybody()
    barrier = team.barrier("of all PEs", tuple(range(len(team.pes))))
    cost = Engines(team.machine).barrier

    def meet(p: Step) -> None:
        p.enter("barrier")
        p.call(go.PrimOrder, "quiet_all")
        p.meet(barrier, cost)

    with numbered(stream):
        Launch("shmem_barrier", meet).begin({})


def register(ptr: int, size: int) -> int:
    """Makes memory known to all PEs, in step, and returns 0.

    Raises:
        MismatchError: another PE registers something else.
        ValueError: there are no such bytes.
    """
    if ptr <= 0 or size < 1:
        raise ValueError(f"there are no {size} bytes at address {ptr:#x}")
    in_step(f"shmem_buffer_register of {size} bytes")
    heap.get().registered[ptr] = size
    return 0


def deregister(ptr: int, size: int) -> int:
    """Undoes register, on all PEs in step, and returns 0.

    Raises:
        MismatchError: another PE asks for something else.
        ValueError: it is not registered.
    """
    if heap.get().registered.pop(ptr, None) != size:
        raise ValueError(f"{size} bytes at address {ptr:#x} are not registered")
    in_step(f"shmem_buffer_deregister of {size} bytes")
    return 0


def peer_address(ptr: int, my_pe: int, pe: int) -> int:
    """Returns where a PE has the memory that this PE has at an address; 0 if only a network card reaches it.

    Raises:
        ValueError: there is no such PE; the address is in no symmetric memory.
    """
    npes = len(_state.ranks())
    for number in (my_pe, pe):
        if not 0 <= number < npes:
            raise ValueError(f"PE {number} is not one of 0 to {npes - 1}")
    for made in heap.get().allocations.values():
        if made.address <= ptr < made.address + made.nbytes:
            return made.address_of(pe) + ptr - made.address if _state.near(pe) else 0
    place(ptr)  # raises what says where it is not
    raise ValueError(f"address {ptr:#x} is in no memory of shmem_malloc")


def create_tensor(shape: Any, dtype: Any) -> Any:
    """Makes a tensor in the heap, on all PEs in step.

    Raises:
        MismatchError: another PE asks for something else.
        RuntimeError: there is not as much memory.
    """
    shape = (shape,) if isinstance(shape, int) else tuple(int(n) for n in shape)
    kind = dtypes.parse(str(dtype).removeprefix("torch."))
    nbytes = max(1, math.prod(shape) * kind.itemsize)
    address = allocate(nbytes)
    return _shown(heap.get().allocations[address].window, runtime.current().rank, kind, shape)


def _shown(window: Window, rank: int, kind: Any, shape: tuple[int, ...]) -> Any:
    context, tensors = runtime.current(), chosen()
    number = go.PrimWindowTensor(window.number, rank, kind.name, shape)
    made = tensors.of_core(context.world, Handle(number), kind, shape)
    if rank == context.rank:
        machine_of(context.world).heap.windows[tensors.buffer(made).memory] = window.number
        _windows.keep(made, window.at(rank))
    return made


def of_peer(tensor: Any, peer: int) -> Any:
    """Returns a PE's tensor in the place of this PE's.

    Raises:
        ValueError: it is no whole tensor of the heap; the PE is on another node.
    """
    if not _state.near(peer):
        raise ValueError(f"memory of PE {peer} is not mapped on this node: a network card reaches it")
    return _symmetric.peer(tensor, _state.ranks()[peer])


def free_tensor(tensor: Any) -> None:
    """Gives a tensor's memory back, on all PEs in step. After finalize it does nothing.

    Raises:
        ValueError: it is no tensor of the heap.
    """
    if not _state.is_initialized():
        return
    buffer = buffer_of(tensor)
    address = 0 if buffer is None else buffer.memory.data_ptr()
    free(address)
