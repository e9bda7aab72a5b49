"""torch.cuda.CUDAGraph: what streams do is noted while it is done, undone, and done again at each replay.

A capture does all that it notes, in order to know the results' shapes, and then gives the memory that was there before
its elements back.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.hooks import RemovableHandle

from torchemu.frontends.torch import unwaited_uses
from torchemu.frontends.torch.device import deferral, launches, ordering, places, streams, waits
from torchemu.frontends.torch.device.deferral import tensors
from torchemu.frontends.torch.device.ground import context, memory_use
from torchemu.frontends.torch.device.operations import Operation, of, result_place
from torchemu.runtime import capture as captures
from torchemu.runtime.launches import graph_launch

_CAPTURING = "operation not permitted when stream is capturing"

_NONE: dict[int, Callable[[Any], Any]] = {}


class CUDAGraph:
    """Work of streams that is put there again as a whole.

    Args:
        keep_graph: it is instantiated by the first replay, or by instantiate, and not when its capture ends.

    A replay does what was captured again, in the order in which it was, and costs the host one launch. Work on the
    stream of the capture goes to that of the replay, other work to the stream that it was on.
    """

    def __init__(self, keep_graph: bool = False) -> None:
        self._steps: list[tuple[streams.Stream | None, Callable[[], Any]]] | None = None
        self._capture: _Capture | None = None
        self._keeps_graph, self._is_instantiated = keep_graph, False
        self._hooks: dict[str, dict[int, Callable[[CUDAGraph], Any]]] = {}

    def capture_begin(
        self, pool: Any = None, capture_error_mode: str = "global", check_input_liveness: bool = False
    ) -> None:
        """Begins to capture what is put on the current stream. What is captured keeps the tensors that it uses, so
        their liveness needs no check.

        Raises:
            RuntimeError: it is the default stream; a capture is under way.
        """
        if captures.current() is not None:
            raise RuntimeError(f"torch.cuda.CUDAGraph: {_CAPTURING}: captures do not nest")
        if streams.current_stream() == streams.default_stream():
            raise RuntimeError("CUDA graphs must be captured on a non-default stream.")
        streams.synchronize()
        self._capture = _Capture(streams.current_stream())
        self._capture.mode.__enter__()
        captures.begin(self._capture)
        self._tell("capture_start")

    def capture_end(self) -> None:
        """Ends the capture. Memory that was there before has its elements of then.

        Raises:
            RuntimeError: none is under way.
        """
        capture, self._capture = self._capture, None
        if capture is None:
            raise RuntimeError("torch.cuda.CUDAGraph.capture_end without capture_begin")
        captures.end()
        capture.mode.__exit__(None, None, None)
        streams.synchronize()
        capture.undo()
        self._steps = capture.steps
        self._tell("capture_end")
        if not self._keeps_graph:
            self.instantiate()

    def instantiate(self) -> None:
        """Tells hooks that a graph is ready, which it is after its capture."""
        self._is_instantiated = True
        self._tell("instantiate")

    def replay(self) -> None:
        """Puts what was captured on the current stream again.

        Raises:
            RuntimeError: nothing was captured.
        """
        if self._steps is None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        if not self._is_instantiated:
            self.instantiate()
        self._tell("replay_start")
        own = streams.current_stream()
        try:
            with torch.no_grad(), _unseen(), graph_launch(), memory_use.current().apart():
                for stream, again in self._steps:
                    with torch.cuda.stream(own if stream is None else stream):
                        again()
        finally:
            self._tell("replay_end")

    def reset(self) -> None:
        """Forgets what was captured."""
        self._steps, self._is_instantiated = None, False

    def _tell(self, moment: str) -> None:
        """Calls the hooks of a moment: those for all graphs, whose errors count for nothing, and this one's."""
        for hook in list(getattr(torch.cuda.graphs, f"_global_{moment}_hooks", _NONE).values()):
            with contextlib.suppress(Exception):
                hook(self)
        for hook in list(self._hooks.get(moment, _NONE).values()):
            hook(self)

    def _register(self, moment: str, hook: Callable[[CUDAGraph], Any]) -> RemovableHandle:
        hooks = self._hooks.setdefault(moment, OrderedDict())
        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        return handle

    register_capture_start_hook = functools.partialmethod(_register, "capture_start")
    register_capture_end_hook = functools.partialmethod(_register, "capture_end")
    register_post_instantiate_hook = functools.partialmethod(_register, "instantiate")
    register_replay_start_hook = functools.partialmethod(_register, "replay_start")
    register_replay_end_hook = functools.partialmethod(_register, "replay_end")

    def pool(self) -> tuple[int, int]:
        """Returns a name for memory, which graphs here do not share."""
        return 0, id(self)

    def enable_debug_mode(self) -> None:
        """Does nothing."""

    def debug_dump(self, debug_path: str) -> None:
        """Does nothing: there is no graph of CUDA's to write."""


class AcceleratorGraph(CUDAGraph):
    """torch.accelerator.Graph: a with block is what is captured.

    Args:
        keep_graph: as for a CUDAGraph.
        pool, capture_error_mode: accepted.
    """

    def __init__(
        self, keep_graph: bool = False, *, pool: tuple[int, int] | None = None, capture_error_mode: str = "default"
    ) -> None:
        super().__init__(keep_graph)
        self.graph_pool, self.capture_error_mode = pool, capture_error_mode

    def __enter__(self) -> None:
        self.capture_begin()

    def __exit__(self, *_: object) -> None:
        self.capture_end()


