"""The methods by which PyTorch's process groups are called directly: ``group.allreduce([t], options)``.

All of them return works. Ranks are group ranks. Where PyTorch takes lists for several devices of one process, lists
must hold one element, for a rank has one device; a tensor, or a list for the ranks, may be given as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.c10d import hooks as _hooks
from torchemu.c10d.completion import Completion, WorkInfo
from torchemu.c10d.reduce_op import ReduceOp
from torchemu.c10d.work import Work
from torchemu.errors import DistBackendError
from torchemu.frontends.numpy._device import device
from torchemu.frontends.numpy._tensor import Tensor
from torchemu.unsupported import unsupported

if TYPE_CHECKING:
    from torchemu.c10d.backend_registry import BackendType
    from torchemu.c10d.hooks import Hooks
    from torchemu.c10d.stores import Store
    from torchemu.frontends.numpy.distributed._backend_dispatch import Dispatch
    from torchemu.frontends.numpy.distributed._process_group import ProcessGroup

_NO_TIMEOUT = timedelta()


def _functions() -> Any:
    """torch.distributed's, which need process groups themselves."""
    from torchemu.frontends.numpy.distributed import distributed_c10d

    return distributed_c10d


def _single(method: str, tensors: Any) -> Tensor:
    """The one tensor of a call.

    Raises:
        TypeError: neither a tensor nor a list.
        RuntimeError: a list of none or of several.
    """
    if isinstance(tensors, Tensor):
        return tensors
    if not isinstance(tensors, Sequence) or isinstance(tensors, str):
        raise TypeError(f"{method}(): incompatible function arguments: {tensors!r} is no tensor and no list of tensors")
    if len(tensors) != 1:
        raise RuntimeError(f"ProcessGroup::{method}: Expecting one tensor only but got {len(tensors)}")
    return _single(method, tensors[0])


def _row(method: str, lists: Any) -> list[Tensor]:
    """The one list of a call: given as such, or in a list."""
    if not isinstance(lists, Sequence):
        raise TypeError(f"{method}(): incompatible function arguments: {lists!r} is no list of tensors")
    rows = list(lists)
    if rows and not isinstance(rows[0], Tensor):
        if len(rows) != 1:
            raise RuntimeError(f"ProcessGroup::{method}: Expecting one list only but got {len(rows)}")
        return _row(method, rows[0])
    return rows


def _option(opts: Any, name: str, otherwise: Any) -> Any:
    """Returns what options say, or what was given in their place."""
    return getattr(opts, name) if hasattr(opts, name) else otherwise if opts is None else opts


def _limited(work: Work, opts: Any, timeout: timedelta | None) -> Work:
    """The work, whose wait() ends by the timeout of the call, if it has one."""
    limit = timeout if timeout is not None else getattr(opts, "timeout", None)
    if limit is not None and limit > _NO_TIMEOUT:
        work.limit = limit
    return work


