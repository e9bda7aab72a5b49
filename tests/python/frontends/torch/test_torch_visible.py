"""CUDA_VISIBLE_DEVICES: what a program sees of the devices, by which numbers, and when it is read."""

import os
import subprocess
import sys

import pytest
import torch
import torch.distributed as dist

import torchemu
from torchemu.frontends.torch.device import visible


def ran(folder, text, ranks, environment):
    script = folder / "sees.py"
    script.write_text(f"import os\nimport torch\nimport torch.distributed as dist\n{text}")
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "real", "--nproc-per-node", str(ranks), str(script)]
    given = {key: value for key, value in os.environ.items() if key != "CUDA_VISIBLE_DEVICES"} | environment
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=given)
    assert done.returncode == 0, done.stderr
    return sorted(done.stdout.splitlines())


EACH = """
rank = int(os.environ["LOCAL_RANK"])
if rank == 3:
    torch.zeros(1).cuda()
os.environ["CUDA_VISIBLE_DEVICES"] = ["0,0", "1", "6,7", "0"][rank]
seen = torch.cuda.is_available(), torch.cuda.device_count()
if rank == 2:
    torch.manual_seed(5)
try:
    t = torch.ones(1, device="cuda")
    torch.nn.Linear(1, 1).to(rank)
except (RuntimeError, torch.AcceleratorError) as error:
    print(rank, *seen, str(error).splitlines()[0])
else:
    print(rank, *seen, t.device, torch.cuda.current_device())
"""


def test_a_program_sets_what_it_sees_before_its_first_use(tmp_path):
    """Of one listed twice none is seen, and what comes after the first use is not read. A rank keeps its own device."""
    assert ran(tmp_path, EACH, 4, {}) == [
        "0 False 0 No CUDA GPUs are available",
        "1 True 1 CUDA error: invalid device ordinal",
        "2 True 2 CUDA error: invalid device ordinal",
        "3 True 4 cuda:3 3",
    ]


ALONE = """
rank = int(os.environ["LOCAL_RANK"])
os.environ["CUDA_VISIBLE_DEVICES"] = str(rank)
dist.init_process_group("nccl")
total = torch.full((3,), rank + 1.0, device="cuda:0")
dist.all_reduce(total)
print(rank, torch.cuda.device_count(), torch.cuda.current_device(), total.tolist(), flush=True)
"""


def test_ranks_that_see_one_device_each_call_it_the_first(tmp_path):
    assert ran(tmp_path, ALONE, 3, {}) == [f"{rank} 1 0 [6.0, 6.0, 6.0]" for rank in range(3)]


SPAWNED = """
def work(rank):
    torch.cuda.set_device(rank)
    print(rank, torch.cuda.device_count(), torch.ones(1, device="cuda").device)

if __name__ == "__main__":
    torch.multiprocessing.spawn(work, nprocs=torch.cuda.device_count())
"""


def test_a_program_spawns_as_many_as_it_sees(tmp_path):
    assert ran(tmp_path, SPAWNED, 1, {"CUDA_VISIBLE_DEVICES": "2,3"}) == ["0 2 cuda:0", "1 2 cuda:1"]


@pytest.mark.parametrize("text", ["", "-1", "0", " 3, 1", "+2,0", "0,0", "1,-1,2", "2,x", "7,0x1,2", "None", "0,1,"])
def test_the_variable_is_read_as_pytorch_reads_it(text, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", text)
    assert visible.listed(text) == tuple(torch.cuda._parse_visible_devices())


def test_names_of_devices_count_and_without_the_variable_all_do():
    assert visible.listed("GPU-8f3a,GPU-1c") == (0, 1)
    assert visible.listed(None) is None


@torchemu.distributed(world_size=2, torch="real")
def test_without_the_variable_all_of_a_node_are_seen():
    dist.init_process_group("nccl")
    t = torch.ones(1, device="cuda")
    dist.all_reduce(t)
    assert t.item() == 2
    assert t.device.index == dist.get_rank()
    assert torch.cuda.device_count() >= 2
