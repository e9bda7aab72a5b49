"""Launches of several operations as one: by a library, where the topology says what a library takes, or as a graph."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from torchemu import runtime
from torchemu.bridge.binding import go


def launch_together(begins: bool) -> None:
    """Makes what the running rank issues from now on one launch, or ends that."""
    context = runtime.current()
    go.Batch(context.world.handle, context.rank, begins)


@contextlib.contextmanager
def one_launch() -> Iterator[None]:
    """Makes what the running rank issues in a with block one launch."""
    launch_together(True)
    try:
        yield
    finally:
        launch_together(False)


@contextlib.contextmanager
def graph_launch() -> Iterator[None]:
    """Makes what the running rank issues in a with block a graph, whose launch costs the host as much as that of one
    operation."""
    context = runtime.current()
    context.issue()
    go.Graph(context.world.handle, context.rank, True)
    try:
        yield
        context.issue()
    finally:
        go.Graph(context.world.handle, context.rank, False)
