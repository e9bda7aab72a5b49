"""Calls of functions on other workers, and their answers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._C._distributed_rpc import WorkerInfo
from torch.distributed.rpc import internal

from torchemu.frontends.torch import futures
from torchemu.frontends.torch.rpc import agents, contexts, messages
from torchemu.frontends.torch.rpc.agents import DEFAULT_MS, PS_PER_MS, Agent
from torchemu.frontends.torch.rpc.messages import ENDS, Parcel
from torchemu.runtime import threads
from torchemu.runtime.waiting import host_time

UNSET = -1.0
_PS_PER_SECOND = 10**12

Work = Callable[[Parcel, list[torch.Tensor]], Any]
"""The part of a call that its worker does: a function of the parcel and the tensors in it, which returns the answer's
value, or a future of that."""


class Done:
    """A value that is the answer as it is, also where it is a future, which cannot be sent.

    Args:
        value: it.
    """

    def __init__(self, value: Any) -> None:
        self.value = value


class Call:
    """One call, as who has made it knows it.

    Args:
        to: the worker.
        seconds: its limit; UNSET is the agent's, 0 is none.
        raw: its future has an answer that says of an exception as it is; else the exception.

    Attributes:
        agent: the caller's.
        target: the worker's agent.
        future: of the answer.
        context: the number of the distributed autograd's context that it is in; None for none.
    """

    def __init__(self, to: WorkerInfo, seconds: float, raw: bool = False) -> None:
        self.agent, self.to = agents.current(), to
        self.target: Agent = self.agent.cluster.agents[to.id]
        self.ms = self.agent.ms if seconds == UNSET else agents.milliseconds(seconds)
        self.future: torch.futures.Future[Any] = torch.futures.Future()
        futures.describe(self.future, f"an RPC to {to.name}", [self.target.rank])
        self.context = contexts.current_number()
        self._raw, self._places, self._begun = raw, threads.Places(), host_time()

    def send(self, work: Work, data: bytes, tensors: list[torch.Tensor]) -> Call:
        """Sends it, to have the work done there."""
        agent, target = self.agent, self.target
        parcel = messages.packed(agent, self.to, data, tensors, self.context, answers=False)
        agent.pending[self] = self.fail
        try:
            messages.deliver(agent, target, parcel.nbytes, lambda: self._serve(work, parcel))
        except RuntimeError as error:
            self.fail(str(error))
            return self
        agent.cluster.began()
        if self.ms not in (0, DEFAULT_MS):
            messages.begin(agent, "the limit of an RPC", self._watch)
        return self

    # On the worker's rank

    @contextlib.contextmanager
    def _answering(self) -> Iterator[None]:
        """Lets the running thread be in the call's context, and answers with what is raised within the with block."""
        contexts.enter(self.context)
        try:
            yield
        except ENDS:
            raise
        except BaseException as error:
            self._refuse(error)
        finally:
            contexts.enter(None)

    def _serve(self, work: Work, parcel: Parcel) -> None:
        with self._answering():
            if self.context is not None:
                contexts.entered_by(self.context, self.agent.id)
            value = work(parcel, parcel.received())
            if isinstance(value, torch._C.Future):
                value.add_done_callback(self._answer_later)
            else:
                self._answer(value.value if isinstance(value, Done) else value)

    def _answer_later(self, future: Any) -> None:
        """Answers with a future's value, once it has one."""
        with self._answering():
            self._answer(value_of(future))

    def _answer(self, value: Any) -> None:
        data, tensors = internal.serialize(value)
        parcel = messages.packed(self.target, self.agent.info, data, tensors, self.context, answers=True)
        self._reply(parcel.nbytes, lambda: self._take(parcel))

    def _refuse(self, error: BaseException) -> None:
        """Answers that PyTorch itself, and no function of the program, has failed."""
        kept = error if type(error) is RuntimeError else messages.told(error)
        text = str(kept)
        self._reply(len(text), lambda: self._over(lambda: self.fail(text)))

    def _reply(self, nbytes: int, action: Callable[[], object]) -> None:
        """Sends a message back, unless the caller is not there any more."""
        if self.agent.is_there:
            messages.deliver(self.target, self.agent, nbytes, action)
        else:
            self.agent.cluster.ended()

    # On the caller's rank

    def _take(self, parcel: Parcel) -> None:
        try:
            value = internal.deserialize(parcel.data, parcel.received())
        except ENDS:
            raise
        except BaseException as error:
            text = str(messages.told(error))
            self._over(lambda: self.fail(text))
            return
        self._over(lambda: self._end(value))

    def _over(self, end: Callable[[], None]) -> None:
        try:
            end()
        finally:
            self.agent.cluster.ended()

    def _end(self, value: Any) -> None:
        if self.ms and host_time() - self._begun > self.ms * PS_PER_MS:
            self._late()
        elif self._is_first():
            error = None if self._raw else raised_by(value)
            if error is None:
                self.future.set_result(value)
            else:
                self.future.set_exception(error)

    def fail(self, text: str) -> None:
        """Gives the future an error."""
        if self._is_first():
            self.future.set_exception(RuntimeError(text))

    def _late(self) -> None:
        self.fail(f"RPCErr:1:RPC ran for more than set timeout ({self.ms} ms) and will now be marked with an error")

    def _is_first(self) -> bool:
        """Says whether the future has nothing yet, and notes that it gets something."""
        if self.agent.pending.pop(self, None) is None:
            return False
        self._places.call_next()
        return True

    def _watch(self) -> None:
        """Waits for the end, or for the limit."""
        seconds = self.ms / 1000 - (host_time() - self._begun) / _PS_PER_SECOND
        if not self._places.is_called(f"the limit of an RPC to {self.to.name}, {self.ms} ms", max(seconds, 0.0)):
            self._late()


