"""torch.profiler, in simulated time: what a rank's host and its device did, for tables and for viewers of traces.

    with torch.profiler.profile() as prof:
        step()
    print(prof.key_averages().table(sort_by="device_time_total"))
    prof.export_chrome_trace("trace.json")

A profile is of the rank that makes it. ``torchemu run --trace`` records all ranks; with ``--trace-range profiler``
only while they profile.
"""

from __future__ import annotations

from torchemu.frontends.numpy.profiler._profile import (
    ProfilerActivity,
    profile,
    supported_activities,
    tensorboard_trace_handler,
)
from torchemu.frontends.numpy.profiler._profile import _ExperimentalConfig as _ExperimentalConfig
from torchemu.frontends.numpy.profiler._profile import _KinetoProfile as _KinetoProfile
from torchemu.frontends.numpy.profiler._schedule import ProfilerAction, schedule
from torchemu.profile.annotation import record_function

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