class GroupMethods(_hooks.Hooked):
    """ProcessGroup's methods among them. ``opts`` are options, or what they would hold: a reduce op, or a root."""

    if TYPE_CHECKING:
        handle: int
        hooks: Hooks | None
        backend: str

        def _self(self) -> ProcessGroup: ...
    else:

        def _self(self) -> Any:
            return self

    # -- collectives

    def allreduce(self, tensors: Any, opts: Any = None, timeout: timedelta | None = None, *, op: Any = None) -> Work:
        """See torch.distributed.all_reduce."""
        reduction = _option(opts, "reduceOp", op or ReduceOp.SUM)
        work = _functions().all_reduce(_single("allreduce", tensors), reduction, self, True)
        return _limited(work, opts, timeout)

    def allreduce_coalesced(self, tensors: Sequence[Tensor], opts: Any = None) -> Work:
        """allreduce of several tensors."""
        from torchemu.c10d.reductions import coalesced_all_reduce

        reduction = _option(opts, "reduceOp", ReduceOp.SUM)
        work = coalesced_all_reduce(list(tensors), reduction, self._self(), True)
        assert work is not None
        return _limited(work, opts, None)

    def reduce(
        self, tensors: Any, opts: Any = None, op: Any = ReduceOp.SUM, timeout: timedelta | None = None, *, root: int = 0
    ) -> Work:
        """See torch.distributed.reduce; opts is ReduceOptions or the root."""
        work = _functions().reduce(
            _single("reduce", tensors),
            op=getattr(opts, "reduceOp", op),
            group=self,
            async_op=True,
            group_dst=_option(opts, "rootRank", root),
        )
        return _limited(work, opts, timeout)

    def broadcast(self, tensors: Any, opts: Any = None, timeout: timedelta | None = None, *, root: int = 0) -> Work:
        """See torch.distributed.broadcast; opts is BroadcastOptions or the root."""
        source = _option(opts, "rootRank", root)
        work = _functions().broadcast(_single("broadcast", tensors), group=self, async_op=True, group_src=source)
        return _limited(work, opts, timeout)

    def allgather(
        self, output_tensors: Any, input_tensors: Any, opts: Any = None, timeout: timedelta | None = None
    ) -> Work:
        """See torch.distributed.all_gather."""
        outputs, given = _row("allgather", output_tensors), _single("allgather", input_tensors)
        return _limited(_functions().all_gather(outputs, given, self, True), opts, timeout)

    def _allgather_base(self, output: Tensor, input: Tensor, opts: Any = None) -> Work:  # noqa: A002 (PyTorch's name)
        """See torch.distributed.all_gather_into_tensor."""
        return _limited(_functions().all_gather_into_tensor(output, input, self, True), opts, None)

    def allgather_coalesced(
        self, output_lists: Sequence[Sequence[Tensor]], input_list: Sequence[Tensor], opts: Any = None
    ) -> Work:
        """allgather of several tensors: for each rank, a list of what it gives."""
        from torchemu.c10d.exchanges import coalesced_all_gather

        lists = [list(block) for block in output_lists]
        work = coalesced_all_gather(lists, list(input_list), self._self(), True)
        assert work is not None
        return _limited(work, opts, None)

    def allgather_into_tensor_coalesced(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = None
    ) -> Work:
        """_allgather_base of several tensors."""
        pairs = zip(outputs, inputs, strict=True)
        return self._together(lambda: [_functions().all_gather_into_tensor(o, i, self) for o, i in pairs])

    def gather(
        self,
        output_tensors: Any,
        input_tensors: Any,
        opts: Any = None,
        timeout: timedelta | None = None,
        *,
        root: int = 0,
    ) -> Work:
        """See torch.distributed.gather; opts is GatherOptions or the root."""
        target = _option(opts, "rootRank", root)
        outputs = _row("gather", output_tensors) or None
        work = _functions().gather(
            _single("gather", input_tensors), outputs, group=self, async_op=True, group_dst=target
        )
        return _limited(work, opts, timeout)

    def scatter(
        self,
        output_tensors: Any,
        input_tensors: Any,
        opts: Any = None,
        timeout: timedelta | None = None,
        *,
        root: int = 0,
    ) -> Work:
        """See torch.distributed.scatter; opts is ScatterOptions or the root."""
        source = _option(opts, "rootRank", root)
        given = _row("scatter", input_tensors) or None
        work = _functions().scatter(
            _single("scatter", output_tensors), given, group=self, async_op=True, group_src=source
        )
        return _limited(work, opts, timeout)

    def reduce_scatter(
        self,
        output_tensors: Any,
        input_tensors: Any,
        opts: Any = None,
        timeout: timedelta | None = None,
        *,
        op: Any = None,
    ) -> Work:
        """See torch.distributed.reduce_scatter."""
        reduction = _option(opts, "reduceOp", op or ReduceOp.SUM)
        output, given = _single("reduce_scatter", output_tensors), _row("reduce_scatter", input_tensors)
        return _limited(_functions().reduce_scatter(output, given, reduction, self, True), opts, timeout)

    def _reduce_scatter_base(
        self,
        outputTensor: Tensor,  # noqa: N803 (PyTorch's names)
        inputTensor: Tensor,  # noqa: N803
        opts: Any = None,
    ) -> Work:
        """See torch.distributed.reduce_scatter_tensor."""
        reduction = _option(opts, "reduceOp", ReduceOp.SUM)
        work = _functions().reduce_scatter_tensor(outputTensor, inputTensor, reduction, self, True)
        return _limited(work, opts, None)

    def reduce_scatter_tensor_coalesced(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = None
    ) -> Work:
        """_reduce_scatter_base of several tensors."""
        reduction, pairs = _option(opts, "reduceOp", ReduceOp.SUM), zip(outputs, inputs, strict=True)
        scatter = _functions().reduce_scatter_tensor
        return self._together(lambda: [scatter(o, i, reduction, self) for o, i in pairs])

    def alltoall(self, output_tensors: Sequence[Tensor], input_tensors: Sequence[Tensor], opts: Any = None) -> Work:
        """See torch.distributed.all_to_all."""
        work = _functions().all_to_all(list(output_tensors), list(input_tensors), self, True)
        return _limited(work, opts, None)

    def alltoall_base(
        self,
        output: Tensor,
        input: Tensor,  # noqa: A002
        output_split_sizes: Sequence[int],
        input_split_sizes: Sequence[int],
        opts: Any = None,
        timeout: timedelta | None = None,
    ) -> Work:
        """See torch.distributed.all_to_all_single."""
        sizes = list(output_split_sizes), list(input_split_sizes)
        return _limited(_functions().all_to_all_single(output, input, *sizes, self, True), opts, timeout)

    def gather_single(self, output: Tensor, input: Tensor, opts: Any = None) -> Work:  # noqa: A002
        """See torch.distributed.gather_single; opts is GatherOptions or the root."""
        target = _option(opts, "rootRank", 0)
        work = _functions().gather_single(input, output, group=self, async_op=True, group_dst=target)
        return _limited(work, opts, None)

    all_gather_single, all_gather_single_coalesced = _allgather_base, allgather_into_tensor_coalesced
    reduce_scatter_single, reduce_scatter_single_coalesced = _reduce_scatter_base, reduce_scatter_tensor_coalesced
    all_to_all_single, gather_into_tensor = alltoall_base, gather_single
    """Their names in newer versions of PyTorch."""

    def barrier(self, opts: Any = None, timeout: timedelta | None = None) -> Work:
        """See torch.distributed.barrier; the work's wait() blocks the host."""
        limit = opts if isinstance(opts, timedelta) else timeout
        return _limited(_functions().barrier(self, True), opts, limit)

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """See torch.distributed.monitored_barrier."""
        _functions().monitored_barrier(self, timeout, wait_all_ranks)

    # -- messages

    def send(self, tensors: Any, dstRank: int, tag: int = 0) -> Work:  # noqa: N803 (PyTorch's names)
        """See torch.distributed.isend."""
        work: Work = _functions().isend(_single("send", tensors), group=self, tag=tag, group_dst=dstRank)
        return work

    def recv(self, tensors: Any, srcRank: int, tag: int = 0) -> Work:  # noqa: N803
        """See torch.distributed.irecv."""
        work: Work = _functions().irecv(_single("recv", tensors), group=self, tag=tag, group_src=srcRank)
        return work

    def recv_anysource(self, tensors: Any, tag: int = 0) -> Work:
        """A receive from any rank."""
        work: Work = _functions().irecv(_single("recv_anysource", tensors), group=self, tag=tag)
        return work

    # -- several in one go

    def _together(self, calls: Callable[[], Any]) -> Work:
        self._start_coalescing()
        try:
            calls()
        except BaseException:
            self._self().coalescing = None
            raise
        return self._end_coalescing()

    def _start_coalescing(self, device: Any = None) -> None:
        """Collects later all_reduce, all_gather_into_tensor or reduce_scatter_tensor calls, for _end_coalescing."""
        from torchemu.c10d.coalescing import begin

        begin(self._self())

    def _end_coalescing(self, device: Any = None) -> Work:
        """Issues them in one go.

        Raises:
            RuntimeError: there were none, or they do not fit one collective.
        """
        from torchemu.c10d.coalescing import end

        works = end(self._self(), async_ops=True)
        if len(works) != 1:
            raise RuntimeError(f"coalesced calls must fit one collective; these are {len(works)}")
        return works[0]

    # -- hooks

    def _register_on_completion_hook(self, hook: Callable[[WorkInfo], Any]) -> None:
        """Calls a function for each operation of this rank that has ended: when it issues the next one, and when it
        leaves the group.

        Raises:
            RuntimeError: the group's backend is not nccl.
            DistBackendError: there is such a function already.
        """
        group = self._self()
        if not group.takes_devices or group.backend == "gloo":
            raise RuntimeError(f"Only ProcessGrouppNCCL supports onCompletion hook, but got {group.backend} backend.")
        if group.hooks is not None and Completion in group.hooks.watchers:
            raise DistBackendError("ProcessGroupNCCL OnCompletion hook already registered")
        _hooks.attach(group, Completion, Completion(hook))

    # -- what else PyTorch's groups are asked

    def _get_sequence_number_for_group(self) -> int:
        """Returns how many collectives this rank has issued to the group."""
        delegate = self._self().delegate
        if delegate is not None:
            return delegate.any_backend()._get_sequence_number_for_group()
        return go.NextSeq(self.handle, runtime.current().rank)

    def _get_backend(self, device: Any) -> Any:
        """Returns what does the group's operations on a device: the group itself, or what is registered for such
        devices.

        Raises:
            RuntimeError: its backend is for other devices.
        """
        group, kind = self._self(), str(device).partition(":")[0]
        if group.delegate is not None:
            return group.delegate.backend(kind)
        if not (group.takes_hosts if kind == "cpu" else group.takes_devices):
            raise RuntimeError(f"No backend type associated with device type {kind}")
        return group

    def get_backend(self, device: Any) -> Any:
        """Returns what does the group's operations on a device; see torch.distributed.get_backend_impl."""
        return self._get_backend(device)

    def _register_backend(self, device: Any, backend_type: BackendType, backend: Any = None) -> None:
        """Makes a backend do the operations on a type of device, for a group that a program has made.

        Raises:
            TypeError: not a backend.
            RuntimeError: the group is on the fabric.
        """
        from torchemu.frontends.numpy.distributed._backend_groups import Backend

        if not isinstance(backend, (Backend, GroupMethods)) and backend is not None:
            raise TypeError(
                "_register_backend(): incompatible function arguments. The following argument types are supported:\n"
                "    1. (self: torch._C._distributed_c10d.ProcessGroup, device: torch.device, backend_type: "
                "c10d::ProcessGroup::BackendType, backend: c10d::Backend | None = None) -> None\n\n"
                f"Invoked with: {self!r}, {device!r}, {backend_type!r}, {backend!r}"
            )
        self._own_dispatch("_register_backend").register(str(device).partition(":")[0], backend_type, backend)

    def _set_default_backend(self, backend_type: BackendType) -> None:
        """Says which kind of backend the group is called after."""
        self._own_dispatch("_set_default_backend").prefer(backend_type)

    def _own_dispatch(self, method: str) -> Dispatch:
        delegate = self._self().delegate
        if delegate is None:
            raise RuntimeError(f"ProcessGroup.{method} is for groups that a program makes: this one is on the fabric")
        return delegate

    def _get_backend_name(self) -> str:
        return self._self().name()

    @property
    def _device_types(self) -> list[device]:
        from torchemu.c10d.backends import BackendConfig

        delegate = self._self().delegate
        kinds = BackendConfig(self.backend).device_backend_map if delegate is None else delegate.kinds
        return [device(kind) for kind in kinds]

    def _enable_collectives_timing(self) -> None:
        """Does nothing: works always know their duration."""

    def _set_group_name(self, name: str) -> None:
        self._self()._name = name

    def _set_group_desc(self, description: str) -> None:
        self._self()._description = description

    def _set_sequence_number_for_group(self) -> None:
        """Does nothing: collectives are always numbered."""

    def _wait_for_pending_works(self) -> None:
        """Waits for what this rank has issued, where a function is to be called when it has ended."""
        self._self().finish_hooks()

    def _has_hooks(self) -> bool:
        return self.hooks is not None and bool(self.hooks.watchers)

    def split_group(
        self,
        ranks: Sequence[int],
        timeout: timedelta | None = None,
        opts: Any = None,
        group_name: str | None = None,
        group_desc: str | None = None,
    ) -> ProcessGroup:
        """The group of some group ranks, which all members of this group make together."""
        group: ProcessGroup = _functions().split_group(self, [list(ranks)], timeout, opts, group_desc)
        return group

    def merge_remote_group(
        self,
        store: Store,
        size: int,
        timeout: timedelta | None = None,
        group_name: str | None = None,
        group_desc: str | None = None,
    ) -> NoReturn:
        """Not supported: all ranks of a World are in the default group.

        Raises:
            NotImplementedError: always.
        """
        raise unsupported("ProcessGroup.merge_remote_group", "all ranks are in the default group; use new_group")

    def boxed(self) -> ProcessGroup:
        """Itself."""
        return self._self()

    unbox = boxed
