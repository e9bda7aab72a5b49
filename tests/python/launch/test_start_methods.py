"""Start methods that ranks of one run set by Python's multiprocessing: each rank has its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import multiprocessing as mp
import os
import sys

import torch.multiprocessing

def increased(queue, value):
    queue.put(value + 1)

if __name__ == "__main__":
    rank, names = int(os.environ["RANK"]), {"python": mp, "torch": torch.multiprocessing}
    by = names[sys.argv[1]]
    before = by.get_start_method(allow_none=True)
    by.set_start_method("fork" if rank else sys.argv[2])
    try:
        mp.set_start_method("spawn")
    except RuntimeError as error:
        said = str(error)
    queue = mp.get_context().SimpleQueue()
    process = mp.Process(target=increased, args=(queue, rank))
    process.start()
    got = queue.get()
    process.join()
    methods = [each.get_start_method() for each in names.values()]
    sys.stdout.write(f"{rank} {before} {said} {methods} {got} {process.exitcode}\\n")
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
@pytest.mark.parametrize("name", ["python", "torch"])
def test_each_rank_sets_its_start_method(tmp_path: Path, name: str, method: str) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    command = [sys.executable, "-m", "torchemu", "run", "--nproc-per-node", "2", str(script), name, method]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        f"{rank} None context has already been set {[chosen] * 2} {rank + 1} 0"
        for rank, chosen in enumerate((method, "fork"))
    ]
