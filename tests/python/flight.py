"""Helpers of the tests of the flight recorder."""

from __future__ import annotations

import json
import pickle
from typing import Any

from torchemu._C import _distributed_c10d as c10d

SCHEMA: dict[str, type | tuple[type, ...]] = {
    "frames": list,
    "record_id": int,
    "pg_id": int,
    "process_group": tuple,
    "thread_name": str,
    "thread_id": str,
    "collective_seq_id": int,
    "p2p_seq_id": int,
    "op_id": int,
    "profiling_name": str,
    "time_created_ns": int,
    "input_sizes": list,
    "input_dtypes": list,
    "output_sizes": list,
    "output_dtypes": list,
    "state": str,
    "time_discovered_started_ns": (int, type(None)),
    "time_discovered_completed_ns": (int, type(None)),
    "retired": bool,
    "timeout_ms": int,
    "is_p2p": bool,
}
"""The fields of an entry in version 2.10, as PyTorch 2.11 writes them, and their types."""

MILLISECOND = 10**9
SIZE, FILE = "TORCH_FR_BUFFER_SIZE", "TORCH_FR_DUMP_TEMP_FILE"


def dumped(**options: bool) -> dict[str, Any]:
    """Returns what the running rank has recorded."""
    whole: dict[str, Any] = pickle.loads(c10d._dump_fr_trace(**options))
    return whole


def entries() -> list[dict[str, Any]]:
    """The operations of it."""
    return list(dumped()["entries"])


def check_schema(whole: dict[str, Any]) -> None:
    """Fails unless a dump is what PyTorch would write."""
    assert set(whole) == {"version", "pg_config", "comm_lib_version", "pg_status", "entries"}
    assert whole["version"] == "2.10"
    for config in whole["pg_config"].values():
        assert set(config) == {"name", "desc", "ranks"}
        assert config["ranks"] == str(json.loads(config["ranks"]))
    for entry in whole["entries"]:
        assert set(entry) - {"duration_ms"} == set(SCHEMA)
        for name, kind in SCHEMA.items():
            assert isinstance(entry[name], kind), name
        for frame in entry["frames"]:
            assert {k: type(v) for k, v in frame.items()} == {"name": str, "filename": str, "line": int}
        check_times(entry)


def check_times(entry: dict[str, Any]) -> None:
    """Fails unless state and times agree."""
    created, began = entry["time_created_ns"], entry["time_discovered_started_ns"]
    ended = entry["time_discovered_completed_ns"]
    assert entry["state"] == ("completed" if ended is not None else "started" if began is not None else "scheduled")
    assert entry["retired"] == (ended is not None)
    assert entry.get("duration_ms") == (None if ended is None else (ended - (began or 0)) / 1e6)
    assert began is None or created <= began
    assert ended is None or (began is not None and began <= ended)
