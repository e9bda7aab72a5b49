"""Threads of ranks: what they do with the World, what of it is a thread's own, and whose threads they are."""

from __future__ import annotations

import builtins
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from launch import written
from threaded import check

import torchemu

EVERY_WAY = [
    [],
    ["--virtual-clock"],
    *(["--schedule", name, "--schedule-seed", str(seed)] for name in ("random", "pct") for seed in range(5)),
]


# -- what threads do


@pytest.mark.parametrize("way", EVERY_WAY, ids=lambda way: "-".join(way) or "default")
def test_a_collective_of_a_thread_is_the_ranks(tmp_path: Path, way: list[str]) -> None:
    text = """
        a, b = torch.full((4,), float(rank)), torch.tensor([rank])
        together(lambda: dist.all_reduce(a))
        dist.all_reduce(b)
        assert a.tolist() == [3.0] * 4 and b.tolist() == [3]
        objects = [None] * size
        together(lambda: dist.all_gather_object(objects, {"rank": rank}), lambda: a.mul_(2))
        assert objects == [{"rank": r} for r in range(3)] and a.tolist() == [6.0] * 4
    """
    check(tmp_path, text, *way)


@pytest.mark.parametrize("backend", ["gloo", "nccl"])
@pytest.mark.parametrize("way", EVERY_WAY, ids=lambda way: "-".join(way) or "default")
def test_a_rank_waits_in_one_thread_and_goes_on_in_another(tmp_path: Path, way: list[str], backend: str) -> None:
    """Rank 1 would wait for ever for what rank 0 sends after its own receive, but for its threads."""
    text = """
        where = "cuda" if dist.get_backend() == "nccl" else "cpu"
        got = torch.zeros(2, device=where)
        if rank == 0:
            together(lambda: dist.recv(got, 1), lambda: dist.send(torch.ones(2, device=where), 1))
        elif rank == 1:
            together(lambda: dist.recv(got, 0), lambda: dist.send(torch.ones(2, device=where) + 1, 0))
        assert got.tolist() == [[2, 2], [1, 1], [0, 0]][rank]
    """
    check(tmp_path, text, *way, backend=backend)


def test_stores_and_objects_between_threads_of_ranks(tmp_path: Path) -> None:
    text = """
        store = dist.distributed_c10d._get_default_store()
        seen = []
        together(
            lambda: seen.append(store.get(f"of{(rank + 1) % size}")),
            lambda: store.set(f"of{rank}", str(rank)),
        )
        assert seen == [str((rank + 1) % size).encode()]
        with ThreadPoolExecutor() as pool:
            works = list(pool.map(lambda n: torch.full((n,), 1.0).sum().item(), range(20)))
        assert works == list(range(20))
    """
    check(tmp_path, text)


def test_many_threads(tmp_path: Path) -> None:
    """Numbers of tasks are used again."""
    text = """
        total = torch.zeros(1)
        for _ in range(10):
            together(*[lambda: total.add_(1) for _ in range(50)])
        assert total.item() == 500
        together(lambda: together(lambda: together(lambda: total.add_(1))))
        assert total.item() == 501 and threading.active_count() == 1
    """
    check(tmp_path, text, nproc=2)


def test_ranks_that_a_program_spawns_beside_its_threads(tmp_path: Path) -> None:
    text = """
        import torch.multiprocessing as mp

        def child(rank, results, answers):
            doubled = []
            together(lambda: doubled.append(2 * rank))
            results.put(doubled)
            assert answers.get() == "thanks"

        def collect(results, answers, seen):
            for _ in range(3):
                seen.append(results.get())
                time.sleep(0.001)
            for _ in range(3):
                answers.put("thanks")

        if __name__ == "__main__":
            results, answers, seen = mp.Queue(), mp.Queue(), []
            thread = threading.Thread(target=collect, args=(results, answers, seen))
            thread.start()
            mp.spawn(child, args=(results, answers), nprocs=3)
            thread.join()
            assert sorted(seen) == [[0], [2], [4]]
    """
    check(tmp_path, text, nproc=1, backend="")


# -- what is a thread's own


def test_modes_are_a_threads_own(tmp_path: Path) -> None:
    text = """
        seen = []
        def look():
            seen.append((torch.is_grad_enabled(), torch.is_inference_mode_enabled()))
            torch.set_grad_enabled(False)
            seen.append(torch.is_grad_enabled())
        with torch.no_grad():
            together(look)
            assert not torch.is_grad_enabled()
        assert seen == [(True, False), False] and torch.is_grad_enabled()
        together(look)
        assert torch.is_grad_enabled()
        with torch.device("cuda:0"):
            together(lambda: seen.append(torch.empty(1).device.type))
            assert torch.empty(1).device.type == "cuda"
        assert seen[-1] == "cpu"
    """
    check(tmp_path, text, nproc=1)


def test_streams_and_devices_are_a_threads_own(tmp_path: Path) -> None:
    text = """
        mine, other, seen = torch.cuda.current_stream(), torch.cuda.Stream(), []
        def look():
            seen.append((torch.cuda.current_stream(), torch.cuda.current_device()))
            torch.cuda.set_device((rank + 1) % size)
            torch.cuda.set_stream(other)
            seen.append((torch.cuda.current_stream(), torch.cuda.current_device()))
        with torch.cuda.stream(other):
            together(look)
            assert torch.cuda.current_stream() == other
        assert torch.cuda.current_stream() == mine == torch.cuda.default_stream()
        assert torch.cuda.current_device() == rank
        assert seen == [(mine, rank), (other, (rank + 1) % size)], seen
    """
    check(tmp_path, text, backend="nccl")


