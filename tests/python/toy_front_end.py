"""A front end as small as one can be: arrays of its own, over NumPy's, and functions of c10d on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from torchemu import dtypes, runtime
from torchemu.bridge.handles import Handle
from torchemu.c10d import barriers, coalescing, exchanges, lifecycle, objects, p2p, reductions
from torchemu.runtime import buffer


class Toy:
    """An array. It has no name in common with a Tensor.

    Attributes:
        address: of the first element.
        kind: the name of the elements' type.
        lengths: the dimensions.
        steps: for each of them, the bytes from one index to the next.
    """

    def __init__(self, elements: Any) -> None:
        self.elements = np.asarray(elements)
        self.address: int = self.elements.__array_interface__["data"][0]
        self.kind, self.lengths, self.steps = self.elements.dtype.name, self.elements.shape, self.elements.strides
        self.region: buffer.Region | None = None

    def look(self) -> list[Any]:
        """The elements, once operations on them have ended."""
        TOYS.buffer(self).wait()
        return self.elements.tolist()


class Toys(buffer.TensorClass):
    """The class of tensors of toys, as c10d and kernels have to know it."""

    kind, is_buffer = Toy, False

    def buffer(self, tensor: Any) -> buffer.Region:
        if tensor.region is None:
            kind = dtypes.parse(tensor.kind)
            strides = [step // kind.itemsize for step in tensor.steps]
            last = sum((n - 1) * step for n, step in zip(tensor.lengths, strides, strict=True))
            nbytes = (last + 1) * kind.itemsize if 0 not in tensor.lengths else 0
            memory = buffer.Bytes(tensor.elements, tensor.address, nbytes)
            tensor.region = buffer.Region(memory, kind, tensor.lengths, strides)
        return tensor.region

    def of_array(self, array: np.ndarray, on_host: bool = False) -> Toy:
        return Toy(array.copy())

    def of_core(self, world: runtime.World, core: Handle, kind: dtypes.dtype, shape: Sequence[int]) -> Toy:
        region = super().of_core(world, core, kind, shape)
        made = Toy(region.array())
        made.region = region
        return made

    def array(self, tensor: Any) -> np.ndarray:
        tensor.look()
        return tensor.elements


TOYS = Toys()


def begin() -> None:
    """Makes programs of this World toys' programs, with a default group."""
    buffer.choose(TOYS)
    lifecycle.init_process_group()


all_reduce, reduce_scatter = reductions.all_reduce, reductions.reduce_scatter
all_gather, broadcast, all_to_all_single = exchanges.all_gather, exchanges.broadcast, exchanges.all_to_all_single
send, recv, isend, irecv = p2p.send, p2p.recv, p2p.isend, p2p.irecv
barrier, all_gather_object = barriers.barrier, objects.all_gather_object
together = coalescing._coalescing_manager

buffer.register(TOYS)
