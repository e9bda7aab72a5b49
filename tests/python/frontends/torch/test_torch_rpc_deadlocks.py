"""Remote procedure calls that cannot end: reports of deadlocks, and what is refused."""

import subprocess
import sys

import pytest

CIRCLE = """
import os
import torch.distributed.rpc as rpc

def where():
    return 1

def call_again(to):
    return rpc.rpc_sync(to, where)

def call_back(to):
    return rpc.rpc_sync(to, call_again, (rpc.get_worker_info().name,))

rank = int(os.environ["RANK"])
options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=1)
rpc.init_rpc(f"w{rank}", rank=rank, world_size=2, rpc_backend_options=options)
if rank == 0:
    rpc.rpc_sync("w1", call_back, ("w0",))
rpc.shutdown()
"""

NOBODY = """
import os
import torch
import torch.distributed.rpc as rpc

rpc.init_rpc("w" + os.environ["RANK"], rank=int(os.environ["RANK"]), world_size=2)
if os.environ["RANK"] == "0":
    torch.futures.Future().wait()
rpc.shutdown()
"""

ENDED = """
import os
import torch.distributed.rpc as rpc

rpc.init_rpc("w" + os.environ["RANK"], rank=int(os.environ["RANK"]), world_size=2)
if os.environ["RANK"] == "0":
    rpc.shutdown()
"""

REFERENCE_TO_ENDED = """
import os
import torch.distributed.rpc as rpc

rpc.init_rpc("w" + os.environ["RANK"], rank=int(os.environ["RANK"]), world_size=2)
if os.environ["RANK"] == "0":
    rpc.remote("w1", max, (1, 2)).to_here()
"""


def report(folder, program, *options):
    """Runs a program on two ranks, which fail, and returns what is said of that."""
    script = folder / "program.py"
    script.write_text(program)
    command = [
        sys.executable,
        "-m",
        "torchemu",
        "run",
        "--torch",
        "real",
        "--nproc-per-node",
        "2",
        *options,
        str(script),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    return done.stderr.replace(str(script), "program.py")


def test_a_circle_of_calls_is_a_deadlock(tmp_path):
    told = report(tmp_path, CIRCLE)
    assert "rank 0 waits for an RPC to w1 at program.py:18 in <module>" in told
    assert "thread 'an RPC from w0' of rank 1 waits for an RPC to w0 at program.py:12 in call_back" in told
    assert "thread 'an RPC from w1' of rank 0 waits for an RPC to w1 at program.py:9 in call_again" in told
    assert "of rank 1 waits for one of 1 threads for RPCs (num_worker_threads)" in told
    assert "likely cause: ranks 0 and 1 wait for each other in a circle" in told


@pytest.mark.slow
def test_a_future_that_nobody_sets_is_a_deadlock(tmp_path):
    assert "rank 0 waits for a Future at program.py:8 in <module>" in report(tmp_path, NOBODY)


@pytest.mark.slow
def test_a_worker_that_has_ended_is_the_cause(tmp_path):
    assert "likely cause: rank 1 ended without what others wait for" in report(tmp_path, ENDED)


@pytest.mark.slow
def test_a_reference_to_a_worker_that_has_ended_says_so(tmp_path):
    assert "name=w1) has shut down RPC, or ended: no message reaches it" in report(tmp_path, REFERENCE_TO_ENDED)


@pytest.mark.slow
def test_mirrored_ranks_are_refused_in_a_line(tmp_path):
    assert "init_rpc: with --mirror ranks do not call each other" in report(
        tmp_path, ENDED, "--mirror", "--topology", "nodes2x8", "--nnodes", "2", "--nproc-per-node", "8"
    )
