"""The main thread handles signals as another one of those that take turns runs."""

from __future__ import annotations

import contextlib
import signal
import threading
import time

from torchemu.runtime import fibers


def test_a_signal_that_came_to_another_thread_is_handled_as_that_runs() -> None:
    """So it is with one that comes as the main thread is about to block: nothing of the system wakes that."""
    kind, heard, found = fibers.Threads(), [], []

    def body() -> None:
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
        until = time.monotonic() + 30
        while not heard and time.monotonic() < until:
            time.sleep(0.001)
        found.append(list(heard))

    with contextlib.ExitStack() as stack:
        stack.callback(signal.signal, signal.SIGUSR1, signal.signal(signal.SIGUSR1, lambda *_: heard.append(1)))
        kind.new(body, kind.current()).switch()
    assert found == [[1]]
