"""The report of a run whose ranks fail: the first one's traceback, then a summary as torchrun's."""

from __future__ import annotations

import dataclasses
import importlib
import os
import signal
import traceback
import types
from collections.abc import Iterator, Sequence

from torchemu import runtime
from torchemu.errors import DeadlockError, OutOfMemoryError
from torchemu.launch.exits import ImmediateExit
from torchemu.launch.modules import is_program_file
from torchemu.launch.threads import waits
from torchemu.multiprocessing import SpawnException
from torchemu.multiprocessing._errors import signal_name
from torchemu.runtime import frames as _frames
from torchemu.runtime.tasks import Failure, Signalled
from torchemu.runtime.watchdog import Aborted

_INTERNAL = (runtime.PACKAGE, importlib.__file__, "<frozen importlib", "<frozen runpy")
_WIDTH = 60
_SHOWN = 8  # groups of other failures that a summary lists


def ordered(failures: Sequence[Failure]) -> list[Failure]:
    """The earliest in simulated time first, then the lowest rank: the first is the one to look at."""
    return sorted(failures, key=lambda f: (f.time_ps, f.rank))


def exit_code(failure: Failure) -> int:
    """The end of the rank's process, had it been one: its exit status, or minus the number of a signal."""
    error = failure.exception
    if isinstance(error, KeyboardInterrupt):
        return -signal.SIGINT
    if not isinstance(error, SystemExit) or not isinstance(error.code, int):
        return 1
    return error.code if isinstance(error, Signalled) else error.code & 0xFF


def report(failures: Sequence[Failure], program: str, nproc: int, torch: str = "") -> str:
    """The text.

    Args:
        failures: not empty, ordered.
        program: its name.
        nproc: ranks of a node.
        torch: what programs get as torch, where it is not torchemu's own.
    """
    root, *others = failures
    return "\n".join(
        [
            *_marked(root),
            "=" * _WIDTH,
            f"{program} FAILED",
            "-" * _WIDTH,
            "Root cause (first failure in simulated time):",
            f"  rank      : {root.rank} (local_rank: {root.rank % nproc})",
            f"  exitcode  : {exit_code(root)}",
            f"  time      : {moment(root.time_ps)}",
            f"  error     : {_line(root)}",
            *_handled(root),
            *_place(root),
            *_cause(root),
            *([f"  torch     : {torch}"] if torch else []),
            "Other failures:",
            *(grouped(others) or ["  none"]),
            "=" * _WIDTH,
        ]
    )


def _marked(failure: Failure) -> Iterator[str]:
    """The traceback, each line with the rank, as PyTorch's."""
    return (f"[rank{failure.rank}]: {line}" for line in shown(failure.exception).splitlines())


def shown(error: BaseException) -> str:
    """Returns the text that Python would print for an exception that nobody caught. Frames of torchemu are left out
    unless the environment variable TORCHEMU_TRACEBACK is "full": they are not where the mistake is."""
    error = told(error)
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, str) else ""
    trace = traceback.TracebackException.from_exception(error)
    if not _full():
        _cut(trace)
        if isinstance(error, DeadlockError):
            waits.cut(trace)
    if isinstance(error, SpawnException):
        trace.__cause__ = None  # the message has it
    return "".join(trace.format())


def told(error: BaseException) -> BaseException:
    """Returns the exception that reports show: of a rank that its watchdog has ended, the reason, at the place."""
    return error.reason.with_traceback(error.__traceback__) if isinstance(error, Aborted) else error


def _cut(trace: traceback.TracebackException | None) -> None:
    if trace is None:
        return
    _frames.cut(trace, _is_internal)
    for part in (trace.__cause__, trace.__context__, *(trace.exceptions or ())):
        _cut(part)


def of_program(trace: types.TracebackType | None) -> types.TracebackType | None:
    """A traceback without the frames of torchemu, as in shown."""
    frames = []
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    shown = _frames.of_program((t.tb_frame.f_code.co_filename for t in frames), _is_internal)
    own = [t for t, is_shown in zip(frames, shown, strict=True) if is_shown or _full()]
    for t in reversed(own or frames):
        trace = types.TracebackType(trace, t.tb_frame, t.tb_lasti, t.tb_lineno)
    return trace


