"""Kernels in the events of PyTorch's profiles, in simulated time, as profiles of a GPU have them.

A kernel is an event of its device. It also counts for the operation that has launched it, where the profile has as many
calls of that operation as the core's recording.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from torch.autograd import DeviceType
from torch.autograd.profiler_util import EventList, FunctionEvent

_ON_DEVICE = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
"""Categories of what a device does."""

_DEVICE = "cuda"


def add(events: EventList, recorded: Iterable[Mapping[str, Any]]) -> None:
    """Adds what a device has done to the events of a rank's profile.

    Args:
        recorded: the core's events of the rank; times are microseconds.
    """
    recorded = [event for event in recorded if event["ph"] == "X"]
    ours = [event for event in recorded if event["cat"] in _ON_DEVICE]
    for event in events:
        event.use_device, event.is_legacy = _DEVICE, False  # legacy ones have one kernel each, which are all their time
    _link(events, [event for event in recorded if event["cat"] == "cpu_op"], ours)
    events.extend(map(_event, ours))
    events._use_device = _DEVICE


def _link(events: EventList, calls: list[Mapping[str, Any]], kernels: list[Mapping[str, Any]]) -> None:
    """Appends kernels to the operations that have launched them."""
    launched: dict[Any, list[Mapping[str, Any]]] = {}
    for kernel in kernels:
        launched.setdefault(kernel["args"].get("External id"), []).append(kernel)
    known: dict[str, list[FunctionEvent]] = {}
    for event in sorted(events, key=lambda event: event.time_range.start):
        known.setdefault(event.name, []).append(event)
    called: dict[str, list[Mapping[str, Any]]] = {}
    for call in calls:
        called.setdefault(call["name"], []).append(call)
    for name, its in called.items():
        if len(known.get(name, ())) != len(its):
            continue
        for event, call in zip(known[name], its, strict=True):
            for kernel in launched.get(call["args"].get("External id"), ()):
                event.append_kernel(kernel["name"], kernel["args"]["device"], kernel["dur"])


def _event(kernel: Mapping[str, Any]) -> FunctionEvent:
    arguments = kernel["args"]
    return FunctionEvent(
        id=arguments.get("correlation", 0), name=kernel["name"], thread=arguments["stream"], start_us=kernel["ts"],
        end_us=kernel["ts"] + kernel["dur"], use_device=_DEVICE, device_type=DeviceType.CUDA,
        device_index=arguments["device"], device_resource_id=arguments["stream"], input_shapes=[], stack=[],
    )  # fmt: skip
