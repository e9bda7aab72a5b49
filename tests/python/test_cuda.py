"""torch.cuda as scripts use it: the devices of a rank's node, their memory and what they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from launch import launch, lines, written

BEGIN = """
    import os
    import torch
    import torch.distributed as dist
    rank, local = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
"""


@pytest.mark.parametrize(("nodes", "per_node"), [(1, 4), (2, 8), (3, 2)])
@pytest.mark.parametrize("device", ["local", "f'cuda:{local}'", "torch.device('cuda', local)"])
def test_devices_are_those_of_the_node(tmp_path: Path, nodes: int, per_node: int, device: str) -> None:
    """As with torchrun: LOCAL_RANK is the number of a rank's device."""
    text = f"""
    torch.cuda.set_device({device})
    dist.init_process_group("nccl")
    here, there, said = torch.ones(2).cuda(), torch.ones(2, device="cuda"), torch.ones(2, device=f"cuda:{{local}}")
    for t in (here, there, said):
        dist.all_reduce(t)
        assert t.tolist() == [dist.get_world_size()] * 2
    assert here.device == there.device == said.device == torch.device("cuda", local)
    assert torch.cuda.current_stream().device == here.device
    assert torch.cuda.current_device() == local
    print(rank, torch.cuda.device_count())
    """
    flags = ["--nnodes", str(nodes), "--nproc-per-node", str(per_node)]
    assert lines(launch(*flags, written(tmp_path, BEGIN + text))) == sorted(
        f"{rank} {per_node}" for rank in range(nodes * per_node)
    )


def test_devices_that_are_not_there(tmp_path: Path) -> None:
    text = """
    for device, error in ((2, ValueError), ("cuda:2", ValueError), (-1, ValueError), ("cpu", RuntimeError)):
        try:
            torch.cuda.set_device(device)
        except error as caught:
            print(rank, caught)
    """
    out = lines(launch("--nnodes", "2", "--nproc-per-node", "2", written(tmp_path, BEGIN + text)))
    assert len(out) == 16
    assert all(f"{rank} cpu is the host, and not a simulated device" in out for rank in range(4))
    assert sum("has 2 SIPs (devices 0 to 1)" in line for line in out) == 12


def test_another_ranks_device_is_an_error(tmp_path: Path) -> None:
    text = """
    dist.init_process_group("nccl")
    dist.all_reduce(torch.ones(1, device="cuda:0"))
    """
    outcome = launch("--nnodes", "2", "--nproc-per-node", "2", written(tmp_path, BEGIN + text))
    assert "[rank1]: ValueError: `tensor` is on device 0, but rank 1 is on device 1; call" in outcome.err
    assert "rank 3: ValueError: `tensor` is on device 0, but rank 3 is on device 1; call" in outcome.err
    assert "rank 2" not in outcome.err.replace("ranks 2", "")
