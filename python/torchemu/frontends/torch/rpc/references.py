"""References to values on other workers, in the place of those in C++."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NoReturn, TypeVar

import torch
import torch.distributed.rpc as rpc
from torch._C._distributed_rpc import WorkerInfo
from torch.distributed.rpc import api, internal, rref_proxy

from torchemu.frontends.torch.rpc import agents, calls, passes
from torchemu.frontends.torch.rpc.agents import Agent
from torchemu.frontends.torch.rpc.calls import UNSET, Call, Work
from torchemu.frontends.torch.rpc.messages import ENDS, Parcel, told
from torchemu.runtime import threads

T = TypeVar("T")


class Held:
    """A value that its owner keeps, as long as anybody refers to it.

    Args:
        owner: the agent of the owner.
        number: of the value: the worker that has made it, and a number of that.
    """

    def __init__(self, owner: Agent, number: tuple[int, int]) -> None:
        self.owner, self.number = owner, number
        self._places = threads.Places()
        self._is_there = False
        self._value: Any = None
        self._error = ""

    def set(self, value: Any) -> None:
        """Puts it there; a RemoteException says that there will be none."""
        self._value, self._is_there = value, True
        self._places.call_all()

    def fail(self, error: str) -> None:
        """Says that there will be none."""
        self._error, self._is_there = error, True
        self._places.call_all()

    def get(self) -> Any:
        """Returns it, or a RemoteException; the owner calls this, and waits until it is there.

        Raises:
            RuntimeError: it could not be made.
        """
        if not self._is_there:
            self._places.is_called(f"the value of an RRef, which {self.owner.name} is to make", None)
        if self._error:
            raise RuntimeError(self._error)
        return self._value


class PyRRef:
    """A reference, by PyTorch's name.

    Args:
        value: what it is to refer to, on the running rank.
        type_hint: of TorchScript; it says nothing here.
    """

    _held: Held
    _fork: tuple[int, int] | None
    _made: Any  # the future of the value's making; None where others have seen to that
    _is_late: bool

    def __init__(self, value: Any, type_hint: Any = None) -> None:
        agent = agents.current()
        held = Held(agent, (agent.id, agent.number()))
        held.set(value)
        self._refer(held)

    def _refer(self, held: Held, fork: tuple[int, int] | None = None, made: Any = None) -> None:
        self._held, self._fork, self._made, self._is_late = held, fork, made, False
        self._agent = agents.current()
        self._types: Any = None  # the future of the type, once somebody has asked

    @classmethod
    def _to(cls, held: Held, fork: tuple[int, int] | None = None, made: Any = None) -> PyRRef:
        """Returns a reference to what somebody holds."""
        found = cls.__new__(cls)
        found._refer(held, fork, made)
        return found

    def is_owner(self) -> bool:
        """Says whether the running rank has the value."""
        return self._held.owner is self._agent

    def confirmed_by_owner(self) -> bool:
        """Says whether the owner is known to know of the reference."""
        return self._made is None or self.is_owner() or bool(self._made.done())

    def owner(self) -> WorkerInfo:
        """Returns what is known of the owner."""
        return self._held.owner.info

    def owner_name(self) -> str:
        """Returns the owner's name."""
        return self._held.owner.name

    def to_here(self, timeout: float = UNSET) -> Any:
        """Returns a copy of the value; the owner's is the value itself."""
        self._check_alive("call to_here() on it")
        if self._is_late:
            raise RuntimeError(
                "RRef creation via rpc.remote() timed out, and it is possible that the RRef on the owner node does not "
                "exist."
            )
        held = self._held
        if self.is_owner():
            value = held.get()
        else:
            value = (
                Call(self.owner(), timeout, raw=True).send(lambda *_: calls.Done(held.get()), b"RRef", []).future.wait()
            )
        internal._handle_exception(value)
        return value

    def local_value(self) -> Any:
        """Returns the value to its owner."""
        if not self.is_owner():
            raise RuntimeError(
                f"For UserRRef(rref_id={_told(self._held.number)}, fork_id={_told(self._fork)}), can't call "
                f"localValue() on user {agents.current().get_worker_info()}. Call it on owner {self.owner()}"
            )
        value = self._held.get()
        internal._handle_exception(value)
        return value

    def rpc_sync(self, timeout: float = UNSET) -> Any:
        """Returns a proxy whose methods are the value's, called by rpc_sync."""
        return rref_proxy.RRefProxy(self, rpc.rpc_sync, timeout)

    def rpc_async(self, timeout: float = UNSET) -> Any:
        """Returns a proxy whose methods are the value's, called by rpc_async."""
        return rref_proxy.RRefProxy(self, rpc.rpc_async, timeout)

    def remote(self, timeout: float = UNSET) -> Any:
        """Returns a proxy whose methods are the value's, called by remote."""
        return rref_proxy.RRefProxy(self, rpc.remote, timeout)

    def backward(self, dist_autograd_ctx_id: int = -1, retain_graph: bool = False) -> None:
        """Runs a backward pass from the value, on its owner.

        Args:
            dist_autograd_ctx_id: the number of a context; without one gradients are put into .grad.
            retain_graph: the graph can be used again.
        """
        if self.is_owner():
            _backward(self, dist_autograd_ctx_id, retain_graph)
        elif dist_autograd_ctx_id == -1:
            raise RuntimeError("User RRefs require 'dist_autograd_ctx_id' to be specified")
        else:
            rpc.rpc_sync(self.owner(), _backward, (self, dist_autograd_ctx_id, retain_graph))

    def _get_type(self, timeout: float = UNSET, blocking: bool = True) -> Any:
        if self._types is None:
            if self.is_owner():
                self._types = api._rref_typeof_on_owner(self, False)
            else:
                self._types = api._rref_typeof_on_user(self, timeout, False)
        return self._types.wait() if blocking else self._types

    def _get_future(self) -> Any:
        return self._made

    def _get_profiling_future(self) -> NoReturn:
        raise RuntimeError("RRef._get_profiling_future: RPCs are in no profile here")

    def _check_alive(self, what: str) -> None:
        """Raises a RuntimeError for a reference of who is no owner, where the agent has shut down."""
        if not (self.is_owner() or self._agent.is_running):
            raise RuntimeError(
                f"User RRef with RRefId={_told(self._held.number)} and ForkId={_told(self._fork)} has been deleted. "
                f"Cannot {what} after deletion."
            )

    def _serialize(self) -> tuple[int, ...]:
        self._check_alive("call fork an UserRRef")
        agent = self._agent
        fork = agent.id, agent.number()
        agent.cluster.sent[fork] = self._held
        return (self._held.owner.id, *self._held.number, *fork)

    @staticmethod
    def _deserialize(told: tuple[int, ...]) -> PyRRef:
        agent, fork = agents.current(), (told[-2], told[-1])
        held = agent.cluster.sent.pop(fork)
        return PyRRef._to(held, None if held.owner is agent else fork)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise RuntimeError("Can not pickle rref in python pickler, rref can only be pickled when using RPC")

    def __repr__(self) -> str:
        if self._fork is None:
            return f"OwnerRRef({_told(self._held.number)})"
        return f"UserRRef(RRefId = {_told(self._held.number)}, ForkId = {_told(self._fork)})"


