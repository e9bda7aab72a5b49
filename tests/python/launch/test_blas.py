"""How many threads NumPy multiplies with in a run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import ctypes, re
from pathlib import Path
import numpy as np

np.ones((8, 8)) @ np.ones((8, 8))
paths = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "openblas" in line}
for path in paths:
    library = ctypes.CDLL(path)
    for name in ("scipy_openblas_get_num_threads64_", "openblas_get_num_threads"):
        if hasattr(library, name):
            print("threads", getattr(library, name)())
"""


@pytest.mark.parametrize(("given", "threads"), [(None, 1), ("2", 2)])
def test_one_thread_unless_said_otherwise(tmp_path: Path, given: str | None, threads: int) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    env = {key: value for key, value in os.environ.items() if key not in names}
    env |= {} if given is None else {"OMP_NUM_THREADS": given}
    command = [sys.executable, "-m", "torchemu", "run", "--nproc-per-node", "1", "program.py"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=True)
    if "threads" not in done.stdout:
        pytest.skip("NumPy is built with another library")
    assert done.stdout.split() == ["threads", str(min(threads, os.cpu_count() or 1))]
