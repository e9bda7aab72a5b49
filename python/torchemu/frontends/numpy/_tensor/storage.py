"""Storage: the memory behind a tensor and its views, and what may still be going on in it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from torchemu import dtypes, runtime
from torchemu.bridge.binding import go
from torchemu.bridge.handles import Handle
from torchemu.bridge.ints import kept
from torchemu.frontends.numpy._attributes import foresee_attributes
from torchemu.frontends.numpy._shape import row_major
from torchemu.runtime import memory_notes
from torchemu.runtime.buffer import elements
from torchemu.runtime.memory_notes import Noted
from torchemu.runtime.memory_use import Piece

if TYPE_CHECKING:
    from torchemu.frontends.numpy._tensor.core import Tensor

SMALL = 1 << 16
"""Bytes up to which NumPy keeps the memory of a new tensor, since it gives and takes small pieces fastest. Larger ones
are the Go core's from the start, so that ranks whose collectives end with equal contents can share them."""


_IN_VAIN = -2
"""The answer of go.Soon where a tensor's elements are not to be waited for."""

_ENDS = 1
"""The answer of go.UnderWay where operations have not ended but all results are in place; 2 where some are not."""


class _Window:
    """Shows NumPy bytes of the core, and keeps them as long as NumPy looks."""

    def __init__(self, owner: Handle, address: int, nbytes: int) -> None:
        self.owner = owner
        self.__array_interface__ = {"version": 3, "shape": (nbytes,), "typestr": "|u1", "data": (address, False)}