GLOBAL_HOOKS = tuple(
    f"_global_{moment}_hooks"
    for moment in ("capture_start", "capture_end", "instantiate", "replay_start", "replay_end")
)
"""Variables of torch.cuda.graphs with the hooks for all graphs, in newer PyTorch."""


class _Capture:
    """A capture that is under way.

    Attributes:
        steps: the stream of each, None being that of the capture, and what puts it there again.
        mode: sees PyTorch's operations.
    """

    def __init__(self, stream: streams.Stream) -> None:
        self.steps: list[tuple[streams.Stream | None, Callable[[], Any]]] = []
        self.mode = _Noting(self)
        self.is_paused = False
        self._stream = stream
        self._before: dict[int, tuple[Any, bytes]] = {}

    def note(self, again: Callable[[], Any], writes: Sequence[Any]) -> None:
        """Notes something on the current stream: what puts it there again, and the tensors that it writes."""
        if self.is_paused:
            return
        for tensor in tensors(list(writes)):
            self._keep(tensor.untyped_storage())
        number = int(streams.current_stream().stream_id)
        if context().stream != streams.current_stream().handle:
            number = streams.number_of(context().stream)
        own = number == int(self._stream.stream_id)
        self.steps.append((None if own else streams.numbered(number), again))

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Lets a with block be noted as a whole, and not what it is made of."""
        before, self.is_paused = self.is_paused, True
        try:
            yield
        finally:
            self.is_paused = before

    def made(self, out: Any) -> None:
        """Notes results, whose memory was not there before."""
        for tensor in tensors(out):
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in self._before:
                self._before[storage.data_ptr()] = (storage, b"")

    def _keep(self, storage: Any) -> None:
        """Keeps the bytes of memory that is to have them again at the end."""
        at = torch._C.StorageBase.data_ptr(storage)
        if at and at not in self._before:
            self._before[at] = (storage, ctypes.string_at(at, storage.nbytes()))

    def undo(self) -> None:
        """Gives memory its bytes back."""
        for at, (_, held) in self._before.items():
            ctypes.memmove(at, held, len(held))


class _Noting(TorchDispatchMode):
    """A dispatch mode that notes operations of devices, above that which does them."""

    def __init__(self, capture: _Capture) -> None:
        super().__init__()
        self._capture = capture

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, capture = kwargs or {}, self._capture
        if capture.is_paused:
            return func(*args, **kwargs)
        op = of(func, args, kwargs)
        used = [t for t in tensors([args, kwargs]) if places.of(t) is not None]
        _permit(op, args, kwargs, used)
        position = len(capture.steps)
        kernels: list[launches.Launch] = []
        again = functools.partial(_do_again, func, args, kwargs, kernels)
        capture.note(again, unwaited_uses.operands(func, args, kwargs)[1])
        with capture.paused(), launches.current().noting(kernels):
            out = func(*args, **kwargs)
        made = [t for t in tensors(out) if places.of(t) is not None]
        known = {t.untyped_storage().data_ptr() for t in used}
        fresh = [t.untyped_storage().data_ptr() not in known for t in tensors(out)]
        capture.made([t for t in made if t.untyped_storage().data_ptr() not in known])
        if not (used or made) or op.kind == "view" or not op.works:
            del capture.steps[position]
        elif any(fresh):
            again.keywords["into"] = [t if new else None for t, new in zip(tensors(out), fresh, strict=True)]
        return out


def _permit(op: Operation, args: Sequence[Any], kwargs: dict[str, Any], used: list[torch.Tensor]) -> None:
    """Raises RuntimeError where the host would wait for a device."""
    if (op.kind == "read" and used) or (op.kind == "move" and args[0].numel() and _waits_for_copy(op, args, kwargs)):
        raise RuntimeError(f"CUDA error: {_CAPTURING}: {op.name} makes the host wait for the device")


def _waits_for_copy(op: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Reports whether the host waits for a copy."""
    if op.name == "copy_":
        return waits.for_copy(args[0], args[1], bool(kwargs.get("non_blocking") or (len(args) > 2 and args[2])))
    device, at = kwargs.get("device"), places.of(args[0])
    if device is None or device == places.META or kwargs.get("non_blocking"):
        return False
    to, _ = result_place(kwargs, at, has_operands=True)  # what PyTorch's C++ calls the CPU may be a device
    return (to is None) != (at is None)


_unseen = torch._C.DisableTorchFunction  # a device that replays calls no function of a program's modes
_is_meta = torch._C.TensorBase.is_meta.__get__  # a tensor of a device says that it is none


def _do_again(
    func: Any,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    kernels: Sequence[launches.Launch],
    into: Sequence[Any] = (),
) -> None:
    """Does an operation again, with its results in the memory that they were in at first: below autograd, where it was
    noted, for above it PyTorch takes some apart that are one for CUDA. Its kernels are those of then: none where it is
    part of a network that is charged as a whole."""
    mine = launches.current()
    with torch._C._AutoDispatchBelowAutograd(), mine.left_out():
        out = func(*args, **kwargs)
    for kernel in kernels:
        mine.add(*kernel)
    for made, target in zip(tensors(out), into, strict=False):
        if target is None or _is_meta(made):
            continue
        of, to = made.untyped_storage(), target.untyped_storage()
        if deferral.current().works or of.nbytes() != to.nbytes():
            target.copy_(made)
        else:
            ctypes.memmove(to.data_ptr(), of.data_ptr(), of.nbytes())
            ordering.overwrote(context(), func._schema.name.partition("::")[2], target)


def is_capturing() -> bool:
    """Says whether a capture is under way."""
    return captures.current() is not None
