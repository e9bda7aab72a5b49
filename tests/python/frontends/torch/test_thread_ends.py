"""What a rank's thread keeps goes while it is the rank's turn: C++ takes locks as it goes."""

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
