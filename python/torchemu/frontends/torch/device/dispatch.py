"""Every operation of a rank, below autograd: where its results are, and what it takes of the rank's device.

A dispatch mode, on each thread of a rank, sees operations as they would reach a device. It asks the CPU's kernels for
the results, names the storages that they come in, and puts a kernel on the rank's current stream.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._ops import HigherOrderOperator
from torch.utils._python_dispatch import TorchDispatchMode

from torchemu.frontends.torch import unwaited_uses
from torchemu.frontends.torch.device import (
    constants,
    cpu_dtypes,
    deferral,
    device_program_memory,
    fakes,
    functional,
    generators,
    host_work,
    launches,
    mixing,
    named,
    ordering,
    places,
    products,
    storages,
    traffic,
    waits,
)
from torchemu.frontends.torch.device.ground import Context, OutOfMemoryError, context, go, memory_use
from torchemu.frontends.torch.device.operations import (
    BELOW,
    FUNCTIONAL,
    KNOWN,
    PLAIN,
    RUN,
    Operation,
    learned,
    result_place,
)
from torchemu.frontends.torch.device.places import HOST, STATED_HOST, Place

_NOTHING: dict[str, Any] = {}

_STRIDED = torch.strided

_WAITS = frozenset({"wait_tensor", "_wrap_tensor_autograd"})
"""Functional collectives that send nothing."""


class RankMode(TorchDispatchMode):
    """A dispatch mode that sees the operations of a rank's thread.

    Args:
        rank: whose they are; None is whoever runs.

    Attributes:
        use: the memory that the rank's tensors take.
        deferred: what the rank has put off.
        watch: looks at the memory that device programs use.
        launch: puts a kernel on the rank's current stream: its name, its bytes, its operations and their unit.
        last: where the last operation was that computes; None is the host.
        checks: the core is to look for uses of memory that nothing orders.
        work: what operations take the host beside launches.
    """

    def __init__(self, rank: Context | None = None) -> None:
        super().__init__()
        self.rank = context() if rank is None else rank
        self.use = memory_use.current()
        self.launches = launches.current()
        self.launch: Callable[[str, int, int, str], None] = self.launches.add
        self.work = host_work.current()
        self.deferred, self.watch = deferral.current(), device_program_memory.current()
        self._last: Place | None = None
        self.checks = self.rank.world.ordered

    @property
    def last(self) -> Place | None:
        """The place of the thread's last operation. Those of a backward pass's hooks do not count, after which formulas
        go on where they were."""
        return self._last

    @last.setter
    def last(self, at: Place | None) -> None:
        if at is not self._last and not places.is_in_hook():
            self._last = at

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if types and not all(map(is_plain, types)):
            return self.subclassed(func, types, args, kwargs)
        if fakes.are_made():
            return fakes.handed_on(func, args, kwargs)
        if self.work.autograd:
            self.launches.each = self.work.of_kernels(args)
        op = KNOWN.get(func)
        if op is None:
            if isinstance(func, HigherOrderOperator):
                return self.higher(func, args, kwargs or _NOTHING)
            op = learned(func)
        if op.other is not None:
            op = op.for_call(args, kwargs)
        outstanding = self.rank.outstanding
        if outstanding is not None and outstanding.issued and op.touches:
            unwaited_uses.look_at_call(func, args, kwargs or _NOTHING)
        if self.checks and (op.touches or (op.works and op.kind == "factory")):
            return self.checked(op, args, kwargs or _NOTHING)
        if self.rank.stream_order is not None and op.touches:
            return self.ordered(op, args, kwargs or _NOTHING)
        return self.run(op, args, kwargs)

    def subclassed(self, func: Any, types: Any, args: Sequence[Any], kwargs: Any) -> Any:
        """Leaves an operation of tensors of classes of their own to these, or to PyTorch that traces it."""
        if not TRACED.isdisjoint(types):
            return fakes.handed_on(func, args, kwargs)
        if self.work.dtensor and host_work.are_dtensors(types):
            self.launches.before += self.work.of_dtensors(args)
        return NotImplemented

    supports_higher_order_operators = True

    def higher(self, func: HigherOrderOperator, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Calls an operation that calls functions, such as flex_attention: what it is made of is seen."""
        keys = torch._C.DispatchKey.CompositeExplicitAutograd, torch._C.DispatchKey.CUDA
        kernel = next((func.py_kernels[key] for key in keys if key in func.py_kernels), None)
        if kernel is None:
            raise NotImplementedError(f"{func}: it has no implementation by other operations")
        with self:
            return kernel(*args, **kwargs)

    def checked(self, op: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Does an operation of a World that is checked, and tells the core what it uses."""
        out = self.run(op, args, kwargs)
        if op.kind == "factory":  # it makes a tensor like another one, and reads none
            ordering.touch(self.rank, op.func, (), {}, out, waits=False)
        elif op.kind == "move":
            ordering.touch_copy(self.rank, op.func, args, kwargs, out, _is_late(args, kwargs))
        else:
            ordering.touch(self.rank, op.func, args, kwargs, out, op.kind == "read")
        return out

    def ordered(self, op: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Does an operation of a rank with several streams, and looks whether it comes after what it reads."""
        ordering.before(self.rank, op.func, args, kwargs)
        out = self.run(op, args, kwargs)
        waits = op.kind == "read" or (op.kind == "move" and not _is_late(args, kwargs))
        ordering.after(self.rank, op.func, args, kwargs, out, waits)
        return out

    def run(self, op: Operation, args: Sequence[Any], kwargs: dict[str, Any] | None) -> Any:
        """Does an operation, or puts it off."""
        if self.watch.is_on:
            return device_program_memory.run(self, op, args, kwargs or _NOTHING)
        try:
            return self.at_once(op, args, kwargs or _NOTHING)
        except RuntimeError as error:
            if not constants.is_refused(error):
                raise
        return self.at_once(op, constants.as_tensors(op.func, args), kwargs or _NOTHING)

    def at_once(self, op: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Does an operation, or puts it off where it needs the data of collectives."""
        if self.deferred.works:
            return self.behind(op, args, kwargs)
        return op.run(self, op, args, kwargs)

    def behind(self, op: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Does an operation while the data of collectives is not in place, or puts it off."""
        if op.kind in ("view", "factory"):
            return op.run(self, op, args, kwargs)
        reads, writes = unwaited_uses.operands(op.func, args, kwargs)
        if not self.deferred.concerns(reads, writes):
            return op.run(self, op, args, kwargs)
        if self.deferred.is_settled() or op.kind not in ("kernel", "move") or not deferral.can_be_put_off(op):
            self.deferred.catch_up()
            return op.run(self, op, args, kwargs)
        at, nbytes = op.survey(args, kwargs, checks=op.kind == "kernel")
        target = args[0] if op.name == "copy_" else None
        if at is None or (op.kind == "move" and _leaves(args, kwargs, target)):
            self.deferred.catch_up()
            return op.run(self, op, args, kwargs)
        try:
            out = self.deferred.put_off(op, args, _on_host(kwargs), writes)
        except Exception:  # what it gives depends on elements, nobody knows it without, or the call is wrong
            self.deferred.catch_up()
            return op.run(self, op, args, kwargs)
        if op.kind == "kernel":
            return self.made(op, args, kwargs, out, at, nbytes)
        if target is None:
            self.settle(out, at)
        self.launch(op.name, *traffic.copied(args[0] if target is None else args[1], out))
        return out

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Says that the mode is none that a compiler sees: PyTorch would wrap each call."""
        return False

    # what operations do, by kind

    def foreign(self, op: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Calls what is no operation of a device. What it is made of is seen, unless it is a collective's own."""
        if op.space in BELOW:
            return op.func(*args, **kwargs)
        at = op.survey(args, kwargs, checks=False)[0]
        if op.is_made_of_others:
            with self, places.made_at(at):
                return op.parts(at)(*args, **kwargs)
        with places.made_at(at):
            if at is not None and op.space in FUNCTIONAL and op.name not in _WAITS:
                self.launches.before += self.work.functional_collective
            out = self.communicated(op, args, kwargs) if op.space in FUNCTIONAL else op.func(*args, **kwargs)
        if at is not None:
            self.settle(out, at)
        return out

    def communicated(self, op: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Calls a collective that returns its result."""
        if op.name == "all_gather_into_tensor_out":
            return functional.gathered_into(*args, **kwargs)
        return op.func(*args, **kwargs)

    def view(self, op: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Calls what looks at no element: the result is in the same memory."""
        return op.compute(*args, **kwargs)

    def resize(self, op: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Gives a tensor another size, and with that perhaps other memory."""
        storage = args[0].untyped_storage()
        device_program_memory.before_move(storage)
        before = storage.nbytes()
        out = op.compute(*args, **kwargs)
        storages.count_again(storage, before)
        return out

    def filling(self, op: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Computes into given tensors, which PyTorch resizes where the result has another shape."""
        given = [tensor.untyped_storage() for tensor in deferral.tensors([kwargs[name] for name in op.fills])]
        before = [storage.nbytes() for storage in given]
        for storage in given:
            if storage.resizable():
                device_program_memory.before_move(storage)
        out = self.kernel(op, args, kwargs)
        for storage, nbytes in zip(given, before, strict=True):
            storages.count_again(storage, nbytes)
        return out

    def placing(self, op: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Writes elements by indices, which may be a device's although the elements are the host's."""
        return self.kernel(op, self.with_places(args), kwargs)

    def waits_first(self, op: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Does an operation once the host knows what it takes, and the device has it."""
        self.prepare(args)
        return (self.placing if op.writes_by_index else self.kernel)(op, args, kwargs)

    def prepare(self, args: Sequence[Any]) -> None:
        """Copies operands of the host's to the device, counts for how many elements conditions hold, and waits."""
        for t in deferral.tensors(args[1:3]):
            if places.of(t) is None:
                go.LaunchCopy(self.rank.stream, traffic.size(t), False)
        for mask in filter(waits.is_mask, args[1]):
            self.launch("nonzero", mask.nbytes, mask.nbytes // 4, "vector")
        self.catch_up()

    def waits_last(self, op: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Does an operation, and has the host wait for its end."""
        out = self.kernel(op, args, kwargs)
        self.look(args)
        return out

    def look(self, args: Sequence[Any]) -> None:
        """Has the host wait for what a device has computed of operands."""
        if any(places.of(t) is not None for t in deferral.tensors(args)):
            self.catch_up()

    def with_places(self, args: Sequence[Any]) -> Sequence[Any]:
        """Returns the operands of a write by indices. For a tensor of the host those that a device has are copied to
        the host, and so is a single value."""
        if places.of(args[0]) is not None:
            return args
        with self:
            if isinstance(args[1], int):
                return args[0], args[1], _at_host(args[2]), *args[3:]
            value = _at_host(args[2]) if args[2].dim() == 0 else args[2]
            return args[0], [_at_host(i) for i in args[1]], value, *args[3:]

    def composite(self, op: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Takes an operation apart that is made of others, as autograd would have done."""
        with self:
            out = op.func.decompose(*args, **kwargs)
        return self.kernel(op, args, kwargs) if out is NotImplemented else out

    def kernel(self, op: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Computes, and charges the device of the operands."""
        at, nbytes = op.survey(args, kwargs)
        if at is None:
            self.note_host(args)
            return op.on_host(*args, **kwargs)
        self.last = at
        if op.random:
            out = generators.computed(op, args, kwargs, args[0] if args else None)
        else:
            try:
                out = op.compute(*args, **kwargs)
            except RuntimeError as error:
                out = cpu_dtypes.instead(op, args, kwargs, str(error))
                if out is NotImplemented:
                    raise
        return self.made(op, args, kwargs, out, at, nbytes)

    def packed(self, op: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Packs sequences: the host gets the numbers of those that go on."""
        at, nbytes = op.survey(args, kwargs)
        out = self.packs(op, args, kwargs)
        if at is not None:
            self.settle(out[0], at)
            self.launch(op.name, 2 * nbytes, 0, "vector")
        return out

    def packs(self, op: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Returns packed sequences, and the numbers of those that go on."""
        return op.compute(*args, **kwargs)

    def note_host(self, args: Sequence[Any]) -> None:
        """Notes that the host computes; states of generators, which are bytes, are not what a program computes."""
        if args and args[0].__class__ in PLAIN and args[0].is_floating_point():
            self.last = None

    def made(self, op: Operation, args: Sequence[Any], kwargs: dict[str, Any], out: Any, at: Place, nbytes: int) -> Any:
        """Names what an operation has made, and charges for it. Returns it."""
        if op.flops is not None:
            if not op.in_place:
                self.settle(out, at)
            for kernel in products.charge(op, args, kwargs, out):
                self.launch(*kernel)
            return out
        if out.__class__ is torch.Tensor and out.layout is _STRIDED:
            if not op.in_place:
                storage = out.untyped_storage()
                if getattr(storage, "_place", None) is None:
                    self.put(storage, at)
            self.launch(op.name, *op.counted(args, out, nbytes))
        else:
            more, _ = self.settle(out, at)
            self.launch(op.name, *traffic.counted_several(op, args, kwargs, nbytes, more))
        return out

    def read(self, op: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Computes what the host needs to know: it waits for all that is on the stream."""
        at, nbytes = op.survey(args, kwargs)
        if at is None:
            return op.compute(*args, **kwargs)
        if op.works:
            self.launch(op.name, nbytes, nbytes // 4, "vector")
        self.catch_up()
        out = op.compute(*args, **kwargs)
        self.settle(out, at)
        return out

    def factory(self, op: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Makes a tensor on the device that is asked for, or that of a tensor which it is to be like."""
        like = args[0] if args and isinstance(args[0], torch.Tensor) else None
        at, device = result_place(kwargs, places.of(like) if like is not None else None, like is not None, self.last)
        pinned = kwargs.get("pin_memory")
        if at is not None and (asked := kwargs.get("device")) is not None and asked.index is not None:
            named.note(asked)
        if device is not None or pinned:
            kwargs = (
                {**kwargs, "device": device, "pin_memory": False}
                if "pin_memory" in kwargs
                else {**kwargs, "device": device}
            )
        try:
            if at is not None and op.random:
                out = generators.computed(op, args, kwargs, like)
            else:
                if op.random:
                    generators.check_host(kwargs)
                out = op.compute(*args, **kwargs)
        except RuntimeError as error:
            raise (self.shortage(error) if at is not None else error) from None
        if pinned:
            out.untyped_storage()._pinned = True
        if at is None:
            return out
        nbytes, flops = self.settle(out, at)
        if op.works:
            self.launch(op.name, nbytes, flops, "vector")
        return out

    def move(self, op: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Copies elements, on a device, or between one and the host."""
        to, source, late = self.ends_of(op, args, kwargs)
        at = places.of(source)
        self.last = to
        if at is not None and to is None and not late:
            self.catch_up_after_copy(traffic.size(source))
        out = op.compute(*args, **self.on_host(kwargs))
        if to is not None and op.name == "_to_copy":
            self.settle(out, to)
        elif late and op.name == "_to_copy" and at is not None:
            places.pin(out)  # so that the copy can be under way while the host goes on
        if to is not None or late:
            self.charge_copy(op, source, out, to, late)
        return out

    def ends_of(
        self, op: Operation, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[Place | None, torch.Tensor, bool]:
        """Returns where a copy goes to, what is copied, and whether the host goes on while it is under way."""
        if op.name == "_to_copy":
            return result_place(kwargs, places.of(args[0]), True)[0], args[0], bool(kwargs.get("non_blocking"))
        asked = bool(kwargs.get("non_blocking") or (op.name == "copy_" and len(args) > 2 and args[2]))
        return places.of(args[0]), args[1], asked and not waits.for_copy(args[0], args[1], asked)

    def on_host(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """Returns the arguments by which the CPU's kernel makes a result that is to be on a device, or the host."""
        device = kwargs.get("device")
        is_ours = device is not None and (device.type == "cpu" or places.is_simulated(device))
        return {**kwargs, "device": HOST} if is_ours else kwargs

    def charge_copy(self, op: Operation, source: torch.Tensor, out: torch.Tensor, to: Place | None, late: bool) -> None:
        """Puts a copy on the rank's stream. The host waits for one from its memory to a device that is not late."""
        at = places.of(source)
        if at is not None and to is not None:
            self.launch(op.name, *traffic.copied(source, out))
        elif to is not None:
            go.LaunchCopy(self.rank.stream, traffic.size(out), False)
            if not late and out.numel():
                self.catch_up()
        elif at is not None:
            go.LaunchCopy(self.rank.stream, traffic.size(out), True)

    # names and memory

    def put(self, storage: Any, at: Place) -> None:
        """Puts a new storage on a device.

        Raises:
            torch.OutOfMemoryError: the device has not so much memory left.
        """
        storage._place = at
        try:
            storage._piece = self.use.take(storage, storage.nbytes())
        except OutOfMemoryError as error:
            raise torch.OutOfMemoryError(str(error)) from None

    def settle(self, out: Any, at: Place) -> tuple[int, int]:
        """Puts results on a device, but such that have a place. Returns their bytes and how many elements they have."""
        nbytes = flops = 0
        for t in (out,) if isinstance(out, torch.Tensor) else out if isinstance(out, (tuple, list)) else ():
            if isinstance(t, torch.Tensor):
                for part in (t,) if t.layout is _STRIDED else places.parts(t):
                    storage = part.untyped_storage()
                    if getattr(storage, "_place", None) is None:
                        self.put(storage, at)
                    nbytes += part.nbytes
                if t.layout is not _STRIDED:
                    places.name(t, at)
                    continue
                flops += t.numel()
        return nbytes, flops

    def shortage(self, error: RuntimeError) -> Exception:
        """Returns the device's error for one of the host's memory."""
        text = str(error)
        if "DefaultCPUAllocator" not in text:
            return error
        wanted = [int(word) for word in text.replace(".", " ").split() if word.isdecimal()]
        try:
            self.use.check(max(wanted, default=0))
        except OutOfMemoryError as shortage:
            return torch.OutOfMemoryError(str(shortage))
        return error

    # time

    def catch_up(self) -> None:
        """Makes the host wait until all has ended that is on the rank's current stream."""
        event = go.StreamRecord(self.rank.stream)
        try:
            self.rank.wait(event)
        finally:
            go.Release(event)

    def catch_up_after_copy(self, nbytes: int) -> None:
        """Copies so many bytes to the host, which waits for them."""
        go.LaunchCopy(self.rank.stream, nbytes, True)
        self.catch_up()


def _at_host(tensor: Any) -> Any:
    """Returns a tensor of the host with the elements of one that may be a device's; None for None."""
    return tensor if tensor is None or places.of(tensor) is None else tensor.cpu()


def _is_late(args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Says whether the host goes on while a copy is under way: one on a device, or one that the program does not wait
    for."""
    if kwargs.get("non_blocking") or (len(args) > 2 and args[2] is True):
        return True
    return places.of(args[0]) is not None and kwargs.get("device") is None and _all_on_device(args)


def _all_on_device(args: Sequence[Any]) -> bool:
    return all(places.of(a) is not None for a in args if isinstance(a, torch.Tensor))


def _leaves(args: Sequence[Any], kwargs: dict[str, Any], target: Any) -> bool:
    """Says whether a copy is to the host or from it, or from one device to another."""
    device = kwargs.get("device")
    if target is not None:
        return places.of(target) is not places.of(args[1])
    return (device is not None and device.type != "cpu") or device == STATED_HOST


def _on_host(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {**kwargs, "device": HOST} if kwargs.get("device") is not None else kwargs


def is_plain(kind: Any) -> bool:
    """Reports whether tensors of a class are PyTorch's own to dispatch."""
    return kind in PLAIN or kind.__torch_dispatch__ is torch._C._disabled_torch_dispatch_impl


# They take long, and need nothing of the above.
from torch._subclasses.fake_tensor import FakeTensor  # noqa: E402
from torch._subclasses.functional_tensor import FunctionalTensor  # noqa: E402

TRACED = frozenset({FakeTensor, FunctionalTensor})
"""Classes of tensors that stand for others: dispatch modes do what is done with them, of which PyTorch's are below."""

for _kind in (
    "foreign",
    "view",
    "composite",
    "kernel",
    "read",
    "factory",
    "move",
    "packed",
    "resize",
    "filling",
    "placing",
    "waits_first",
    "waits_last",
):
    RUN[_kind] = getattr(RankMode, _kind)

__all__ = ["HOST", "STATED_HOST", "RankMode", "mixing"]
