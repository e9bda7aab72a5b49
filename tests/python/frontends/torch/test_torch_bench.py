"""torchemu bench on the installed PyTorch."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.shows("programs: benches")

BENCH = """
def part(rank, world, torch):
    torch.ahbm.set_device(rank)
    torch.distributed.init_process_group("ahbm", rank=rank, world_size=world, init_method="tcp://127.0.0.1:29511")
    for count in (1, 32, 4097):
        tensor = torch.full((count,), float(rank), device="ahbm")
        torch.distributed.all_reduce(tensor)
        assert tensor.eq(world * (world - 1) / 2).all()
        assert tensor.device.type == "ahbm" and tensor.device.index == rank
    torch.ahbm.synchronize()
    torch.distributed.destroy_process_group()


def run(torch):
    print("site-packages" in torch.__file__)
    world = torch.ahbm.device_count()
    torch.multiprocessing.spawn(part, args=(world, torch), nprocs=world)
"""


SEED = """
import warnings, torch
where = torch.device("ahbm", torch.ahbm.current_device())
with warnings.catch_warnings():
    warnings.simplefilter("error")
    torch.manual_seed(3)
first = torch.rand(4, device=where)
torch.manual_seed(3)
assert torch.equal(first.cpu(), torch.rand(4, device="cuda").cpu())
"""


NAMED = """
import torch
torch.ahbm.set_device("ahbm:1")
assert torch.ahbm.current_device() == 1
torch.ahbm.set_device(torch.device("cuda", 0))
assert torch.cuda.current_device() == 0
assert torch.cuda.get_device_properties(torch.device("ahbm", 1)).pci_bus_id == 1
"""


@pytest.mark.parametrize("program", [SEED, NAMED], ids=["seeds of all devices", "devices by either name"])
def test_programs_say_nothing(tmp_path, program):
    file = tmp_path / "program.py"
    file.write_text(program)  # for a process of its own: PyTorch keeps the name of its third kind of devices
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "real", "--nproc-per-node", "1", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_bench_takes_the_same_time_on_both(tmp_path):
    file = tmp_path / "bench.py"
    file.write_text(BENCH)
    said = {}
    for name in ("real", "numpy"):
        command = [sys.executable, "-m", "torchemu", "bench", "--torch", name, "--topology", "sips8", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        said[name] = done.stdout.splitlines()
    assert (said["real"][1], said["numpy"][1]) == ("True", "False")
    assert said["real"][2:] == said["numpy"][2:]
    assert sum(line.startswith("all_reduce") for line in said["real"]) == 3
