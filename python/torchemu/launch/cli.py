"""The torchemu command."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable

from torchemu.bridge import interrupts
from torchemu.launch import hash_seed


def main(argv: list[str] | None = None) -> int:
    """Runs the command and returns its exit status."""
    if argv is None:
        hash_seed.fix(sys.argv[1:])
    return command(lambda: _status(argv))


def _status(argv: list[str] | None) -> int:
    from torchemu.launch import commands, crashes  # take their time to import, in which Ctrl-C may come

    if argv is None:
        crashes.report()
    return commands.status(argv)


def command(action: Callable[[], int]) -> int:
    """Runs a command that prints, and returns its exit status: 130 after Ctrl-C, 141, without a word, when nobody reads
    its output any more, and 1 when that cannot be written.

    Args:
        action: does the work and returns the status of its own.
    """
    stdout = sys.stdout
    output = interrupts.Output(stdout)
    try:
        with interrupts.ends_the_process(), contextlib.redirect_stdout(output):
            status = action()
            sys.stdout.flush()
            return status
    except interrupts.Unread:
        interrupts.stop_writing(stdout)
        return interrupts.UNREAD_STATUS
    except KeyboardInterrupt as interrupt:
        print(interrupts.told(interrupt), file=sys.stderr)
        return interrupts.EXIT_STATUS
    except (OSError, UnicodeEncodeError) as error:
        if error is not output.failure:
            raise
        interrupts.stop_writing(stdout)
        print(f"torchemu: standard output: {_why(error)}", file=sys.stderr)
        return 1


def _why(error: OSError | UnicodeEncodeError) -> str:
    """Returns why a text could not be printed."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    unknown = error.object[error.start : error.end]
    return f"its encoding, {error.encoding}, has no {unknown!a}; PYTHONUTF8=1 makes it UTF-8"