class RRef(PyRRef, Generic[T]):
    """A reference that a program makes."""


def _told(number: tuple[int, int] | None) -> str:
    created_on, local = number or (-1, -1)
    return f"GloballyUniqueId(created_on={created_on}, local_id={local})"


def _backward(reference: PyRRef, context: int, retain_graph: bool) -> None:
    """Runs a backward pass from a value of the running rank's."""
    value = reference.local_value()
    if not isinstance(value, torch.Tensor):
        raise RuntimeError("RRef should contain a tensor for .backward()")
    if context == -1:
        torch.autograd.backward([value], retain_graph=retain_graph)
    else:
        passes.backward(context, [value], retain_graph)


def _made_by(work: Work, held: Held) -> Work:
    """The work of making a value, which its owner keeps."""

    def set_later(future: Any) -> None:
        try:
            held.set(calls.value_of(future))
        except ENDS:
            raise
        except BaseException as error:
            held.fail(str(told(error)))

    def make(parcel: Parcel, tensors: list[torch.Tensor]) -> Any:
        try:
            value = work(parcel, tensors)
        except ENDS:
            raise
        except BaseException as error:
            held.fail(str(error) if type(error) is RuntimeError else str(told(error)))
            return None
        if isinstance(value, torch._C.Future):
            value.add_done_callback(set_later)
        else:
            held.set(value.value if isinstance(value, calls.Done) else value)
        return None

    return make


def _remote(dst: WorkerInfo, timeout: float, work: Work, data: bytes, tensors: list[torch.Tensor]) -> PyRRef:
    agent = agents.current()
    call = Call(dst, timeout)
    held = Held(call.target, (agent.id, agent.number()))
    fork = None if call.target is agent else (agent.id, agent.number())
    made = PyRRef._to(held, fork, call.future)
    call.future.add_done_callback(_noting(made))
    call.send(_made_by(work, held), data, tensors)
    return made


def _noting(made: PyRRef) -> Callable[[Any], None]:
    """Returns what notes on a reference that its value was not made in time. Whoever asks an owner that has ended
    for the value hears that."""

    def note(future: Any) -> None:
        try:
            future.value()
        except RuntimeError:
            made._is_late = made._held.owner.is_there

    return note


def remote_python(
    dst: WorkerInfo, pickled: bytes, tensors: list[torch.Tensor], timeout: float = UNSET, is_async: bool = False
) -> PyRRef:
    """Acts as _invoke_remote_python_udf: calls a pickled function, and returns a reference to what it returns."""
    return _remote(dst, timeout, calls.run_python(is_async), pickled, tensors)


def remote_operation(dst: WorkerInfo, name: str, timeout: float, *args: Any, **kwargs: Any) -> PyRRef:
    """Acts as _invoke_remote_builtin."""
    return _remote(dst, timeout, calls.run_operation(name), *internal.serialize((args, kwargs)))


def remote_script(dst: str, name: str, timeout: float, is_async: bool, *args: Any, **kwargs: Any) -> PyRRef:
    """Acts as _invoke_remote_torchscript."""
    to = agents.current().get_worker_info(dst)
    return _remote(to, timeout, calls.run_script(name), *internal.serialize((args, kwargs)))


def debug_info() -> dict[str, str]:
    """Returns figures of references, of which none are counted."""
    return {"num_owner_rrefs": "0", "num_pending_futures": "0", "num_pending_users": "0", "num_forks": "0"}
