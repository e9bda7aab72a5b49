"""Tests of what a program hands to the ranks that it spawns, as PyTorch hands it to processes."""

import subprocess
import sys
from pathlib import Path

import pytest

MODEL = """
import torch, torch.distributed as dist, torch.multiprocessing as mp

class Runner:
    def __init__(self):
        torch.manual_seed(0)
        self.model = torch.nn.Linear(2, 2)
        self.model.register_buffer("count", torch.zeros(3))
        self.model(torch.ones(1, 2)).sum().backward()
        self.sgd = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def run(self, rank, model, whole):
        dist.init_process_group("gloo", "file:///spawned", rank=rank, world_size=2)
        assert model is self.model and self.sgd.param_groups[0]["params"][0] is model.weight
        assert type(model.weight) is torch.nn.Parameter and model.weight.requires_grad and model.weight.grad is None
        if rank == 1:
            whole[0] = 7  # in memory that processes share
            with torch.no_grad():
                model.weight.fill_(1)
        dist.barrier()
        assert whole.tolist() == [7, 0] and model.weight.eq(1).all()
        device = torch.device("cuda", rank)
        model.to(device)
        dist.barrier()
        assert {t.device for t in (*model.parameters(), *model.buffers())} == {device}
        model.weight.requires_grad_(rank == 0)
        model.eval() if rank else model.double()
        dist.barrier()
        assert (model.weight.requires_grad, model.training) == (rank == 0, rank == 0)
        assert model.weight.dtype is (torch.float32 if rank else torch.float64)

if __name__ == "__main__":
    runner, whole = Runner(), torch.zeros(2)
    mp.spawn(runner.run, args=(runner.model, whole), nprocs=2)
    assert runner.model.weight.device.type == "cpu" and runner.model.weight.grad is not None
    assert runner.model.weight.eq(1).all() and whole.tolist() == [7, 0]
    print("ends")
"""


