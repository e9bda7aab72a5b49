"""A notice on standard error where a rank has its turn and the process does nothing for long.

The rank waits for the system, or for a lock of the system that another rank has, and no rank runs until that comes. The
notice says where it waits. It has no part in the run, and simulated time is not concerned.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
import types
from collections.abc import Iterator

from torchemu import runtime
from torchemu.launch import progress
from torchemu.launch.modules import is_program_file
from torchemu.runtime import fibers, frames
from torchemu.runtime.tasks import Tasks

_AFTER = 30.0  # seconds
_LOOKS = 6  # in that time
_IDLE = 0.02  # of a processor

_now, _spent = time.monotonic, time.process_time  # the process's: programs may get to see other ones

_SLEEPS = tuple(kind.sleep.__code__ for kind in (fibers.Greenlets, fibers.Threads))

_Place = tuple[types.CodeType, int]  # code, and an instruction of it


@contextlib.contextmanager
def noticed(tasks: Tasks) -> Iterator[None]:
    """Gives notice, once for each place, as long as several ranks run."""
    ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(tasks, ended), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def _watch(tasks: Tasks, ended: threading.Event) -> None:
    told: set[_Place] = set()
    last: _Place | None = None
    since, spent = _now(), _spent()
    while not ended.wait(_AFTER / _LOOKS):
        place = _place(tasks)
        now, used = _now(), _spent()
        if place is None or place != last or used - spent > _IDLE * (now - since):
            last, since, spent = place, now, used
        elif now - since >= _AFTER and place not in told:
            told.add(place)
            _tell(tasks, now - since)


def _place(tasks: Tasks) -> _Place | None:
    """Returns where the rank whose turn it is waits. No frame is kept until the next look: it would keep what its
    variables and those of its callers name, and a rank's memory in use would depend on when one looks."""
    found = _frames(tasks) if tasks.live > 1 else []
    return (found[0].f_code, found[0].f_lasti) if found else None


def _tell(tasks: Tasks, seconds: float) -> None:
    found = _frames(tasks)
    if found:
        progress.make_room()
        print(_notice(found, seconds), file=sys.stderr, flush=True)


def _frames(tasks: Tasks) -> list[types.FrameType]:
    """Returns the frames of the rank whose turn it is that are of the program or of a package, the innermost first.

    There are none where the rank sleeps, as its program says.
    """
    frame = sys._current_frames().get(tasks.world.fibers.thread())
    found = []
    while frame is not None:
        if frame.f_code in _SLEEPS:
            return []
        file = frame.f_code.co_filename
        if not (frames.is_ours(file) or frames.is_pythons(file)):
            found.append(frame)
        frame = frame.f_back
    return found if any(is_program_file(each.f_code.co_filename) for each in found) else []


def _notice(found: list[types.FrameType], seconds: float) -> str:
    context = runtime.running()
    who = "the program" if context is None or context.tasks is None else f"rank {context.rank}"
    own = next(frame for frame in found if is_program_file(frame.f_code.co_filename))
    said = f"torchemu: {who} has waited for {seconds:.0f} s at {runtime.place_of(own)}, and no rank runs meanwhile"
    if found[0] is own:
        return said
    package = str(found[0].f_globals.get("__name__", "")).partition(".")[0]
    return (
        f"{said}; it waits in {package}, at {runtime.place_of(found[0])}: if ranks share a lock there, --isolate "
        f"{package} gives each one of its own"
    )