def value_of(future: Any) -> Any:
    """Returns a future's value, to be sent on; where that is another call's, which failed, its answer."""
    try:
        return future.value()
    except Exception as error:
        answer = getattr(error, "answer", None)
        if answer is None:
            raise
        return answer


def raised_by(value: Any) -> Exception | None:
    """Returns the exception that a call ends with whose answer has this value; None for none."""
    try:
        internal._handle_exception(value)
    except Exception as error:
        made = messages.told(error)
        made.answer = value  # type: ignore[attr-defined] # who sends it on sends the answer
        return made
    return None


def run_python(is_async: bool) -> Work:
    """The work of calling a function of Python, which returns a future where it is async."""

    def work(parcel: Parcel, tensors: list[torch.Tensor]) -> Any:
        called = internal.deserialize(parcel.data, tensors)
        with agents.current().slots:
            value = internal._run_function(called)
        if is_async and not isinstance(value, internal.RemoteException | torch._C.Future):
            kind = f"{type(value).__module__}.{type(value).__qualname__}"
            raise RuntimeError(
                "Functions decorated with @rpc.async_function must return a torch.futures.Future object, but got "
                f"{kind}"
            )
        return value if is_async else Done(value)

    return work


def _run_found(find: Callable[[], Callable[..., Any]]) -> Work:
    """The work of calling a function that the worker finds."""

    def work(parcel: Parcel, tensors: list[torch.Tensor]) -> Any:
        args, kwargs = internal.deserialize(parcel.data, tensors)
        with agents.current().slots:
            return find()(*args, **kwargs)

    return work


def run_operation(name: str) -> Work:
    """The work of calling an operation of PyTorch's."""
    return _run_found(lambda: torch._C._jit_get_operation(name)[0])


def run_script(name: str) -> Work:
    """The work of calling a function of TorchScript's."""
    return _run_found(lambda: torch.jit._state._python_cu.find_function(name))


def invoke_python(
    dst: WorkerInfo, pickled: bytes, tensors: list[torch.Tensor], timeout: float = UNSET, is_async: bool = False
) -> Any:
    """Acts as _invoke_rpc_python_udf: calls a pickled function, and returns a future of what it returns."""
    return Call(dst, timeout).send(run_python(is_async), pickled, tensors).future


def invoke_operation(dst: WorkerInfo, name: str, timeout: float, *args: Any, **kwargs: Any) -> Any:
    """Acts as _invoke_rpc_builtin."""
    return Call(dst, timeout).send(run_operation(name), *internal.serialize((args, kwargs))).future


def invoke_script(dst: str, name: str, args: Any, kwargs: Any, timeout: float = UNSET, is_async: bool = False) -> Any:
    """Acts as _invoke_rpc_torchscript."""
    to = agents.current().get_worker_info(dst)
    return Call(to, timeout).send(run_script(name), *internal.serialize((args, kwargs))).future