def run(script: Path, text: str) -> subprocess.CompletedProcess[str]:
    script.write_text(text)
    flags = ["--torch", "real", "--nproc-per-node", "1", "--topology", "sips2"]
    command = [sys.executable, "-m", "torchemu", "run", *flags, str(script)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_modules_are_a_ranks_own_and_memory_of_tensors_is_shared(tmp_path: Path) -> None:
    done = run(tmp_path / "spawned.py", MODEL)
    assert (done.returncode, done.stdout) == (0, "ends\n"), done.stderr


QUEUE = """
import sys
sys.path.insert(0, {folder!r})
import torch.distributed as dist
import spoken_writer
dist.init_process_group("gloo")
writer = spoken_writer.Writer()
for i in range(20):
    writer.add((dist.get_rank(), i))
print(writer.close() == [(dist.get_rank(), i) for i in range(20)])
"""
WRITER = """
import multiprocessing, queue, threading

class Writer(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.queue, self.written, self.empty = multiprocessing.Queue(3), [], 0
        self.start()

    def run(self):
        while True:
            try:
                item = self.queue.get(True, 0.01)
            except queue.Empty:
                self.empty += 1
                continue
            if item is None:
                return
            self.written.append(item)

    def add(self, item):
        self.queue.put(item)

    def close(self):
        self.queue.put(None)
        self.join()
        return self.written
"""


def test_a_packages_thread_takes_from_a_queue_of_processes(tmp_path: Path) -> None:
    """It is beside the schedule, and ranks wait for it where the queue is full."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "spoken_writer.py").write_text(WRITER)
    script = tmp_path / "writing.py"
    script.write_text(QUEUE.format(folder=str(folder)))
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "real", "--nproc-per-node", "2", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "True\nTrue\n"), done.stderr


JOINS = """
import torch.distributed as dist
import torch.multiprocessing as mp

def work(index, offset=0):
    dist.init_process_group("gloo", init_method="tcp://localhost:29531", rank=index + offset, world_size=3)

if __name__ == "__main__":
    started = mp.spawn(work, (1,), nprocs=2, join=False)
    work(0)
"""


def test_a_program_that_is_a_rank_beside_those_that_spawn_has_started_is_refused(tmp_path):
    (tmp_path / "joins.py").write_text(JOINS)
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "real", "--nproc-per-node", "1", "joins.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "NotImplementedError: a process group of a program and processes that it has started is not" in done.stderr


BESIDE = """
import torch
import torch.distributed as dist
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp

def added(a, b):
    return a + b + rpc.get_worker_info().id

def work(rank, size, events, results):
    dist.init_process_group("BACKEND", init_method="tcp://localhost:2333", rank=rank, world_size=size)
    if rank == 0:
        for event in events:
            event.set()
    else:
        events.wait()
    total = torch.full((3,), rank + 1.0, device="DEVICE")
    dist.all_reduce(total)
    pair = dist.new_group([0, size - 1])
    if rank in (0, size - 1):
        dist.all_reduce(total, group=pair)
    seen = [None] * size
    dist.all_gather_object(seen, (rank, dist.get_rank(), total.tolist(), mp.current_process().name))
    results.put(rank)
    dist.destroy_process_group()
    return seen

def call(rank, size):
    rpc.init_rpc(f"w{rank}", rank=rank, world_size=size, rpc_backend_options=rpc.TensorPipeRpcBackendOptions(
        init_method="tcp://localhost:2444"))
    answers = [rpc.rpc_sync(f"w{r}", added, args=(torch.ones(1), r)).item() for r in range(size)]
    rpc.shutdown()
    return answers

if __name__ == "__main__":
    context, size = mp.get_context("spawn"), 3
    for again in range(2):
        results, events = context.SimpleQueue(), [context.Event() for _ in range(1, size)]
        started = [context.Process(target=work, args=(r, size, events[r - 1], results)) for r in range(1, size)]
        for process in started:
            process.start()
        print(work(0, size, events, results), sorted(results.get() for _ in range(size)))
        for process in started:
            process.join()
    started = [mp.Process(target=call, args=(r, size)) for r in range(1, size)]
    for process in started:
        process.start()
    print(call(0, size))
    for process in started:
        process.join()
    print([process.exitcode for process in started])
"""


@pytest.mark.parametrize(("backend", "device"), [("gloo", "cpu"), ("nccl", "cuda")])
def test_a_program_is_a_rank_beside_those_it_has_started(tmp_path, backend, device):
    """1 + 2 + 3 is 6, and the first and the last add theirs once more; remote workers add their numbers."""
    (tmp_path / "beside.py").write_text(BESIDE.replace("BACKEND", backend).replace("DEVICE", device))
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "real", "--nproc-per-node", "1", "beside.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    *groups, calls, codes = done.stdout.splitlines()
    for again, line in enumerate(groups):
        names = ["MainProcess", *(f"SpawnProcess-{2 * again + k}" for k in (1, 2))]
        values = [[12.0] * 3, [6.0] * 3, [12.0] * 3]
        assert line == f"{[(r, r, values[r], names[r]) for r in range(3)]} [0, 1, 2]"
    assert len(groups) == 2
    assert (calls, codes) == (str([1.0 + 2 * r for r in range(3)]), "[0, 0]")


OWN_STATE = """
import torch
import torch.multiprocessing as mp

def work(rank):
    torch.manual_seed(100 + rank)
    torch.rand(3)
    torch.set_default_dtype(torch.float64)

if __name__ == "__main__":
    torch.manual_seed(0)
    expected = torch.rand(6)
    torch.manual_seed(0)
    drawn = [torch.rand(2)]
    mp.spawn(work, nprocs=2)
    drawn.append(torch.rand(2))
    process = mp.Process(target=work, args=(1,))
    process.start()
    process.join()
    drawn.append(torch.rand(2))
    print(torch.get_default_dtype(), torch.equal(torch.cat(drawn), expected))
"""


def test_a_program_has_its_own_state_again_after_it_has_waited_for_processes(tmp_path):
    (tmp_path / "own.py").write_text(OWN_STATE)
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "real", "--nproc-per-node", "1", "own.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "torch.float32 True\n"), done.stderr


STARTS_ITSELF = """
import os, subprocess, sys
import torch
import torch.distributed as dist

rank, size = int(os.environ.get("LOCAL_RANK", 0)), 3
if "LOCAL_RANK" not in os.environ:
    for other in range(1, size):
        subprocess.Popen([sys.executable, *sys.argv], env={**os.environ, "LOCAL_RANK": str(other)})
    os.environ["LOCAL_RANK"] = "0"
os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="29600", RANK=str(rank), WORLD_SIZE=str(size))
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
total = torch.full((2,), rank + 1.0, device="cuda")
dist.all_reduce(total)
print(rank, total.tolist(), total.device)
dist.destroy_process_group()
"""


def test_a_program_starts_itself_for_each_other_rank(tmp_path):
    """So Lightning does: Python runs the program, which is told no rank, and is the first."""
    (tmp_path / "itself.py").write_text(STARTS_ITSELF)
    (tmp_path / "start.sh").write_text("python itself.py\n")
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "real", "start.sh"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    expected = [f"{rank} [6.0, 6.0] cuda:{rank}" for rank in range(3)]
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, expected), done.stderr
