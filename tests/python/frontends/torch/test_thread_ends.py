"""A rank's thread lets go of what it keeps while it is the rank's turn: C++ takes locks as it goes."""

import ctypes
import subprocess
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor, Replicate, Shard, init_device_mesh

import torchemu
from torchemu.runtime import fibers


def test_a_thread_has_dropped_what_is_its_own_when_the_next_goes_on():
    events = []

    class Slow:
        """It gives up Python's lock as it goes."""

        def __del__(self):
            time.sleep(0.1)
            events.append("dropped")

    own = threading.local()

    def body():
        own.value = Slow()

    threads = fibers.Threads()
    threads.new(body, threads.current()).switch()
    events.append("next")
    assert events == ["dropped", "next"]


def test_a_thread_has_ended_for_c_when_the_next_goes_on():
    """C++ calls the destructors of what it keeps for a thread after Python has forgotten the thread."""
    events, library, key = [], ctypes.CDLL(None), ctypes.c_uint()
    threads = fibers.Threads()
    threads.new(lambda: None, threads.current()).switch()  # what torchemu keeps itself is there before

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def destroy(value):
        time.sleep(0.1)
        events.append("destroyed")

    assert library.pthread_key_create(ctypes.byref(key), destroy) == 0
    threads.new(lambda: library.pthread_setspecific(key, ctypes.c_void_p(1)), threads.current()).switch()
    events.append("next")
    library.pthread_key_delete(key)
    assert events == ["destroyed", "next"]


def test_ranks_that_have_used_dtensors_all_end():
    sums = []

    @torchemu.distributed(world_size=4, torch="real")
    def program():
        dist.init_process_group("cpu:gloo,cuda:nccl")
        mesh = init_device_mesh("cuda", (4,))
        local = torch.full((2, 3), float(dist.get_rank()), device="cuda", requires_grad=True)
        sharded = DTensor.from_local(local, mesh, [Shard(0)])
        (sharded * 2).redistribute(mesh, [Replicate()]).to_local().sum().backward()
        sums.append(float(local.grad.sum()))

    for _ in range(5):
        program()
    assert sums == [2.0 * 6] * 20  # the loss is one, of all ranks


WITH_FEW_THREADS = """
import _thread, sys

start, ranks = _thread.start_new_thread, []

def start_new_thread(function, *args):
    if function.__qualname__ == "ThreadFiber._run":
        ranks.append(function)
        if len(ranks) > 2:
            raise RuntimeError("can't start new thread")
    return start(function, *args)

_thread.start_new_thread = start_new_thread
from torchemu.launch import cli
sys.exit(cli.main(["run", "--torch", "real", "--nproc-per-node", "4", sys.argv[1]]))
"""


def test_a_run_ends_where_the_system_has_no_threads_for_all_ranks(tmp_path):
    (tmp_path / "few.py").write_text(WITH_FEW_THREADS)
    (tmp_path / "p.py").write_text("import torch.distributed as dist\ndist.init_process_group('gloo')\n")
    command = [sys.executable, str(tmp_path / "few.py"), str(tmp_path / "p.py")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 1
    assert "can't start new thread: 2 ranks have one already" in ran.stderr and "Traceback" not in ran.stderr
