"""kernbench.ccl.install: what the run's ccl.yaml says."""

from __future__ import annotations

import copy
from typing import Any

from torchemu import runtime


def load_ccl_config() -> dict[str, Any]:
    """The run's ccl.yaml as a mapping, with the sections "defaults" and "algorithms"."""
    return copy.deepcopy(runtime.current_world().ccl)


def resolve_algorithm_config(config: dict[str, Any]) -> dict[str, Any]:
    """The settings that are in force for the algorithm that config's defaults name: its own, over the defaults."""
    defaults = config.get("defaults") or {}
    algorithm = defaults.get("algorithm", "auto")
    own = (config.get("algorithms") or {}).get(algorithm) or {}
    return {**defaults, **own, "algorithm": algorithm}
