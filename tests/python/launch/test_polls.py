"""A program that asks again and again for what never comes is a deadlock, at once; one whose answer comes goes on, also
where it is a flag that is asked."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from launch import launch, written

START = """
import time
from datetime import timedelta
import torch
import torch.distributed as dist

dist.init_process_group("{backend}")
rank, t = dist.get_rank(), torch.ones(4)
store = dist.distributed_c10d._get_default_store()
"""

IN_VAIN = {
    "is_completed": "w = dist.irecv(t, 1)\nwhile not w.is_completed(): pass",
    "is_completed, sleeping": "w = dist.irecv(t, 1)\nwhile not w.is_completed(): time.sleep(0.001)",
    "done": "f = dist.irecv(t, 1).get_future()\nwhile not f.done(): pass",
    "check": "while not store.check(['k']): pass",
    "check, sleeping": "while not store.check(['k']): time.sleep(0.001)",
    "add": "while store.add('n', 0) < 2: pass",
    "compare_set": "store.set('lock', 'taken')\nwhile store.compare_set('lock', 'free', 'me') != b'me': pass",
    "num_keys": "while store.num_keys() < 1000: pass",
}
"""Loops of rank 0 that nobody ends, by what is asked."""


@pytest.mark.parametrize("clock", [(), ("--virtual-clock",)], ids=["wall", "virtual"])
@pytest.mark.parametrize("name", IN_VAIN)
def test_what_never_comes(tmp_path: Path, name: str, clock: tuple[str, ...]) -> None:
    loop = "\n".join("    " + line for line in IN_VAIN[name].splitlines())
    file = written(tmp_path, START.format(backend="gloo") + f"if rank == 0:\n{loop}\n")
    outcome = launch("--nproc-per-node", "2", *clock, file)
    assert outcome.status == 1 and "DeadlockError" in outcome.err
    at = len(file.read_text().splitlines())
    assert f"rank 0 waits for {name.partition(',')[0]}()" in outcome.err and f"{file}:{at} in <module>" in outcome.err


def test_all_ranks_ask_in_vain(tmp_path: Path) -> None:
    file = written(tmp_path, START.format(backend="gloo") + "while not store.check([f'k{rank}']): pass\n")
    outcome = launch("--nproc-per-node", "16", file)
    assert outcome.status == 1 and "DeadlockError" in outcome.err
    assert all(f"rank {rank} waits for check()" in outcome.err for rank in (0, 15))


RIGHT = {
    "a late sender": """
    if rank == 0:
        w = dist.irecv(t, 1)
        while not w.is_completed(): pass
    else:
        time.sleep(2)
        dist.send(t, 0)
    """,
    "a chain of keys": """
    for i in range(2000):
        if i % 2 == rank: store.set(f"k{i}", "")
        else:
            while not store.check([f"k{i}"]): pass
    """,
    "many keys that are there, while another waits": """
    if rank == 0:
        store.set("k", "")
        for i in range(5000): assert store.check(["k"])
    dist.barrier()
    """,
    "gives up by the clock": """
    if rank == 0:
        begun = time.monotonic()
        while not store.check(["k"]):
            if time.monotonic() - begun > 2: break
    dist.barrier()
    """,
    "gives up after some looks": """
    if rank == 0:
        for i in range(100):
            if store.check(["k"]): break
    dist.barrier()
    """,
    "a heartbeat": """
    if rank == 0:
        while not store.check(["stop"]): store.add("beats", 1)
    else:
        while store.add("beats", 0) < 3000: pass
        store.set("stop", "")
    """,
}
"""Programs that ask again and again, by what brings the answer about."""


@pytest.mark.slow
@pytest.mark.parametrize("name", RIGHT)
def test_what_comes_in_the_end(tmp_path: Path, name: str) -> None:
    file = written(tmp_path, START.format(backend="gloo") + textwrap.dedent(RIGHT[name]) + "print('end')\n")
    for clock in ((), ("--virtual-clock",)):
        outcome = launch("--nproc-per-node", "2", *clock, file)
        assert (outcome.status, outcome.out, outcome.err) == (0, "end\nend\n", "")


FLAGS = {
    "a list": "flag = []\nthreading.Thread(target=lambda: flag.append(1)).start()\nwhile not flag: pass",
    "an attribute": """
    class Told: done = False
    def tell():
        dist.recv(t, 1 - rank) if rank == 0 else dist.send(t, 1 - rank)
        Told.done = True
    threading.Thread(target=tell).start()
    while True:
        if Told.done: break
    """,
    "counting": """
    flag, looks = [], 0
    threading.Thread(target=lambda: flag.append(1)).start()
    while not flag: looks += 1
    """,
    "calling": """
    class Told:
        done = False
        def is_done(self): return self.done
    told = Told()
    threading.Thread(target=lambda: setattr(told, "done", True)).start()
    while True:
        if told.is_done(): break
    """,
    "after a while": """
    flag, looks = [], 0
    threading.Timer(0.1, lambda: flag.append(1)).start()
    def step(): return len(flag)
    while not step(): looks += 1
    """,
    "until a time": """
    flag, begun = [], time.monotonic()
    threading.Timer(0.1, lambda: flag.append(1)).start()
    while not flag and time.monotonic() - begun < 30: pass
    assert flag
    """,
    "memory of ranks": """
    if rank == 0: np.zeros(2, np.uint8).tofile("m0")
    dist.barrier()
    m = np.memmap("m0", mode="r+")
    for i in range(2):
        if rank == i: m[i] = 1
        else:
            while m[i] == 0: pass
    """,
    "a handler's": """
    flag = []
    signal.signal(signal.SIGALRM, lambda *args: flag.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    while not flag: continue
    """,
    "handlers', again and again": """
    flag = []
    signal.signal(signal.SIGALRM, lambda *args: flag.append(1))
    for i in range(100):
        signal.setitimer(signal.ITIMER_REAL, (1 + i % 7 * 20) * 1e-6)
        while len(flag) <= i: pass
    """,
    "a process's": """
    import multiprocessing
    def tell(counter):
        time.sleep(1)
        counter.value = 1
    counter = multiprocessing.Value("i", 0)
    multiprocessing.Process(target=tell, args=(counter,)).start()
    while not counter.value: ...
    """,
}
"""Programs that look at a flag without a pause, by what it is."""


@pytest.mark.parametrize(
    "clock", [pytest.param((), marks=pytest.mark.slow), ("--virtual-clock",)], ids=["wall", "virtual"]
)
@pytest.mark.parametrize("name", FLAGS)
def test_flags_are_set_while_a_rank_looks(
    tmp_path: Path, name: str, clock: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    start = "import signal, threading, numpy as np" + START.format(backend="gloo")
    file = written(tmp_path, start + textwrap.dedent(FLAGS[name]) + "\nprint('end')\n")
    outcome = launch("--nproc-per-node", "2", *clock, file)
    assert (outcome.status, outcome.out, outcome.err) == (0, "end\nend\n", "")


def test_a_flag_that_nobody_sets(tmp_path: Path) -> None:
    file = written(tmp_path, START.format(backend="gloo") + "flag = []\nif rank == 0:\n    while not flag: pass\n")
    outcome = launch("--nproc-per-node", "2", file)
    assert outcome.status == 1 and "rank 0 waits for a loop that only looks" in outcome.err
    assert f"{file}:{len(file.read_text().splitlines())} in <module>" in outcome.err


def test_tracebacks_are_made_while_a_package_holds_a_lock(tmp_path: Path) -> None:
    """A traceback looks at the file of each frame, also where torch.manual_seed makes it, and waits for nobody."""
    notes = """
        import _thread, traceback
        lock = _thread.allocate_lock()
        def note():
            assert lock.acquire(blocking=False), "another rank runs"
            traceback.format_stack()
            lock.release()
    """
    package = written(tmp_path, notes, "site-packages/noting_its_callers.py").parent
    script = f"import sys\nsys.path.append({str(package)!r})\nimport noting_its_callers\n"
    script += "for _ in range(1_000):\n    noting_its_callers.note()\n"
    outcome = launch("--nproc-per-node", "2", written(tmp_path, script))
    assert (outcome.status, outcome.err) == (0, "")


def test_a_package_that_looks_for_a_file_as_it_is_loaded_is_loaded_whole(tmp_path: Path) -> None:
    """Others would find a part of it."""
    looks = "import os\nfor _ in range(2_000):\n    os.path.exists(__file__)\nanswer = 42\n"
    packages = written(tmp_path, looks, "site-packages/looking_as_it_is_loaded.py").parent
    program = f"import sys\nsys.path.append({str(packages)!r})\nimport looking_as_it_is_loaded as package\n"
    file = written(tmp_path, program + "assert package.answer == 42\nprint('end')\n")
    outcome = launch("--nproc-per-node", "2", file)
    assert (outcome.status, outcome.out, outcome.err) == (0, "end\nend\n", "")


def test_a_file_that_a_rank_removes_is_still_there_for_those_that_are_as_far(tmp_path: Path) -> None:
    """DDP's tutorial does so with its checkpoint, after a backward pass for which no host waits."""
    for remove in ("os.remove(path)", "pathlib.Path(path).unlink()", "shutil.rmtree(folder)"):
        program = f"""
import os, pathlib, shutil
folder, path = {str(tmp_path / "kept")!r}, {str(tmp_path / "kept" / "checkpoint")!r}
os.makedirs(folder, exist_ok=True)
if rank == 0:
    pathlib.Path(path).write_text("step 3")
dist.barrier()
assert pathlib.Path(path).read_text() == "step 3"
dist.all_reduce(t, async_op=True)
if rank == 0:
    {remove}
dist.barrier()
assert not os.path.exists(path)
print("end")
"""
        outcome = launch("--nproc-per-node", "4", written(tmp_path, START.format(backend="nccl") + program))
        assert (outcome.status, outcome.out, outcome.err) == (0, "end\n" * 4, ""), remove
