"""Storage: the memory behind a tensor and its views, and what may still be going on in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from torchemu import _runtime, dtypes
from torchemu._attributes import foresee_attributes
from torchemu._binding import go
from torchemu._handles import Handle
from torchemu._shape import as_text, row_major

SMALL = 1 << 16
"""Bytes up to which NumPy keeps the memory of a new tensor, since it gives and takes small pieces fastest. Larger ones
are the Go core's from the start, so that ranks whose collectives end with equal contents can share them."""


class _Window:
    """Shows NumPy bytes of the core, and keeps them as long as NumPy looks."""

    def __init__(self, owner: Handle, address: int, nbytes: int) -> None:
        self.owner = owner
        self.__array_interface__ = {"version": 3, "shape": (nbytes,), "typestr": "|u1", "data": (address, False)}


@foresee_attributes
class Storage:
    """A run of bytes.

    The core learns of a storage that NumPy allocated when it first needs it: with :meth:`handle`. From then on
    operations of the core may be pending on it, and whoever looks at the bytes first calls :meth:`settle`.

    Attributes:
        world: the World it belongs to.
        nbytes: its length.
        unsettled: an operation of the core may not have put its result in place yet, or it lends.
        lends: computations that have been put off may yet read its bytes; see deferral.py.
        pending: an operation, the core's or a kernel, may not have ended yet in simulated time.
        launcher, launch: the rank that launched the kernel which wrote it last, if any, and the launch's number there.
        version: how often operations have written into it.
        tracked: autograd has to do with it: with one of the tensors in it, or what a backward pass needs of one.
        handles: what its rank knows of other ranks' memory after a rendezvous, by group; not there for memory that
            others have no access to.
    """

    world: _runtime.World
    nbytes: int
    unsettled: bool = False
    pending: bool = False
    tracked: bool = False
    lends: bool = False
    launcher: _runtime.Context | None = None
    launch: int = 0
    version: int = 0
    _owner: np.ndarray | None
    _bytes: np.ndarray | None = None
    _handles: dict[dtypes.dtype, Handle] | None = None

    handles: dict[str, Any]

    @property
    def others_see(self) -> bool:
        """Whether programs of other ranks may look at the bytes: what is written there is written at once."""
        return hasattr(self, "handles")

    def __init__(self, world: _runtime.World, owner: np.ndarray | None, nbytes: int) -> None:
        self.world, self._owner, self.nbytes = world, owner, nbytes

    @classmethod
    def zeros(cls, world: _runtime.World, kind: dtypes.dtype, numel: int) -> Storage:
        """Of so many zeros."""
        nbytes = numel * kind.itemsize
        if nbytes <= SMALL:
            return cls(world, np.zeros(numel, kind.numpy), nbytes)
        storage = cls(world, None, nbytes)
        storage._handles = {kind: Handle(go.NewTensor(world.handle, kind.name, str(numel)))}
        return storage

    def copied(self) -> Storage:
        """Another one with the same contents."""
        return Storage(self.world, np.frombuffer(bytearray(self.contents()), np.uint8), self.nbytes)

    def contents(self) -> bytes:
        """A copy of the bytes."""
        self.settle()
        raw = self._bytes_or_none()
        return (raw if raw is not None else self._looked_at()).tobytes()

    @property
    def stays(self) -> bool:
        """Whether its bytes have a fixed place. One without can share contents with other ranks'."""
        return self._bytes is not None or self._owner is not None

    # -- waiting

    def settle(self) -> None:
        """Blocks this rank until the results of the operations on it are in place: not in simulated time, but until
        the ranks that have a part in them have joined.

        Raises:
            RuntimeError: an operation failed, or the World is closed.
        """
        if not self.unsettled:
            return
        if not self.world.is_open:
            raise RuntimeError("the World is closed: its tensors can no longer be used")
        context = _runtime.current()
        for handle in self._cores():
            event = go.Settled(handle.number)
            if event:
                try:
                    context.wait(event)
                finally:
                    go.Release(event)
        self.unsettled = self.lends

    def take_back(self) -> None:
        """Lends its bytes no more: somebody is to write there."""
        assert self.world.deferrals is not None
        self.world.deferrals.take_back(self)

    def has_settled(self) -> bool:
        """Whether the results of the operations on it are in place; it does not wait for them."""
        if not self.unsettled:
            return True
        events = [go.Settled(handle.number) for handle in self._cores()]
        self.unsettled = any(events) or self.lends
        for event in filter(None, events):
            go.Release(event)
        return not any(events)

    def settles(self) -> bool:
        """Whether the results of the operations on it are in place. It lets other ranks come to that, as far as they do
        in no simulated time.

        Raises:
            as settle.
        """
        context = _runtime.current()
        deferrals = self.world.deferrals
        if not self.world.is_open or (deferrals is not None and not deferrals.has_room(context.rank)):
            self.settle()
            return True
        for handle in self._cores():
            event = go.Soon(handle.number)
            if event < 0:
                return False
            if event:
                try:
                    context.wait(event)
                finally:
                    go.Release(event)
        return self.has_settled()

    def wait(self) -> None:
        """Blocks this rank until the operations on it have ended, in simulated time too.

        Raises:
            RuntimeError: an operation failed; the World is closed, or belongs to another thread or process.
        """
        if not self.world.is_here:
            self.world.check()
        if not self.pending:
            return
        context = _runtime.current()
        for handle in self._cores():
            context.wait(handle.number)
        if self.launcher is not None:
            self.launcher.wait_for_launch(self.launch)
            self.launcher = None
        self.unsettled, self.pending = self.lends, False

    def _cores(self) -> list[Handle]:
        return list(self._handles.values()) if self._handles is not None else []

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
        self.world.exported[address] = self
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
            root = self._cores()[0]
            known = self._bytes = self._window(root, go.ExportAddress(root.number))
        return known

    def _looked_at(self) -> np.ndarray:
        root = self._cores()[0]
        return self._window(root, go.ReadAddress(root.number))

    def _window(self, root: Handle, address: int) -> np.ndarray:
        return np.asarray(_Window(root, address, self.nbytes))

    # -- the handle, for the core

    def handle(self, kind: dtypes.dtype, shape: Sequence[int], strides: Sequence[int] | None, offset: int) -> Handle:
        """A handle for the elements that a tensor has; strides None: row-major."""
        if self._handles is None:
            self._handles = {}
        root = self._handles.get(kind)
        if root is None:
            whole = offset == 0 and (strides is None or strides == row_major(shape))
            root = self._wrapped(kind, shape if whole else (self.nbytes // kind.itemsize,))
            if whole:
                return root
        steps = row_major(shape) if strides is None else strides
        number = go.ViewTensor(root.number, as_text(shape), as_text(steps), offset)
        return Handle(number, self.world.lent, root.memory)

    def roots(self, kind: dtypes.dtype) -> list[int]:
        """Handles for all that the core knows of it, for an operation that is set going: one at least, for elements of
        this type."""
        if not self._handles:
            self._handles = {}
            self._wrapped(kind, (self.nbytes // kind.itemsize,))
        self.unsettled = self.pending = True
        return [handle.number for handle in self._cores()]

    def _wrapped(self, kind: dtypes.dtype, shape: Sequence[int]) -> Handle:
        """The first handle for elements of this type. What is pending on handles of other types comes first."""
        assert self._handles is not None
        self.settle()
        owner = self._owner if self._owner is not None and self._owner.flags.c_contiguous else self._fixed()
        address = owner.__array_interface__["data"][0]
        number = go.WrapMemory(self.world.handle, kind.name, as_text(shape), address, self.nbytes)
        root = self._handles[kind] = Handle(number, self.world.lent, owner)
        return root


def reach_of(array: np.ndarray) -> int:
    """The bytes of an array's memory from its first element to its last."""
    if not array.size:
        return 0
    return array.itemsize + sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True))


def _bytes_of(array: np.ndarray) -> np.ndarray:
    """Those bytes."""
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
