"""Contexts of distributed autograd: what a rank knows of one backward pass and of the calls before it."""

from __future__ import annotations

import itertools
from typing import Any

import torch

from torchemu.frontends.torch.rpc import agents
from torchemu.runtime.rank_local import RankLocal, ThreadLocal

_WORKER_BITS = 48
"""The numbers of a worker's contexts and messages begin with the worker's own, above so many bits."""


class DistAutogradContext:
    """One rank's part of a context, by PyTorch's name.

    Args:
        number: of the context, which is the same on all ranks.

    Attributes:
        gradients: of the rank's leaves.
        sent: joints of messages that it has sent, by their numbers.
        received: the nodes with which messages have begun its graph, by the messages' numbers.
        known: the numbers of workers to which, or from which, messages went.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.gradients: dict[torch.Tensor, torch.Tensor] = {}
        self.sent: dict[int, Any] = {}
        self.received: dict[int, Any] = {}
        self.known: set[int] = set()

    def accumulate(self, leaf: torch.Tensor, gradient: torch.Tensor) -> None:
        """Adds to a leaf's gradient."""
        before = self.gradients.get(leaf)
        self.gradients[leaf] = gradient if before is None else before + gradient

    def _context_id(self) -> int:
        return self.number

    def _send_functions(self) -> dict[int, Any]:
        return dict(self.sent)

    def _recv_functions(self) -> dict[int, Any]:
        return dict(self.received)

    def _known_worker_ids(self) -> set[int]:
        return set(self.known)


class _Container:
    """The contexts of one rank."""

    def __init__(self) -> None:
        self.worker: int | None = None
        self.contexts: dict[int, DistAutogradContext] = {}
        self.context_numbers = self.message_numbers = itertools.count()


_container: RankLocal[_Container] = RankLocal(_Container)

_current: ThreadLocal[list[int]] = ThreadLocal(list)


def begin(worker: int) -> None:
    """Makes the running rank's contexts have numbers of this worker's."""
    own = _container.get()
    if own.worker == worker:
        return
    own.worker = worker
    own.context_numbers = itertools.count(worker << _WORKER_BITS)
    own.message_numbers = itertools.count(worker << _WORKER_BITS)


def _begun() -> _Container:
    own = _container.get()
    if own.worker is None:
        raise RuntimeError(
            "Need to initialize distributed autograd using torch.distributed.autograd.init()"  # PyTorch's words
        )
    return own


def message_number() -> int:
    """Returns the number of a message of the running rank."""
    return next(_begun().message_numbers)


def new() -> DistAutogradContext:
    """Makes a context, and lets the running thread be in it.

    Raises:
        RuntimeError: it is in one.
    """
    own, entered = _begun(), _current.get()
    if entered:
        raise RuntimeError("Already have an autograd context id for this thread.")
    number = next(own.context_numbers)
    entered.append(number)
    made = own.contexts[number] = DistAutogradContext(number)
    return made


def release(number: int) -> None:
    """Forgets a context, on all ranks that know it; the running thread is in it no more."""
    entered = _current.get()
    if number in entered:
        entered.remove(number)
    found = _container.get().contexts.pop(number, None)
    if found is None or not agents.is_set():
        return
    for agent in agents.current().cluster.agents.values():
        container = agent.context.own.get(_container)
        if container is not None:
            container.contexts.pop(number, None)


def retrieve(number: int) -> DistAutogradContext:
    """Returns the running rank's part of a context.

    Raises:
        RuntimeError: there is none.
    """
    found = _container.get().contexts.get(number)
    if found is None:
        raise RuntimeError(f"Could not find autograd context with id: {number}")
    return found


def entered_by(number: int, worker: int) -> DistAutogradContext:
    """Returns the running rank's part of a context, in which a message goes to a worker or comes from it."""
    own = _begun()
    found = own.contexts.get(number)
    if found is None:
        found = own.contexts[number] = DistAutogradContext(number)
    found.known.add(worker)
    return found


def current_number() -> int | None:
    """Returns the number of the context that the running thread is in; None for none."""
    entered = _current.get()
    return entered[-1] if entered else None


def current() -> DistAutogradContext:
    """Returns the context that the running thread is in.

    Raises:
        RuntimeError: it is in none.
    """
    number = current_number()
    if number is None:
        raise RuntimeError(
            "Current thread doesn't have a valid autograd context. Please wrap your code using: `with "
            "torch.distributed.autograd.context() as context_id` to generate a valid context"
        )
    return retrieve(number)


def enter(number: int | None) -> None:
    """Lets the running thread, which is in none, be in a context."""
    _current.get()[:] = [] if number is None else [number]


def is_valid(number: int) -> None:
    """Raises a RuntimeError where there is no such context on the running rank."""
    retrieve(number)


def most() -> int:
    """Returns the greatest number that a context of the running rank may have."""
    return ((_begun().worker or 0) << _WORKER_BITS) | ((1 << _WORKER_BITS) - 1)


def get_gradients(number: int) -> dict[torch.Tensor, torch.Tensor]:
    """Returns the gradients of the running rank's leaves in a context."""
    return dict(retrieve(number).gradients)


def debug_info() -> dict[str, int]:
    """Returns figures of the running rank's contexts."""
    return {"num_autograd_contexts": len(_container.get().contexts), "num_current_backward_passes": 0}
