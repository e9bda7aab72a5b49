"""The programs of tests/scripts: how each is started, and which front ends have what it uses."""

from __future__ import annotations

import shlex
from pathlib import Path

from conftest import ROOT

SCRIPTS = ROOT / "tests" / "scripts"
RECORDED = sorted(SCRIPTS.glob("*.out"))

ONLY_REAL = {
    "accumulation",
    "buckets",
    "ddp",
    "ddp_random",
    "distributed_checkpoint",
    "distributed_data_parallel",
    "fsdp",
    "functional",
    "loader",
    "mesh",
    "mesh_2d",
    "mixed_precision",
    "modules",
    "networks",
    "pipelining",
    "sharded",
    "sharded_mlp",
    "sort",
    "spectrum",
    "tensor_parallel",
    "uneven_batches",
    "zero_redundancy",
}
"""Scripts that run on the installed PyTorch only; the others run on the NumPy front end, too."""

ON_NUMPY = [recorded for recorded in RECORDED if recorded.stem not in ONLY_REAL]


def started(recorded: Path) -> list[str]:
    """Returns the arguments with which the program is started: those of the command in its first line."""
    source = recorded.with_suffix(".py")
    if not source.exists():
        source = recorded.with_suffix("") / "__main__.py"
    mark, command, *arguments = shlex.split(source.read_text().splitlines()[0])
    assert mark == "#" and command in ("torchrun", "python"), f"{source} does not begin with how it is started"
    return arguments if command == "torchrun" else ["--nproc-per-node", "1", *arguments]