def test_gradients_in_threads(tmp_path: Path) -> None:
    """Graphs of one thread are walked by another, several at once."""
    text = """
        w = torch.ones(3, requires_grad=True)
        losses = [(w * i).sum() for i in range(4)]
        together(*[loss.backward for loss in losses])
        assert w.grad.tolist() == [6.0] * 3
    """
    check(tmp_path, text, nproc=1)


def test_event_loops_are_a_threads_own(tmp_path: Path) -> None:
    text = """
        import asyncio
        seen = []
        async def main(n):
            gate.wait()
            await asyncio.sleep(0)
            seen.append(n)
        gate = threading.Barrier(2)
        together(lambda: asyncio.run(main(1)), lambda: asyncio.run(main(2)))
        assert sorted(seen) == [1, 2]
    """
    check(tmp_path, text, nproc=1)


# -- whose threads they are


def installed(folder: Path) -> Path:
    """A package that starts a thread of the system."""
    return written(
        folder,
        """
        import queue
        import threading

        def ask(call):
            answers = queue.Queue()
            def run():
                try:
                    answers.put(call())
                except Exception as error:
                    answers.put(error)
            threading.Thread(target=run, daemon=True).start()
            return answers.get(timeout=60)
        """,
        "site-packages/monitors.py",
    ).parent


def test_threads_of_installed_packages_are_of_the_system(tmp_path: Path) -> None:
    text = f"""
        import sys
        sys.path.append({str(installed(tmp_path))!r})
        import monitors
        assert monitors.threading is not threading and monitors.ask(lambda: 6 * 7) == 42
        t = torch.ones(100_000)
        error = monitors.ask(lambda: dist.all_reduce(t))
        assert type(error) is RuntimeError and "a World belongs to the thread that opened it" in str(error), error
        lock = threading.Lock()
        assert monitors.ask(lambda: (lock.acquire(), lock.release(), threading.get_ident()))[2] != threading.get_ident()
        together(lambda: dist.all_reduce(t))
        assert t[0].item() == size
    """
    check(tmp_path, text, nproc=2)


def test_pools_of_dummy_processes(tmp_path: Path) -> None:
    text = """
        from multiprocessing.dummy import Pool
        t = torch.ones(2)
        with Pool(2) as pool:
            assert pool.map(lambda n: n * rank, range(3)) == [0, rank, 2 * rank]
            pool.apply(dist.all_reduce, (t,))
        assert t.tolist() == [2.0, 2.0]
    """
    check(tmp_path, text, nproc=2)


def test_isolated_packages_have_threads_of_the_rank(tmp_path: Path) -> None:
    text = f"""
        import sys
        sys.path.append({str(installed(tmp_path))!r})
        import monitors
        assert monitors.threading is threading and monitors.queue is queue
        t = torch.ones(4)
        assert monitors.ask(lambda: dist.all_reduce(t)) is None and t.tolist() == [2.0] * 4
    """
    check(tmp_path, text, "--isolate", "monitors", nproc=2)


def test_what_modules_have_in_common_with_pythons(tmp_path: Path) -> None:
    """Exceptions are raised and caught by others; the rest is a rank's own."""
    text = """
        import importlib, sys
        import concurrent.futures.thread as pools
        from concurrent import futures
        import concurrent
        assert futures is concurrent.futures and futures.thread is pools
        assert ThreadPoolExecutor is pools.ThreadPoolExecutor is futures.ThreadPoolExecutor
        for name, own in {"threading": threading, "queue": queue, "concurrent.futures": futures}.items():
            assert sys.modules[name] is importlib.import_module(name) is not own
        real, real_queue = sys.modules["threading"], sys.modules["queue"]
        assert real.BrokenBarrierError is threading.BrokenBarrierError and real_queue.Full is queue.Full
        assert sys.modules["concurrent.futures"].CancelledError is futures.CancelledError
        assert real.Thread is not threading.Thread and real_queue.Queue is not queue.Queue
        namespace = {}
        exec("import threading as executed", namespace)
        assert namespace["executed"] is threading
        from concurrent.futures import ProcessPoolExecutor
        assert ProcessPoolExecutor.__module__ == "concurrent.futures.process"
        from threading import *
        assert Event is threading.Event
    """
    check(tmp_path, text, nproc=1)


def test_import_is_pythons_again_after_a_run(tmp_path: Path) -> None:
    before = builtins.__import__
    check(tmp_path, "together(int)", nproc=1)
    assert builtins.__import__ is before


def test_programs_without_threads_load_nothing_for_them(tmp_path: Path) -> None:
    """Also those that import threading for its locks: only what they import."""
    text = """
        import sys
        import torch
        import torch.distributed as dist
        dist.init_process_group("gloo")
        dist.all_reduce(torch.ones(2))
        assert [m for m in sys.modules if m in ("torchemu.runtime.threads", "torchemu.launch.threads.copies")] == []
    """
    program = written(tmp_path, text)
    command = [sys.executable, "-m", "torchemu", "run", "--nproc-per-node", "2", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@torchemu.distributed(world_size=2)
def test_in_a_test_of_pytest() -> None:
    t = torchemu.ones(3)
    thread = threading.Thread(target=torchemu.distributed.all_reduce, args=(t,))
    thread.start()
    thread.join()
    assert t.tolist() == [2.0] * 3


@torchemu.distributed(world_size=2)
def test_a_failing_assertion_of_a_thread_is_a_future() -> None:
    from concurrent.futures import ThreadPoolExecutor

    def fails() -> None:
        assert torchemu.ones(1).item() == 2

    with ThreadPoolExecutor() as pool, pytest.raises(AssertionError):
        pool.submit(fails).result()
