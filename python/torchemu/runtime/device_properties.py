"""Properties of a simulated device, as torch.cuda tells them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torchemu import runtime
from torchemu.runtime import memory_use
from torchemu.runtime.world import World

CAPABILITY = (9, 0)
"""The capability that programs ask for: from 8.0 on a device has bfloat16, from 8.9 on eight-bit floats."""


@dataclass(frozen=True)
class DeviceProperties:
    """A device.

    Attributes:
        name: with the topology's.
        major, minor: the capability.
        total_memory: bytes of all of its cubes' memories.
        multi_processor_count: its PEs.
        shared_memory_per_block: bytes of a PE's scratch memory.
        warp_size: 1: PEs have no threads that run in step.
    """

    name: str
    total_memory: int
    multi_processor_count: int
    shared_memory_per_block: int
    major: int = CAPABILITY[0]
    minor: int = CAPABILITY[1]
    warp_size: int = 1
    is_integrated: bool = False
    is_multi_gpu_board: bool = False


def of_running_rank() -> dict[str, Any]:
    """Returns the fields that depend on the World; all devices of a topology are alike."""
    world = runtime.current().world
    spec = world.spec
    return {
        "name": f"AHBM SIP ({spec['name']})",
        "total_memory": memory_use.current().capacity,
        "multi_processor_count": processors(world),
        "shared_memory_per_block": int(spec["pe"]["scratch_kib"] * 1024),
    }


def processors(world: World) -> int:
    """Returns a device's PEs."""
    mesh, layout = world.spec["sip"]["cube_mesh"], world.spec["cube"]["pe_layout"]
    return int(mesh["w"] * mesh["h"] * layout["pe_per_corner"] * len(layout["corners"]))