def place(error: BaseException) -> str:
    """Returns the place in the program that an exception comes from: "train.py:12 in main"; "" for nowhere in it."""
    frames = [f for f in traceback.extract_tb(of_program(error.__traceback__)) if not _is_internal(f.filename)]
    own = [frame for frame in frames if is_program_file(frame.filename)]  # and none of what it calls, such as argparse
    near = own or [frame for frame in frames if not _frames.is_pythons(frame.filename)]  # torchemu calls it, too
    if not near:
        return ""
    last = near[-1]
    return f"{last.filename}:{last.lineno} in {last.name}"


def _is_internal(file: str) -> bool:
    return file.startswith(_INTERNAL)


def _full() -> bool:
    return os.environ.get("TORCHEMU_TRACEBACK") == "full"


def _line(failure: Failure) -> str:
    """The exception in one line."""
    error = told(failure.exception)
    if isinstance(error, KeyboardInterrupt | Signalled):
        number = -exit_code(failure)
        return f"Signal {number} ({signal_name(number)}) received by PID {failure.pid}"
    if isinstance(error, ImmediateExit):
        return f"os._exit({error.code})"
    if isinstance(error, SpawnException):
        first, *others = error.errors
        more = f", and {len(others)} more" if others else ""
        return f"{type(error).__name__}: process {first.rank}: {_line(first)}{more}"
    if isinstance(error, OutOfMemoryError):
        return f"OutOfMemoryError: {'. '.join(str(error).split('. ')[:2])}"  # the rest differs from rank to rank
    text = error.msg if isinstance(error, SyntaxError) else _text(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0].removesuffix(':')}" if text else type(error).__name__


def _handled(failure: Failure) -> Iterator[str]:
    """The exception that was being handled: where a finally block fails as well, it is the one to look at."""
    error = told(failure.exception)
    before = None if error.__suppress_context__ or isinstance(error, SystemExit) else error.__context__
    if before is not None:
        line = _line(dataclasses.replace(failure, exception=before))
        if line != _line(failure):
            yield f"  handling  : {line}"


def _place(failure: Failure) -> Iterator[str]:
    """Of an exit, which has no traceback."""
    error = told(failure.exception)
    where = place(error) if isinstance(error, SystemExit) else ""
    if where:
        yield f"  place     : {where}"


def moment(picoseconds: int) -> str:
    """A simulated time in microseconds; in seconds where there are many."""
    return f"{picoseconds / 1e6:.3f} us" if picoseconds < 1e12 else f"{picoseconds / 1e12:.6f} s"


def in_a_line(failure: Failure) -> str:
    """Names rank, time and error in a line: "rank 1 at 9.170 us: ValueError: no data"."""
    return f"rank {failure.rank} at {moment(failure.time_ps)}: {_line(failure)}"


def _text(error: BaseException) -> str:
    """Returns the exception's words; one of the program may fail at that, and then they are those that tracebacks
    have."""
    try:
        return str(error)
    except Exception:
        return "<exception str() failed>"


def _cause(failure: Failure) -> Iterator[str]:
    """Of a deadlock, where one is likely."""
    if isinstance(failure.exception, DeadlockError) and failure.exception.cause:
        yield f"  cause     : {failure.exception.cause}"


def grouped(failures: Sequence[Failure]) -> list[str]:
    """Lines of a summary: a line for all ranks that failed in the same way."""
    groups: dict[str, list[int]] = {}
    for failure in failures:
        groups.setdefault(_line(failure), []).append(failure.rank)
    lines = [f"  {_ranks(sorted(ranks))}: {text}" for text, ranks in groups.items()]
    if len(lines) > _SHOWN:
        lines[_SHOWN:] = [f"  … and {len(lines) - _SHOWN} more kinds"]
    return lines


def _ranks(ranks: Sequence[int]) -> str:
    """Rank 1; ranks 1, 3-6."""
    spans: list[list[int]] = []
    for rank in ranks:
        if spans and spans[-1][-1] == rank - 1:
            spans[-1][1:] = [rank]
        else:
            spans.append([rank])
    text = ", ".join("-".join(map(str, span)) for span in spans)
    return f"rank{'s' if len(ranks) > 1 else ''} {text}"
