"""The trace of a whole run: what ``--trace`` writes."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from torchemu import runtime
from torchemu.profile.recording import LEVELS, Recording, known

RUN_FILE = "run.torchemu"
"""The other file in a folder of traces: the fabric, and the log of collectives. No viewer takes it for a trace."""

_SINGLE = {".json": "chrome", ".pftrace": "perfetto", ".perfetto-trace": "perfetto"}
_CHAKRA = ".et"
_USUAL_LEVEL = {"chrome": "step", "perfetto": "link", "kineto": "collective", "chakra": "collective"}
_ADVICE = "Trace a shorter time (--trace-range profiler) or less (--trace-level collective)."
_OF_RANK = re.compile(r"rank(\d+)\.json\.gz")


def form(path: str) -> str:
    """Returns the form that a path stands for: one file in form chrome or perfetto, a folder of files in form kineto,
    or a file for each rank in form chakra: NAME.et stands for NAME.0.et, NAME.1.et, …, as simulators look for them."""
    if path.endswith(_CHAKRA):
        return "chakra"
    return _SINGLE.get(Path(path.removesuffix(".gz")).suffix, "kineto")


def reader(path: str) -> str:
    """Returns the name of a viewer for a trace that is written to a path."""
    return "ASTRA-sim" if form(path) == "chakra" else "Perfetto"


@contextlib.contextmanager
def traced(world: runtime.World, path: str, level: str = "", profiled_only: bool = False) -> Iterator[None]:
    """Writes a trace of what is run in a with block, also when that fails; without a path, nothing.

    Args:
        world: where it runs.
        path: see form().
        level: one of LEVELS; empty for what is usual in that form.
        profiled_only: only what ranks do while they profile, see torch.profiler.

    Raises:
        OSError: nothing can be written there: before anything runs.
    """
    if not path:
        yield
        return
    prepare(path)
    recording = Recording(world, level or _USUAL_LEVEL[form(path)])
    first = len(world.collectives())
    if profiled_only:
        known(world).requested = recording
    else:
        recording.open()
    try:
        yield
    finally:
        recording.end()
        _write(world, recording, path, first)
        left_out = recording.fabric()["left_out"]
        if left_out:
            print(
                f"torchemu: {path} ends early: {left_out} further steps or messages did not fit. {_ADVICE}",
                file=sys.stderr,
            )


def prepare(path: str) -> None:
    """Makes sure that a trace can be written there.

    Raises:
        OSError: it cannot.
    """
    try:
        _prepare(path)
    except OSError as error:
        raise OSError(f"the trace cannot be written to {path}: {error.strerror}") from error


def _prepare(path: str) -> None:
    if form(path) == "chakra":
        _of_rank(path, 0).touch()
        return
    if form(path) != "kineto":
        Path(path).touch()
        return
    folder = Path(path)
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():  # files of another run would be taken for ranks of this one
        if old.name == RUN_FILE or _OF_RANK.fullmatch(old.name):
            old.unlink()
    (folder / RUN_FILE).touch()


def _of_rank(path: str, rank: int) -> Path:
    return Path(f"{path.removesuffix(_CHAKRA)}.{rank}{_CHAKRA}")


def _write(world: runtime.World, recording: Recording, path: str, first: int) -> None:
    if form(path) in _SINGLE.values():
        recording.write(path, form(path))
        return
    about = recording.fabric()
    present = about["ranks"]
    ranks = max(present, default=0) + 1
    if form(path) == "chakra":
        for rank in range(ranks):
            recording.write(_of_rank(path, rank), "chakra", rank=rank)
        return
    for rank in range(ranks):
        recording.write(os.path.join(path, f"rank{rank}.json.gz"), "kineto", rank=rank, ranks=ranks)
    about["collectives"] = world.collectives(first)
    about["failure"] = world.failure
    about["waits"] = list(world.waits) if world.failure else []
    Path(path, RUN_FILE).write_text(json.dumps(about), encoding="utf-8")


__all__ = ["LEVELS", "RUN_FILE", "form", "prepare", "reader", "traced"]
