"""A run with --verbose says in one line what NCCL would refuse on a cluster; its results are as ever."""

import pytest
from launch import Outcome, launch, written

BEGIN = """
import os
import torch, torch.distributed as dist
from torch import nn
dist.init_process_group({backend!r})
rank = dist.get_rank()
"""
HOST = (
    "all_reduce at {at} gives a group of nccl a tensor in the host's memory. On a cluster that is an error: No backend"
)
SEND = (
    "send at {at} gives a group of nccl a tensor in the host's memory. On a cluster that is an error: No backend type"
)
DEVICES = (
    "ranks 0 and 1 of one node give a group of nccl tensors on cuda:0, in all_reduce at {at}. On a cluster NCCL says: "
    "Duplicate GPU detected"
)
DDP = DEVICES.replace("all_reduce", "broadcast")

SAID = {
    "a tensor of the host": ("dist.all_reduce(torch.ones(2))", HOST),
    "a message of the host's": ("dist.send(torch.ones(2), 1) if rank == 0 else dist.recv(torch.ones(2), 0)", SEND),
    "no device": ("dist.all_reduce(torch.ones(2, device='cuda'))", DEVICES),
    "moved to no device": ("dist.all_reduce(torch.ones(2).cuda())", DEVICES),
    "a model on no device": ("nn.parallel.DistributedDataParallel(nn.Linear(2, 2).to('cuda'))", DDP),
    "the same device": ("dist.all_reduce(torch.ones(2, device='cuda:0'))", DEVICES),
    "the same current device": ("torch.cuda.set_device(0); dist.all_reduce(torch.ones(2).cuda())", DEVICES),
}
"""By what a program does, in one line: the line, and the beginning of what the run says."""


def ran(folder, line, backend="nccl", *flags):
    file = written(folder, BEGIN.format(backend=backend) + line + "\nprint('end')\n")
    outcome = launch("--torch", "real", "--verbose", "--nproc-per-node", "2", *flags, file)
    assert outcome.out == "end\nend\n"
    first, said = outcome.err.split("\n", 1)
    assert first.startswith("torchemu: --torch real, ")
    return Outcome(outcome.status, outcome.out, said), f"{file}:7 in <module>"


@pytest.mark.parametrize("does", SAID)
def test_what_is_said_of_a_run(tmp_path, does):
    line, said = SAID[does]
    outcome, at = ran(tmp_path, line)
    assert outcome.status == 0
    assert outcome.err.startswith(f"torchemu: warning: {said.format(at=at)}")
    assert outcome.err.count("\n") == 1


NOT_SAID = {
    "set_device": "torch.cuda.set_device(rank); dist.all_reduce(torch.ones(2, device='cuda'))",
    "set_device_index": "torch.accelerator.set_device_index(rank); dist.all_reduce(torch.ones(2, device='cuda'))",
    "a number": "dist.all_reduce(torch.ones(2).to(rank))",
    "cuda and a number": "dist.all_reduce(torch.ones(2).cuda(rank))",
    "a name": "dist.all_reduce(torch.ones(2, device=f'cuda:{rank}'))",
    "data on a device": "dist.all_reduce(torch.tensor([1.0], device=torch.device('cuda', rank)))",
    "a model": "nn.parallel.DistributedDataParallel(nn.Linear(2, 2).to(rank), device_ids=[rank])",
    "a mesh": "dist.init_device_mesh('cuda', (2,)); dist.all_reduce(torch.ones(2, device='cuda'))",
    "a default device": "torch.set_default_device(f'cuda:{rank}'); dist.all_reduce(torch.ones(2))",
    "barriers and objects": "dist.barrier(); dist.all_gather_object([None] * 2, rank)",
    "one rank": "torch.cuda.set_device(0); dist.all_reduce(torch.ones(2).cuda(), group=dist.new_subgroups(1)[0])",
}


@pytest.mark.parametrize("does", NOT_SAID)
def test_of_what_is_right_nothing_is_said(tmp_path, does):
    outcome, _ = ran(tmp_path, NOT_SAID[does])
    assert (outcome.status, outcome.err) == (0, "")


@pytest.mark.parametrize("backend", ["gloo", "cpu:gloo,cuda:nccl"])
def test_groups_that_take_the_hosts_tensors_are_not_spoken_of(tmp_path, backend):
    outcome, _ = ran(tmp_path, "dist.all_reduce(torch.ones(2))", backend)
    assert (outcome.status, outcome.err) == (0, "")


def test_ranks_of_different_nodes_may_have_devices_of_one_number(tmp_path):
    line = "dist.all_reduce(torch.ones(2, device='cuda'))"
    file = written(tmp_path, BEGIN.format(backend="nccl") + line + "\n")
    outcome = launch("--torch", "real", "--verbose", "--nnodes", "2", "--nproc-per-node", "1", file)
    assert (outcome.status, outcome.err.count("\n")) == (0, 1)


@pytest.mark.parametrize("does", SAID)
def test_without_the_flag_nothing_is_said(tmp_path, does):
    file = written(tmp_path, BEGIN.format(backend="nccl") + SAID[does][0] + "\n")
    assert launch("--torch", "real", "--nproc-per-node", "2", file).err == ""
