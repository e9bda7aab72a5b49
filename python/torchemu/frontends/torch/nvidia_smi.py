"""The command nvidia-smi for programs of ranks: simulated devices, where the system has no command of this name.

It runs as a program by itself, with Python's library alone: programs call it to count devices, or to print what they
ran on. What only a driver knows, such as temperatures, is [N/A], as with the real command.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

_MEBIBYTE = 1 << 20

Device = Mapping[str, Any]
"""A device: its index, name, uuid, memory in bytes and capability; `count` is how many there are."""

_KNOWN: dict[str, Callable[[Device], object]] = {
    "compute_cap": lambda device: device["capability"],
    "count": lambda device: device["count"],
    "gpu_name": lambda device: device["name"],
    "gpu_uuid": lambda device: f"GPU-{device['uuid']}",
    "index": lambda device: device["index"],
    "memory.total": lambda device: device["memory"] // _MEBIBYTE,
    "name": lambda device: device["name"],
    "pci.bus_id": lambda device: f"00000000:{device['index']:02X}:00.0",
    "uuid": lambda device: f"GPU-{device['uuid']}",
}
"""Fields of --query-gpu, and what they are of a device."""

_UNITS = {"memory": "MiB", "utilization": "%", "power": "W", "clocks": "MHz"}
"""Units of fields, by the part of their names before the first dot."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("nvidia-smi", description=__doc__)
    parser.add_argument("-L", "--list-gpus", action="store_true", help="a line for each device")
    parser.add_argument("-i", "--id", help="indices of devices, with commas between; all by default")
    parser.add_argument("--query-gpu", metavar="FIELDS", help="fields of each device, with commas between")
    parser.add_argument("topic", nargs="?", choices=["topo"], help="how devices are connected, with -m")
    parser.add_argument("-m", "--matrix", action="store_true", help="of topo: a row and a column for each device")
    parser.add_argument("--format", default="", metavar="csv[,noheader][,nounits]", help="of what --query-gpu prints")
    return parser


def _unit(field: str) -> str:
    return _UNITS.get(field.partition(".")[0], "")


def _told(device: Device, field: str, with_unit: bool) -> str:
    """Returns a field of a device as the command prints it."""
    if field not in _KNOWN:
        return "[N/A]"
    unit = _unit(field) if with_unit else ""
    return f"{_KNOWN[field](device)} {unit}".rstrip()


def _queried(devices: Sequence[Device], fields: str, form: Sequence[str]) -> list[str]:
    """Returns the lines of --query-gpu."""
    names, with_units = [name.strip() for name in fields.split(",")], "nounits" not in form
    heads = [f"{name} [{_unit(name)}]" if with_units and _unit(name) else name for name in names]
    lines = [] if "noheader" in form else [", ".join(heads)]
    return lines + [", ".join(_told(device, name, with_units) for name in names) for device in devices]


def _table(devices: Sequence[Device]) -> list[str]:
    """Returns the lines of the command without options."""
    width = max([len(str(device["name"])) for device in devices], default=4)
    rule = f"+-----+-{'-' * width}-+-------------+"
    rows = [
        f"| {device['index']:3} | {device['name']:{width}} | {device['memory'] // _MEBIBYTE:7} MiB |"
        for device in devices
    ]
    head = f"| GPU | {'Name':{width}} |      Memory |"
    return ["torchemu's nvidia-smi: these devices are simulated, and there is no driver", rule, head, rule, *rows, rule]


_FABRIC = "FAB"
"""A connection of two devices: none that the real command has a word for."""


def _matrix(devices: Sequence[Device]) -> list[str]:
    """Returns the lines of topo -m."""
    names = [f"GPU{device['index']}" for device in devices]
    rows = [[name, *("X" if name == other else _FABRIC for other in names)] for name in names]
    legend = ["", "Legend:", "", "  X    = Self", f"  {_FABRIC}  = Links of the simulated topology"]
    return ["\t".join(row) for row in [["", *names], *rows]] + legend


def lines(devices: Sequence[Device], arguments: Sequence[str]) -> list[str]:
    """Returns what the command prints.

    Args:
        devices: all of a node.
        arguments: of the command.

    Raises:
        SystemExit: the arguments are others than these, or are wrong.
    """
    parser = _parser()
    asked = parser.parse_args(arguments)
    if asked.id is not None:
        known = {str(device["index"]): device for device in devices}
        missing = [index for index in asked.id.split(",") if index not in known]
        if missing:
            parser.exit(6, "No devices were found\n")
        devices = [known[index] for index in asked.id.split(",")]
    if asked.topic or asked.matrix:
        if not (asked.topic and asked.matrix):
            parser.error("topo and -m come together")
        return _matrix(devices)
    if asked.list_gpus:
        return [f"GPU {device['index']}: {device['name']} (UUID: GPU-{device['uuid']})" for device in devices]
    if asked.query_gpu is None:
        return _table(devices)
    form = asked.format.split(",")
    if form[0] != "csv":
        parser.error("--query-gpu wants --format=csv, with noheader and nounits if wanted")
    return _queried(devices, asked.query_gpu, form)


def main(file: str, *arguments: str) -> None:
    """Prints it, of the devices that a JSON file lists."""
    print("\n".join(lines(json.loads(Path(file).read_text(encoding="utf-8")), arguments)))


if __name__ == "__main__":
    main(*sys.argv[1:])