@foresee_attributes
class Storage:
    """A run of bytes.

    The core learns of a storage that NumPy allocated when it first needs it: with :meth:`handle`. From then on
    operations of the core may be under way on it, and whoever looks at elements first calls :meth:`settle`. Which
    operations, and on which elements, only the core knows: the attributes say that there is no need to ask.

    Attributes:
        world: the World it belongs to.
        nbytes: its length.
        unsettled: an operation of the core may not have put its result in place yet, or it lends.
        lends: computations that have been put off may yet read its bytes; see deferral.py.
        pending: an operation, the core's or a kernel, may not have ended yet in simulated time.
        launcher, launch: the rank that launched the kernel which wrote it last, if any, and the launch's number there.
        version: how often operations have written into it.
        piece: its share of the device's memory; None on the host.
        noted: what the core is to be told of, once it knows the storage, where uses that nothing orders are looked for.
        tracked: autograd has to do with it: with one of the tensors in it, or what a backward pass needs of one.
        beside: of memory of another rank, a tensor of what this rank has in its place: whoever uses the memory waits
            for what is under way there, and not for what the other rank has issued.
    """

    world: runtime.World
    nbytes: int
    unsettled: bool = False
    pending: bool = False
    tracked: bool = False
    lends: bool = False
    launcher: runtime.Context | None = None
    launch: int = 0
    version: int = 0
    noted: Noted | None = None
    piece: Piece | None = None
    beside: Tensor | None = None
    _owner: np.ndarray | None
    _bytes: np.ndarray | None = None
    _handles: dict[dtypes.dtype, Handle] | None = None

    def __init__(self, world: runtime.World, owner: np.ndarray | None, nbytes: int) -> None:
        self.world, self._owner, self.nbytes = world, owner, nbytes

    @classmethod
    def zeros(cls, world: runtime.World, kind: dtypes.dtype, numel: int) -> Storage:
        """Of so many zeros."""
        nbytes = numel * kind.itemsize
        if nbytes <= SMALL:
            return cls(world, np.zeros(numel, kind.numpy), nbytes)
        storage = cls(world, None, nbytes)
        storage._handles = {kind: Handle(go.NewTensor(world.handle, kind.name, (numel,)))}
        return storage

    @property
    def stays(self) -> bool:
        """Reports whether its bytes have a fixed place. One without can share contents with other ranks'."""
        return self._bytes is not None or self._owner is not None

    # -- waiting

    def settle(self, t: Tensor, writes: bool = False) -> None:
        """Blocks this rank until a tensor in it can be read, or written, since the results of what is under way on its
        elements are in place: not in simulated time, but until the ranks that have a part in them have joined.

        Raises:
            RuntimeError: an operation failed, or the World is closed.
        """
        event = self._asked(go.Settled, t, writes)
        if event > 0:
            _park(event)

    def has_settled(self, t: Tensor, writes: bool = False) -> bool:
        """Reports whether a tensor in it can be read, or written; it does not wait for that. Raises as settle."""
        event = self._asked(go.Settled, t, writes)
        if event > 0:
            go.Release(event)
        return event <= 0

    def settles(self, t: Tensor, writes: bool = False) -> bool:
        """Reports whether a tensor in it can be read, or written. It lets other ranks come to that, as far as they do
        in no simulated time. Raises as settle."""
        deferrals = self.world.deferrals
        if deferrals is not None and not deferrals.has_room(runtime.current().rank):
            self.settle(t, writes)
            return True
        event = self._asked(go.Soon, t, writes)
        if event <= 0:
            return event != _IN_VAIN
        _park(event)
        return self.has_settled(t, writes)

    def wait(self, t: Tensor) -> None:
        """Blocks this rank until a tensor in it can be read in simulated time too: what writes its elements has ended.

        Raises:
            RuntimeError: an operation failed; the World is closed, or belongs to another thread or process.
        """
        if not self.world.is_here:
            self.world.check()
        if self.beside is not None:
            self.beside.wait()
            return
        if not self.pending:
            return
        if self.world.watches:
            self._is_over(t)
        at_rest = False
        if t._core is not None:
            at_rest = runtime.current().wait(t._core.number)
        elif state := self._under_way():
            at_rest = runtime.current().wait(self._handle_for(t, state))
        if self.launcher is not None:
            self.launcher.wait_for_launch(self.launch)
            self.launcher, at_rest = None, False
        if at_rest or not self._under_way():  # other ranks may have used it meanwhile
            self.unsettled, self.pending = self.lends, False

    def _is_over(self, t: Tensor) -> None:
        """Notes that the program has waited for what is under way on a tensor in it."""
        outstanding = runtime.current().outstanding
        if outstanding is not None and outstanding.issued:
            outstanding.end_on(elements(t), elements)

    def _under_way(self) -> int:
        root = self._root
        return go.UnderWay(root.number) if root is not None else 0

    def _asked(self, ask: Callable[[int, bool], int], t: Tensor, writes: bool) -> int:
        """Returns what go.Settled or go.Soon answers for a tensor in it; 0, without asking, where nothing can be in the
        way. Where nothing is pending, only what reads can be under way, which is in the way of writes."""
        if not self.unsettled or not (writes or self.pending):
            return 0
        if not self.world.is_open:
            raise RuntimeError("the World is closed: its tensors can no longer be used")
        answer = 0
        if self.beside is not None:
            return self.beside._storage._asked(ask, self.beside, writes=True)
        if t._core is not None:
            answer = ask(t._core.number, writes)
        elif abs(state := self._under_way()) > _ENDS:
            answer = ask(self._handle_for(t, state), writes)
        self.unsettled = answer != 0 or self.lends
        return answer

    def _handle_for(self, t: Tensor, state: int) -> int:
        """The handle by which to ask for a tensor in it: any will do where one operation is under way, on all."""
        root = self._root
        return root.number if state < 0 and root is not None else t._number

    def take_back(self) -> None:
        """Lends its bytes no more: somebody is to write there."""
        if self.lends:
            assert self.world.deferrals is not None
            self.world.deferrals.take_back(self)

    @property
    def _root(self) -> Handle | None:
        """The first of the core's handles, of all elements, if the core knows the storage."""
        return next(iter(self._handles.values())) if self._handles else None

    def stand_beside(self, own: Tensor) -> None:
        """Makes it memory of another rank; see beside."""
        self.beside, self.unsettled, self.pending = own, True, True

    # -- the bytes, for NumPy

    def array(
        self, kind: dtypes.dtype, shape: Sequence[int], strides: Sequence[int], offset: int, writable: bool
    ) -> tuple[np.ndarray, bool]:
        """Elements in place, and whether they stay there: otherwise the array is good until the next operation."""
        fixed = self._fixed() if writable else self._bytes_or_none()
        raw = fixed if fixed is not None else self._looked_at()
        size = kind.itemsize
        steps = tuple([s * size for s in strides])
        start = 0 if 0 in shape else offset * size  # where there are no elements, the offset may be past the end
        return np.ndarray(shape, kind.numpy, raw, start, steps), fixed is not None

    def data_ptr(self) -> int:
        """The address of the first byte; it stays, and the World knows whose it is."""
        if not self.nbytes:
            return 0
        address: int = self._fixed().__array_interface__["data"][0]
        self.world.exported.add(address, self)
        return address

    def _bytes_or_none(self) -> np.ndarray | None:
        """All bytes, where they have a fixed place."""
        if self._bytes is None and self._owner is not None:
            self._bytes = _bytes_of(self._owner)
        return self._bytes

    def _fixed(self) -> np.ndarray:
        """All bytes, which have a fixed place from now on."""
        known = self._bytes_or_none()
        if known is None:
            known = self._bytes = self._window(go.ExportAddress)
        return known

    def _looked_at(self) -> np.ndarray:
        return self._window(go.ReadAddress)

    def _window(self, address_of: Callable[[int], int]) -> np.ndarray:
        root = self._root
        assert root is not None
        return np.asarray(_Window(root, address_of(root.number), self.nbytes))

    # -- the handle, for the core

    def handle(self, kind: dtypes.dtype, shape: Sequence[int], strides: Sequence[int] | None, offset: int) -> Handle:
        """A handle for the elements that a tensor has; strides None: row-major."""
        if self._handles is None:
            self._handles = {}
        root = self._handles.get(kind)
        if root is None:
            whole = math.prod(shape) * kind.itemsize == self.nbytes and (strides is None or strides == row_major(shape))
            root = self._wrapped(kind, shape if whole else (self.nbytes // kind.itemsize,))
            if whole:
                return root
        steps = row_major(shape) if strides is None else strides
        number = go.ViewTensor(root.number, kept(tuple(shape)), kept(tuple(steps)), offset)
        return Handle(number, self.world.lent, root.memory)

    def _wrapped(self, kind: dtypes.dtype, shape: Sequence[int]) -> Handle:
        """The first handle for elements of this type."""
        assert self._handles is not None
        first = self._root
        if first is not None:
            number = go.ReinterpretTensor(first.number, kind.name, kept(tuple(shape)))
            root = Handle(number, self.world.lent, first.memory)
        else:
            owner = self._owner if self._owner is not None and self._owner.flags.c_contiguous else self._fixed()
            address = owner.__array_interface__["data"][0]
            number = go.WrapMemory(self.world.handle, kind.name, kept(tuple(shape)), address, self.nbytes)
            root = Handle(number, self.world.lent, owner)
        self._handles[kind] = root
        if self.noted:
            memory_notes.tell(runtime.current(), root.number, self.noted)
        return root


def _park(event: int) -> None:
    """Blocks this rank until an event has ended, and releases it."""
    try:
        runtime.current().wait(event)
    finally:
        go.Release(event)


def reach_of(array: np.ndarray) -> int:
    """The bytes of an array's memory from its first element to its last."""
    if not array.size:
        return 0
    return array.itemsize + sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True))


def _bytes_of(array: np.ndarray) -> np.ndarray:
    """Returns those bytes."""
    return array.reshape(-1).view(np.uint8) if array.flags.c_contiguous else np.asarray(_Reach(array))


class _Reach:
    """Shows NumPy the memory that an array with gaps, or in another order, lies in."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        address = array.__array_interface__["data"][0]
        self.__array_interface__ = {
            "version": 3,
            "shape": (reach_of(array),),
            "typestr": "|u1",
            "data": (address, False),
        }
