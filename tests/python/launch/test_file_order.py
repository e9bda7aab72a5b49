"""Files that one rank writes and another one reads: in some order, or in none, which --check reports by both lines."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from launch import launch
from planted import marks

TORCHES = ["numpy", *(["real"] if find_spec("torch") else [])]

BEGIN = """
import os, time
from pathlib import Path
import torch, torch.distributed as dist
dist.init_process_group(BACKEND)
rank, world = dist.get_rank(), dist.get_world_size()
if BACKEND == "nccl": torch.cuda.set_device(rank)
"""

ORDERS = {
    "barrier": "dist.barrier()",
    "objects": "dist.broadcast_object_list([rank], src=0)",
    "messages": "[dist.send(torch.ones(1), i) for i in range(1, world)] if rank == 0 else dist.recv(torch.ones(1), 0)",
    "store": "store.set('ready', '1') if rank == 0 else store.wait(['ready'])",
    "numbers": "dist.all_reduce(x); x.tolist()",
}

ONE_WRITES = """
store = dist.FileStore("store", world)
x = torch.ones(1, device=torch.device("cuda", rank) if BACKEND == "nccl" else "cpu")
if rank == 0: Path("f.txt").write_text("1")  #! no order
ORDER  #- no order
text = Path("f.txt").read_text()  #! no order
dist.barrier()
"""

PROGRAMS = {
    "polled": """
if rank == 0:
    Path("f.txt").write_text("1")
    Path("f.done").touch()
while not os.path.exists("f.done"): time.sleep(0.001)
text = Path("f.txt").read_text()
""",
    "renamed": """
if rank == 0:
    Path("f.new").write_text("1")
    os.rename("f.new", "f.txt")
while True:
    try: text = Path("f.txt").read_text(); break
    except FileNotFoundError: time.sleep(0.001)
""",
    "a file for a lock": """
try:
    os.close(os.open("lock", os.O_CREAT | os.O_EXCL))
    time.sleep(0.002 * (1 + rank))
    Path("f.txt").write_text("1")
    os.remove("lock")
except FileExistsError:
    while os.path.exists("lock"): time.sleep(0.001)
text = Path("f.txt").read_text()
""",
    "files of their own": """
torch.save(torch.ones(2), f"{rank}.pt")
x = torch.load(f"{rank}.pt")
""",
    "the barrier of others": """
pair = dist.new_group([0, 1])
if rank == 0: torch.save({"x": 1}, "f.pt")  #! other barrier
dist.barrier()  #- other barrier
if rank < 2: dist.barrier(group=pair)  #+ other barrier
y = torch.load("f.pt")  #! other barrier
""",
    "written again": """
if rank == 0: torch.save({"x": 1}, "f.pt")
dist.barrier()
x = torch.load("f.pt")
dist.barrier()
if rank == 1: torch.save({"x": 2}, "f.pt")  #! no second barrier
dist.barrier()  #- no second barrier
x = torch.load("f.pt")  #! no second barrier
""",
}


def texts() -> dict[str, str]:
    """Returns the programs, by their names."""
    found = {f"{name}, gloo": BEGIN.replace("BACKEND", "'gloo'") + text for name, text in PROGRAMS.items()}
    for name, order in ORDERS.items():
        for backend in ("gloo", "nccl") if name in ("barrier", "numbers") else ("gloo",):
            text = (BEGIN + ONE_WRITES).replace("BACKEND", f"'{backend}'").replace("ORDER", order)
            found[f"{name}, {backend}"] = text
    return found


@pytest.mark.parametrize("torch", TORCHES)
@pytest.mark.parametrize("name", texts())
def test_files_that_are_read(name: str, torch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = texts()[name]
    for i, defect in enumerate([None, *marks.defects(text)]):
        folder = tmp_path / str(i)
        folder.mkdir()
        monkeypatch.chdir(folder)
        file = folder / "program.py"
        file.write_text(marks.planted(text, defect))
        outcome = launch("--torch", torch, "--nproc-per-node", "3", "--check", file)
        if defect is None:
            assert (outcome.status, outcome.err) == (0, "")
        else:
            assert outcome.status == 1 and marks.reports(outcome.err)[0] == marks.named(text, defect), outcome.err
