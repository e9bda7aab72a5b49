"""Blocking sockets in ranks: who waits for another rank lets it run."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import socket
from collections.abc import Callable
from typing import Any

from torchemu.launch.blocking import IN, OUT, is_programs_own, is_ready, may_take_turns, waited
from torchemu.launch.patches import replace

_FLAGS = {"recv": 1, "recvfrom": 1, "recv_into": 2, "recvfrom_into": 2, "recvmsg": 2, "recvmsg_into": 2}
"""By method that reads, where its flags are among the arguments."""

_FOR_PACKAGES = 0.1
"""Seconds for which an installed package stops the process, before others run: it may hold a lock."""


def install(stack: contextlib.ExitStack) -> None:
    """Lets ranks wait at sockets without stopping others, until the stack is closed."""
    kind = socket.socket
    for name, flags in _FLAGS.items():
        _replace(stack, name, _reading(getattr(kind, name), name, flags))
    _replace(stack, "_accept", _reading(kind._accept, "accept", 0))  # type: ignore[attr-defined]
    for name in ("connect", "connect_ex"):
        _replace(stack, name, _connecting(kind.connect, getattr(kind, name)))
    _replace(stack, "send", _sending(kind.send))
    _replace(stack, "sendall", _sending_all(kind.sendall))


def _replace(stack: contextlib.ExitStack, name: str, value: Any) -> None:
    """Replaces a method that the class may have from C."""
    if name in vars(socket.socket):
        replace(stack, socket.socket, name, value)
    else:
        setattr(socket.socket, name, value)
        stack.callback(delattr, socket.socket, name)


def is_far(one: socket.socket) -> bool:
    """Reports whether a socket is connected with another machine."""
    try:
        peer, own = one.getpeername(), one.getsockname()
    except OSError:
        return False
    return isinstance(peer, tuple) and not _is_near(str(peer[0])) and peer[0] != own[0]


def _is_near(host: str) -> bool:
    return host.startswith("127.") or host in ("", "::1", "0.0.0.0", "localhost", socket.gethostname(), _own_address())


@functools.cache
def _own_address() -> str:
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return ""


def _takes_turns(one: socket.socket) -> bool:
    return one.gettimeout() != 0 and may_take_turns() and not is_far(one)


def _await(one: socket.socket, ready: Callable[[float], bool], call: str) -> None:
    """Lets others run until it is ready.

    Raises:
        TimeoutError: that has taken longer than the socket's timeout.
    """
    if ready(0) or (not is_programs_own() and ready(_FOR_PACKAGES)):
        return
    if not waited(ready, f"socket.{call}()", one.gettimeout()):
        raise TimeoutError("timed out")


def _reading(real: Callable[..., Any], name: str, position: int) -> Callable[..., Any]:
    @functools.wraps(real)
    def read(self: socket.socket, *args: Any, **kwargs: Any) -> Any:
        flags = args[position] if position and len(args) > position else kwargs.get("flags", 0)
        if flags & socket.MSG_DONTWAIT or not _takes_turns(self):
            return real(self, *args, **kwargs)
        if flags & socket.MSG_WAITALL and name == "recv":
            return _received(self, args[0], flags & ~socket.MSG_WAITALL)
        _await(self, is_ready(self.fileno(), IN), name)
        return real(self, *args, **kwargs)

    return read


def _received(one: socket.socket, count: int, flags: int) -> bytes:
    """Returns so many bytes, or those before the end."""
    got = b""
    while len(got) < count and (part := one.recv(count - len(got), flags)):
        got += part
    return got


def _sending(real: Callable[..., int]) -> Callable[..., int]:
    @functools.wraps(real)
    def send(self: socket.socket, data: Any, flags: int = 0, /) -> int:
        if flags & socket.MSG_DONTWAIT or not _takes_turns(self):
            return real(self, data, flags)
        while True:
            _await(self, is_ready(self.fileno(), OUT), "send")
            with contextlib.suppress(BlockingIOError):
                return real(self, data, flags | socket.MSG_DONTWAIT)

    return send


def _sending_all(real: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(real)
    def sendall(self: socket.socket, data: Any, flags: int = 0, /) -> None:
        if not _takes_turns(self):
            real(self, data, flags)
            return
        with memoryview(data) as view, view.cast("B") as left:
            sent = 0
            while sent < len(left):
                sent += self.send(left[sent:], flags)

    return sendall


def _connecting(connect: Callable[..., None], real: Callable[..., Any]) -> Callable[..., Any]:
    """A server whose queue is full lets nobody in until it has run."""
    answers = real.__name__ == "connect_ex"

    @functools.wraps(real)
    def call(self: socket.socket, address: Any, /) -> Any:
        near = not isinstance(address, tuple) or _is_near(str(address[0]))
        if not (near and self.gettimeout() != 0 and may_take_turns()):
            return real(self, address)
        try:
            _connect(self, connect, address)
        except OSError as error:
            if answers and error.errno is not None:
                return error.errno
            raise
        return 0 if answers else None

    return call


def _connect(one: socket.socket, connect: Callable[..., None], address: Any) -> None:
    """Connects without blocking, and lets others run meanwhile."""
    limit = one.gettimeout()
    one.settimeout(0)
    try:
        if not waited(_attempt(one, connect, address), "socket.connect()", limit):
            raise TimeoutError("timed out")
    finally:
        one.settimeout(limit)


def _attempt(one: socket.socket, connect: Callable[..., None], address: Any) -> Callable[[float], bool]:
    """Returns what tells whether a socket is connected; it begins that. A full queue of a Unix socket is asked anew."""
    poll: list[Callable[[float], bool]] = []

    def is_connected(seconds: float) -> bool:
        if not poll:
            try:
                connect(one, address)
            except BlockingIOError as error:
                if error.errno == errno.EINPROGRESS:
                    poll.append(is_ready(one.fileno(), OUT))
                return False
            return True
        if not poll[0](seconds):
            return False
        failed = one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if failed:
            raise OSError(failed, os.strerror(failed))
        return True

    return is_connected
