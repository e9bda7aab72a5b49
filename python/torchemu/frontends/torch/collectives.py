"""The collectives and messages of a process group, as c10d calls them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from torchemu.bridge.calls import Call
from torchemu.c10d.ops import OPS
from torchemu.frontends.torch import checks, monitored, session, sparse
from torchemu.frontends.torch.c10d_operators import as_operators, compared
from torchemu.frontends.torch.issuing import ANY_SOURCE, IssuingGroup, Tensors
from torchemu.frontends.torch.reductions import locally, number, reduced
from torchemu.frontends.torch.works import AhbmWork, Several


@as_operators
class CollectiveGroup(IssuingGroup):
    """The operations of a group."""

    def allreduce(self, tensors: Any, opts: Any = None, timeout: timedelta | None = None, op: Any = None) -> Any:
        """Replaces the tensors on every rank by their reduction."""
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else tensors
        checks.not_empty("allreduce", tensors)
        given = opts if op is None else op
        result, tensors = tensors, self._parts("all_reduce", tensors, given)
        op = self._op(given, tensors[0])
        if len(tensors) > 1:
            checks.one_layout("allreduce", tensors)
        if tensors[0].layout is not torch.strided:
            return sparse.all_reduce(self, tensors, op)
        if len(tensors) > 1:
            return self._allreduce_across(tensors, op, opts)
        checks.without_gaps(self.backend, tensors)
        return self._issue(_reducing("all_reduce", op), tensors, None, result, opts)

    def _allreduce_across(self, tensors: Sequence[torch.Tensor], op: Any, opts: Any) -> Any:
        """Replaces several tensors of each rank by the reduction of all, as gloo does; the rank waits for it here.

        Raises:
            RuntimeError: the backend is NCCL's, or the tensors are not alike.
        """
        checks.alone(self.backend, tensors)
        checks.alike("allreduce", tensors[1:], tensors[0])
        first, *others = tensors
        for other in others:
            locally(op)(first, other, out=first)
        work = self._issue(_reducing("all_reduce", op), [first], None, tensors, opts)
        work.wait()
        for other in others:
            other.copy_(first)
        return work

    def allreduce_coalesced(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        """allreduce of several tensors as one operation."""
        checks.not_empty("allreduce_coalesced", tensors)
        on_host = session.current().is_on_host(tensors[0])
        checks.coalesced(self._backend_for(on_host), tensors, on_host)
        checks.together(self.backend, tensors)
        call = _reducing("all_reduce_coalesced", self._op(opts, tensors[0]))
        return self._issue(call, tensors, None, tensors, opts)

    def broadcast(self, tensors: Any, opts: Any = None, timeout: timedelta | None = None, root: Any = None) -> Any:
        """Replaces the tensor on every rank by the root's."""
        root = _root("broadcast", tensors, opts if root is None else root)
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else tensors
        checks.root("broadcast", root, self._size, self.backend)
        checks.root_tensor(self.backend, "broadcast", opts, len(tensors))
        if len(tensors) > 1:
            return self._broadcast_across(tensors, root, opts)
        result, tensors = tensors, self._parts("broadcast", tensors)
        checks.without_gaps(self.backend, tensors)
        ins: Tensors | None = None if self._rank == root else []
        return self._issue(_call("broadcast", root), tensors, ins, result, opts)

    def _broadcast_across(self, tensors: Sequence[torch.Tensor], root: int, opts: Any) -> Any:
        """Replaces several tensors of each rank by one of the root's, as gloo does; the rank waits for it here.

        Raises:
            RuntimeError: the backend is NCCL's, or the tensors are not alike.
        """
        checks.alone(self.backend, tensors)
        checks.alike("broadcast", tensors[1:], tensors[0])
        of_root = tensors[getattr(opts, "rootTensor", 0)]
        ins: Tensors | None = None if self._rank == root else []
        work = self._issue(_call("broadcast", root), [of_root], ins, tensors, opts)
        work.wait()
        for other in tensors:
            if other is not of_root:
                other.copy_(of_root)
        return work

    def reduce(
        self, tensors: Any, opts: Any = None, op: Any = None, timeout: timedelta | None = None, root: Any = None
    ) -> Any:
        """Replaces the root's tensor by the reduction."""
        opts = opts if root is None else root
        root = _root("reduce", tensors, opts)
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else tensors
        checks.root("reduce", root, self._size, self.backend)
        checks.root_tensor(self.backend, "reduce", opts, len(tensors))
        checks.single("reduce", tensors)
        given = op if isinstance(opts, int) else opts
        result, tensors = tensors, self._parts("reduce", tensors, given)
        checks.without_gaps(self.backend, tensors)
        call = _reducing("reduce", self._op(given, tensors[0]), root)
        if self._rank == root:
            return self._issue(call, tensors, None, result, opts)
        return self._issue(call, [], tensors, result, opts)

    def allgather(self, outs: Any, ins: Any, opts: Any = None, timeout: timedelta | None = None) -> Any:
        """Gives every rank the tensors of all in a list."""
        if isinstance(ins, torch.Tensor):
            outs, ins = [outs], [ins]
        checks.not_empty("allgather", ins, "input ")
        if len(ins) != len(outs):
            checks.refuse("allgather", "requires input/output tensor lists to have the same length")
        return self._all_gather(outs[0], ins[0], opts) if len(ins) == 1 else self._allgather_across(outs, ins, opts)

    def _allgather_across(self, outs: Sequence[list[torch.Tensor]], ins: Tensors, opts: Any) -> Any:
        """Gives every list the tensors of all ranks, of which each brings several, as gloo does; the rank waits for it
        here.

        Raises:
            RuntimeError: the backend is NCCL's, or tensors are not alike, or missing.
        """
        checks.alone(self.backend, ins)
        for index, row in enumerate(outs):
            checks.as_many("allgather", "output", index, row, self._size * len(ins), self.backend)
        checks.alike("allgather", ins, ins[0])
        for row in outs:
            checks.alike("allgather", row, ins[0])
        first, *others = outs
        works = [self._all_gather(first[i :: len(ins)], given, opts) for i, given in enumerate(ins)]
        for work in works:
            work.wait()
        for row in others:
            for out, found in zip(row, first, strict=True):
                out.copy_(found)
        return Several(works, outs)

    def _all_gather(self, outs: list[torch.Tensor], given: torch.Tensor, opts: Any) -> AhbmWork:
        checks.as_many("allgather", "output", 0, outs, self._size, self.backend)
        checks.without_gaps(self.backend, [given])
        # NCCL's members may bring tensors of different sizes.
        is_gloos = self._backend_for(session.current().is_on_host(given)) == "gloo"
        alike = outs if is_gloos else outs[self._rank : self._rank + 1]
        checks.alike("allgather", alike, given, backend=self.backend)
        work = self._issue(_call("all_gather"), outs, [given], outs, opts)
        work.is_stacked = self.backend == "nccl" and all(out.shape == given.shape for out in outs)
        return work

    def allgather_coalesced(self, outs: list[list[torch.Tensor]], ins: list[torch.Tensor], opts: Any = None) -> Any:
        """allgather of several tensors: outs has a list for each rank."""
        checks.of_gloo(self.backend, "allgather_coalesced")
        checks.not_empty("allgather_coalesced", ins)
        if len(outs) != self._size:
            checks.refuse("allgather_coalesced", "output lists should be equal to world size")
        checks.gathered_coalesced(outs, ins)
        blocks = [tensor for row in outs for tensor in row]
        return self._issue(_call("all_gather_coalesced"), blocks, ins, outs, opts)

    def _allgather_base(self, out: torch.Tensor, given: torch.Tensor, opts: Any = None) -> Any:
        checks.gathered(self.backend, out, given, self._size)
        checks.without_gaps(self.backend, [out, given])
        return self._issue(_call("all_gather_into_tensor"), [out], [given], [out], opts)

    all_gather_single = _allgather_base

    def allgather_into_tensor_coalesced(self, outs: Tensors, ins: Tensors, opts: Any = None) -> Any:
        """_allgather_base of several tensors, in one go."""
        if not _are_one(outs, ins):
            return Several([self._allgather_base(o, i) for o, i in zip(outs, ins, strict=True)], list(outs))
        for out, given in zip(outs, ins, strict=True):
            checks.gathered(self.backend, out, given, self._size)
        call = _call("all_gather_into_tensor_coalesced")
        return self._issue(call, outs, ins, list(outs), opts, pieces=(self._rows(outs), ins))

    all_gather_single_coalesced = allgather_into_tensor_coalesced

    def reduce_scatter(
        self, outs: Any, ins: Any, opts: Any = None, timeout: timedelta | None = None, op: Any = None
    ) -> Any:
        """Gives each rank the reduction of the tensors that are for it."""
        if isinstance(outs, torch.Tensor):
            outs, ins = [outs], [ins]
        if self.backend == "gloo" and len(outs) != 1:
            raise RuntimeError("reduce_scatter only supports 1 output")
        if any(len(given) != self._size for given in ins):
            raise RuntimeError("invalid input tensor list size, must be world size")
        if self._backend_for(session.current().is_on_host(outs[0])) == "gloo":
            for out, given in zip(outs, ins, strict=True):
                checks.alike("reduce_scatter", given[self._rank : self._rank + 1], out)
        checks.without_gaps(self.backend, outs)
        call = _reducing("reduce_scatter", self._op(opts if op is None else op, outs[0]))
        works = [self._issue(call, [out], given, [out], opts) for out, given in zip(outs, ins, strict=True)]
        return works[0] if len(works) == 1 else Several(works, outs)

    def _reduce_scatter_base(self, out: torch.Tensor, given: torch.Tensor, opts: Any = None) -> Any:
        checks.scattered(self.backend, out, given, self._size)
        call = _reducing("reduce_scatter_tensor", self._op(opts, out))
        return self._issue(call, [out], [given], [out], opts)

    reduce_scatter_single = _reduce_scatter_base

    def reduce_scatter_tensor_coalesced(self, outs: Tensors, ins: Tensors, opts: Any = None) -> Any:
        """_reduce_scatter_base of several tensors, in one go; gloo reduces one after another."""
        if self.backend == "gloo" or not _are_one(outs, ins):
            return Several([self._reduce_scatter_base(o, i, opts) for o, i in zip(outs, ins, strict=True)], list(outs))
        for out, given in zip(outs, ins, strict=True):
            checks.scattered(self.backend, out, given, self._size)
        call = _reducing("reduce_scatter_tensor_coalesced", self._op(opts, outs[0]))
        return self._issue(call, outs, ins, list(outs), opts, pieces=(outs, self._rows(ins)))

    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced

    def gather(self, outs: Any, ins: Any, opts: Any = None, timeout: timedelta | None = None, root: Any = None) -> Any:
        """Gives the root the tensors of all in a list."""
        root = _root("gather", ins, opts if root is None else root)
        if isinstance(ins, torch.Tensor):
            outs, ins = [outs] if outs else [], [ins]
        checks.root("gather", root, self._size, self.backend)
        checks.alone(self.backend, ins)
        checks.single("gather", ins, "input ")
        checks.without_gaps(self.backend, ins)
        if self._rank == root:
            checks.of_root(self.backend, "gather", "output", outs, self._size)
            checks.alike("gather", outs[0], ins[0], backend=self.backend)
        else:
            checks.of_no_root(self.backend, "gather", "output", outs)
        if self.backend == "gloo" and ins[0].is_complex():
            raise RuntimeError("Invalid scalar type: gloo has no gather of complex numbers")
        gathered = outs[0] if self._rank == root else []
        return self._issue(_call("gather", root), gathered, ins, gathered, opts)

    def gather_into_tensor(self, out: torch.Tensor, given: torch.Tensor, opts: Any = None) -> Any:
        """Gives the root the tensors of all in one."""
        is_root = self._rank == _root("gather", [given], opts)
        if is_root:
            checks.gathered(self.backend, out, given, self._size)
        return self.gather([self._blocks(out, ())] if is_root else [], [given], opts)

    gather_single = gather_into_tensor

    def scatter(self, outs: Any, ins: Any, opts: Any = None, timeout: timedelta | None = None, root: Any = None) -> Any:
        """Gives each rank one of the root's tensors."""
        root = _root("scatter", outs, opts if root is None else root)
        if isinstance(outs, torch.Tensor):
            outs, ins = [outs], [ins] if ins else []
        checks.root("scatter", root, self._size, self.backend)
        checks.alone(self.backend, outs)
        checks.single("scatter", outs, "output ")
        if self._rank == root:
            checks.of_root(self.backend, "scatter", "input", ins, self._size)
            checks.alike("scatter", ins[0], outs[0], backend=self.backend)
        else:
            checks.of_no_root(self.backend, "scatter", "input", ins)
        return self._issue(_call("scatter", root), outs, ins[0] if self._rank == root else [], outs, opts)

    def alltoall(self, outs: Tensors, ins: Tensors, opts: Any = None, timeout: timedelta | None = None) -> Any:
        """Gives rank r the tensor that each has at index r."""
        checks.without_gaps(self.backend, [*outs, *ins])
        return self._issue(_call("all_to_all"), outs, ins, outs, opts)

    def alltoall_base(
        self,
        out: torch.Tensor,
        given: torch.Tensor,
        out_splits: Sequence[int],
        in_splits: Sequence[int],
        opts: Any = None,
        timeout: timedelta | None = None,
    ) -> Any:
        """Acts as alltoall, of the rows of one tensor."""
        checks.splits(out_splits, out, self._size)
        checks.splits(in_splits, given, self._size)
        checks.contiguous(given)
        checks.without_gaps(self.backend, [out])
        call = _call("all_to_all_single")
        if not out_splits and not in_splits:
            return self._issue(call, [out], [given], [out], opts)
        return self._issue(call, self._blocks(out, out_splits), self._blocks(given, in_splits), [out], opts)

    all_to_all_single = alltoall_base

    @compared
    def barrier(self, opts: Any = None, timeout: timedelta | None = None) -> Any:
        """Ends for each rank after it has begun for all."""
        token = [torch.zeros(1, dtype=torch.uint8, device="cpu")]
        return self._issue(Call.of("barrier", "all_reduce", "max"), token, None, [], opts, on_host=True)

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """A barrier of which rank 0 says who did not come."""
        self.monitored += 1
        monitored.barrier(self, self._timeout if timeout is None else timeout, wait_all_ranks)

    # Messages

    def send(self, tensors: Tensors, dst: int, tag: int = 0) -> Any:
        """Sends a tensor to a group rank."""
        return self._post(True, dst, tag, tensors[0])

    def recv(self, tensors: Tensors, src: int, tag: int = 0) -> Any:
        """Receives a tensor from a group rank."""
        return self._post(False, src, tag, tensors[0])

    def recv_anysource(self, tensors: Tensors, tag: int = 0) -> Any:
        """Receives a tensor from any rank."""
        return self._post(False, ANY_SOURCE, tag, tensors[0])

    def _blocks(self, whole: torch.Tensor, sizes: Sequence[int]) -> list[torch.Tensor]:
        """Splits a tensor for all ranks into the part of each."""
        return list(whole.split(list(sizes)) if sizes else whole.chunk(self._size))

    def _rows(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Returns of tensors with a block for each rank the first block of each, then the second of each, and so on."""
        blocks = [tensor.view(self._size, tensor.numel() // self._size).unbind() for tensor in tensors]
        return [block for row in zip(*blocks, strict=True) for block in row]

    def _parts(self, operation: str, tensors: Sequence[torch.Tensor], options: Any = None) -> Sequence[torch.Tensor]:
        """Returns the real and imaginary parts in place of complex numbers, as NCCL's group takes these.

        Raises:
            RuntimeError: the options' reduction cannot be done part by part.
        """
        if self.backend != "nccl" or not any(tensor.is_complex() for tensor in tensors):
            return tensors
        checks.by_parts(operation, _op_of(options))
        return [torch.view_as_real(tensor) if tensor.is_complex() else tensor for tensor in tensors]

    def _op(self, options: Any, tensor: torch.Tensor) -> Any:
        """The reduce op of options, or an op that takes their place, for such tensors."""
        op = _op_of(options)
        checks.reduction(self.backend, op, tensor.dtype)
        return op


def _op_of(options: Any) -> Any:
    return dist.ReduceOp.SUM if options is None else getattr(options, "reduceOp", options)


def _root(operation: str, tensors: Any, options: Any) -> int:
    """The root of options; one that takes their place, which is for a tensor and not for a list; and that of PyTorch's
    options where there are none."""
    if isinstance(options, int) and not isinstance(tensors, torch.Tensor):
        raise TypeError(f"{operation}(): incompatible function arguments. A list of tensors needs options, and no root")
    return options if isinstance(options, int) else 0 if options is None else int(options.rootRank)


def _call(name: str, root: int = 0) -> Call:
    """The call of a function that does not reduce."""
    known = _calls.get((name, None, root))
    if known is None:
        known = _calls[name, None, root] = Call.of(name, OPS[name].kind.name, "", root)
    return known


def _reducing(name: str, op: Any, root: int = 0) -> Call:
    """The call of a function that reduces."""
    key = name, number(op), root
    known = _calls.get(key)
    if known is None:
        reduction, factor = reduced(op)
        known = Call.of(name, OPS[name].kind.name, reduction, root, factor)
        if factor is None:
            _calls[key] = known
    return known


_calls: dict[tuple[str, int | None, int], Call] = {}
"""The frequent calls, by their name, PyTorch's number of the reduction, and the root."""


def _are_one(outs: Tensors, ins: Tensors) -> bool:
    """Reports whether several collectives of such tensors can be one: all have one type, and their elements lie one
    after another."""
    both = [*outs, *ins]
    return len(outs) > 1 and all(t.dtype == both[0].dtype and t.is_contiguous() for t in both)
