"""The torchemu command."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable

from torchemu import _interrupts


def main(argv: list[str] | None = None) -> int:
    """Runs the command and returns its exit status."""
    return command(lambda: _status(argv))


def _status(argv: list[str] | None) -> int:
    from torchemu import _commands  # takes its time to import, in which Ctrl-C may come

    return _commands.status(argv)


def command(action: Callable[[], int]) -> int:
    """Runs a command that prints, and returns its exit status: 130 after Ctrl-C, and 141, without a word, when nobody
    reads its output any more.

    Args:
        action: does the work and returns the status of its own.
    """
    stdout = sys.stdout
    try:
        with _interrupts.ends_the_process(), contextlib.redirect_stdout(_interrupts.Output(stdout)):
            status = action()
            sys.stdout.flush()
            return status
    except _interrupts.Unread:
        _interrupts.stop_writing(stdout)
        return _interrupts.UNREAD_STATUS
    except KeyboardInterrupt as interrupt:
        print(_interrupts.told(interrupt), file=sys.stderr)
        return _interrupts.EXIT_STATUS
