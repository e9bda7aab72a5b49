"""The command line of a module of scene tests that is run as a program."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from torchemu.frontends.simpler.worker import PLATFORMS
from torchemu.frontends.simpler_setup.parallel_scheduler import device_range_to_list

MANUAL = ("exclude", "include", "only")
"""Values of --manual."""
MOST = 16
"""The number of chips that there are without --device."""


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options; devices are their numbers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("-p", "--platform", required=True, choices=PLATFORMS)
    parser.add_argument("-d", "--device", default=f"0-{MOST - 1}", help="numbers of devices: 0, 0-3, 0,2,5")
    parser.add_argument("--case", action="append", help="case, Class::case or Class::; repeatable")
    parser.add_argument("--manual", choices=MANUAL, default="exclude", help="cases that say manual")
    parser.add_argument("--rounds", type=int, default=1, help="how often each case runs")
    parser.add_argument("--skip-golden", action="store_true", help="do not look at results")
    options = parser.parse_args(arguments)
    options.devices = device_range_to_list(options.device)
    return options
