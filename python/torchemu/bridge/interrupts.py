"""Ctrl-C while the main thread is inside one long call of the Go core.

Python runs signal handlers between its own instructions only, so that a call which takes ten seconds delays Ctrl-C by
as much. A watching thread learns of the signal at once; when the main thread does not come back in time to handle it,
the thread ends the process.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

EXIT_STATUS = 130
"""The exit status by which shells know Ctrl-C."""

UNREAD_STATUS = 141
"""The exit status by which shells know that nobody reads a command's output any more."""

_handler_of = signal.getsignal  # that of the process: programs may get to see another one
_SOON = 0.05  # seconds in which a main thread that runs Python has noticed
_GRACE = 2.0  # seconds in which an interruptible program has long noticed, on a busy machine, too


class CtrlC(KeyboardInterrupt):
    """The user's, as opposed to one that a program raises itself.

    Args:
        notice: called when it is raised.

    Attributes:
        rank: the one that was running.
        place: where in the program; "" for nowhere in it.
    """

    rank: int | None = None
    place: str = ""

    def __init__(self, notice: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.notice = notice


class Unread(CtrlC):
    """The user's as well: what reads the output has ended, as head does when it has its lines."""


class Output:
    """Standard output: where nobody reads it any more the command ends, as others do by SIGPIPE.

    Args:
        stream: the one behind; None, as Python has it where the process was started without one, takes all.

    Attributes:
        failure: why the stream last did not take a text, as a full disk does not.
    """

    failure: Exception | None = None

    def __init__(self, stream: Any) -> None:
        self._stream = io.StringIO() if stream is None else stream

    def __getattr__(self, name: str) -> Any:
        """All else is the stream's behind."""
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Writes to the stream.

        Raises:
            Unread: nobody reads it.
        """
        with self._noting_failures():
            written: int = self._stream.write(text)
            return written

    def writelines(self, lines: Any) -> None:
        """Writes one after the other, as write does."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Flushes the stream; errors are those of write."""
        with self._noting_failures():
            self._stream.flush()

    @contextlib.contextmanager
    def _noting_failures(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            raise Unread from None
        except (OSError, UnicodeEncodeError) as error:
            self.failure = error
            raise


def stop_writing(stream: Any) -> None:
    """Lets a stream that nobody reads take what it still holds, and all that comes: or else Python's end would fail."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def is_users(interrupt: KeyboardInterrupt) -> bool:
    """Reports whether it ends the run, and not only the rank that it comes out of. Where somebody else handles Ctrl-C
    it does: it cannot be told who raised it."""
    handler = _handler_of(signal.SIGINT)
    return isinstance(interrupt, CtrlC) or getattr(handler, "__module__", None) != __name__


def told(interrupt: KeyboardInterrupt) -> str:
    """Returns the line of a command that has been interrupted."""
    if not isinstance(interrupt, CtrlC) or not interrupt.place:
        return "interrupted"
    who = "at" if interrupt.rank is None else f"while rank {interrupt.rank} was at"
    return f"interrupted {who} {interrupt.place}"


@contextlib.contextmanager
def ends_the_process() -> Iterator[None]:
    """Within the with block Ctrl-C raises KeyboardInterrupt as ever, or else ends the process within three seconds."""
    if not _python_handles_it():
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    noticed = threading.Event()

    def interrupt(number: int, frame: object) -> None:
        error = CtrlC(noticed.set)
        if unbroken.depth:
            unbroken.came = error
        else:
            _delivered(error)

    signal.signal(signal.SIGINT, interrupt)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    watcher = threading.Thread(target=_watch, args=(reader, noticed), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.close(writer)
        watcher.join()
        os.close(reader)


_takers: list[Callable[[CtrlC], bool]] = []
_insisting: list[Callable[[], None]] = []


def given_to(taker: Callable[[CtrlC], bool], insist: Callable[[], None]) -> None:
    """Registers who may take an interrupt in order to raise it elsewhere, and then returns true.

    Args:
        taker: is asked whether it takes one.
        insist: is called, by another thread, where nobody has noticed it for a while.
    """
    _takers.append(taker)
    _insisting.append(insist)


class _Unbroken:
    """A few instructions that Ctrl-C must not leave half done: it waits for their end. They may be nested.

    Attributes:
        depth: how many of them are under way.
        came: what came meanwhile.
    """

    depth = 0
    came: CtrlC | None = None

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        self.depth -= 1
        if self.depth == 0 and self.came is not None:
            came, self.came = self.came, None
            _delivered(came)


unbroken = _Unbroken()
"""``with unbroken:`` keeps Ctrl-C out of what is to be done whole or not at all."""


def _delivered(interrupt: CtrlC) -> None:
    """Raises it, or leaves it to another task that it is for."""
    if not _is_for_another(interrupt):
        interrupt.notice()
        raise interrupt


def _is_for_another(interrupt: CtrlC) -> bool:
    """Reports whether it will be raised in another task, when that goes on."""
    return any(taker(interrupt) for taker in _takers)


def _python_handles_it() -> bool:
    return (
        threading.current_thread() is threading.main_thread()
        and _handler_of(signal.SIGINT) is signal.default_int_handler
    )


def _watch(reader: int, noticed: threading.Event) -> None:
    """Gets a byte for each signal, and none once the other end is closed."""
    while number := os.read(reader, 1):
        if number[0] != signal.SIGINT:
            _wake_main_thread()
            continue
        if not noticed.wait(_SOON):
            _wake_main_thread()
        if not noticed.wait(_SOON):
            for insist in _insisting:
                insist()
        if not noticed.wait(_GRACE):
            print("interrupted", file=sys.stderr, flush=True)
            sys.stdout.flush()
            os._exit(EXIT_STATUS)
        noticed.clear()


def _wake_main_thread() -> None:
    """Interrupts what the main thread waits for in the system, such as a sleep: the signal may have come to another
    thread. Nobody handles SIGURG but the Go runtime, which sends it to threads itself."""
    main = threading.main_thread().ident
    if main is not None:
        signal.pthread_kill(main, signal.SIGURG)
