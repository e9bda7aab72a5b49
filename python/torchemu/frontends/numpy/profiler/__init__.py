"""torch.profiler, in simulated time: what a rank's host and its device did, for viewers of traces.

    with torch.profiler.profile() as prof:
        step()
    prof.export_chrome_trace("trace.json")

A profile is of the rank that makes it. ``torchemu run --trace`` records all ranks; with ``--trace-range profiler``
only while they profile.
"""

from __future__ import annotations

from torchemu.frontends.numpy._absent import lacks
from torchemu.frontends.numpy.profiler._profile import (
    ProfilerActivity,
    profile,
    tensorboard_trace_handler,
)
from torchemu.frontends.numpy.profiler._profile import _ExperimentalConfig as _ExperimentalConfig
from torchemu.frontends.numpy.profiler._schedule import ProfilerAction, schedule
from torchemu.profile.annotation import record_function

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "record_function",
    "schedule",
    "tensorboard_trace_handler",
]

__getattr__ = lacks(__name__)
