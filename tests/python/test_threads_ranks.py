"""Threads of ranks: what they do with the World, what of it is a thread's own, and how long their waits are."""

from __future__ import annotations

import builtins
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest
from launch import Outcome, launch, lines, written

import torchemu

START = """
import concurrent.futures
import os
import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.distributed as dist

def together(*calls):
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
"""
EVERY_WAY = [
    [],
    ["--virtual-clock"],
    *(["--schedule", name, "--schedule-seed", str(seed)] for name in ("random", "pct") for seed in range(5)),
]


def ran(folder: Path, text: str, *flags: str, nproc: int = 3, backend: str = "gloo") -> Outcome:
    """A run of a program that begins with START and has a default group."""
    start = START + (f'dist.init_process_group("{backend}")\n' if backend else "")
    return launch("--nproc-per-node", str(nproc), *flags, written(folder, start + textwrap.dedent(text)))


def check(folder: Path, text: str, *flags: str, nproc: int = 3, backend: str = "gloo") -> None:
    """Runs a program that checks for itself."""
    outcome = ran(folder, text, *flags, nproc=nproc, backend=backend)
    assert (outcome.status, outcome.out, outcome.err) == (0, "", "")


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
            seen.append((torch.is_grad_enabled(), torch.is_autocast_enabled("cuda"), torch.is_inference_mode_enabled()))
            torch.set_grad_enabled(False)
            seen.append(torch.is_grad_enabled())
        with torch.no_grad(), torch.autocast("cuda"):
            together(look)
            assert not torch.is_grad_enabled() and torch.is_autocast_enabled("cuda")
        assert seen == [(True, False, False), False] and torch.is_grad_enabled()
        together(look)
        assert torch.is_grad_enabled() and not torch.is_autocast_enabled("cuda")
        with torch.device("cuda:0"):
            together(lambda: seen.append(torch.empty(1).device.type))
            assert torch.empty(1).device.type == "cuda"
        assert seen[-1] == "cpu"
        half = []
        def cast():
            with torch.autocast("cuda", dtype=torch.bfloat16):
                turn.wait()
                half.append((torch.ones(2, 2, device="cuda") @ torch.ones(2, 2, device="cuda")).dtype)
        def full():
            turn.wait()
            half.append((torch.ones(2, 2, device="cuda") @ torch.ones(2, 2, device="cuda")).dtype)
        turn = threading.Barrier(2)
        together(cast, full)
        assert sorted(map(str, half)) == ["torch.bfloat16", "torch.float32"]
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
        packed = []
        def under_hooks():
            with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
                turn.wait()
                (w * w).sum().backward()
        def without():
            turn.wait()
            (w * w).sum().backward()
        turn = threading.Barrier(2)
        together(under_hooks, without)
        assert len(packed) in (1, 2) and w.grad.tolist() == [10.0] * 3
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


# -- time


def test_timeouts_are_simulated_time(tmp_path: Path) -> None:
    text = """
        def took(call):
            start = time.perf_counter_ns()
            call()
            return time.perf_counter_ns() - start

        event, items = threading.Event(), queue.Queue()
        assert took(lambda: event.wait(3600)) == 3600 * 10**9
        assert took(lambda: threading.Lock().acquire(timeout=9)) == 0
        def empty():
            try:
                items.get(timeout=0.25)
            except queue.Empty:
                return
            raise AssertionError
        assert took(empty) == 250_000_000
        asleep = threading.Thread(target=time.sleep, args=(2.5,))
        asleep.start()
        assert took(lambda: asleep.join(1)) == 10**9 and asleep.is_alive()
        assert took(asleep.join) <= 1_500_000_000
        fires = []
        timer = threading.Timer(7.5, lambda: fires.append(time.time()))
        start = time.time()
        timer.start()
        time.sleep(7)
        assert not fires
        time.sleep(1)
        assert fires == [start + 7.5], (fires, start)
        assert took(lambda: time.sleep(1e-9)) == 1
    """
    check(tmp_path, text, "--virtual-clock", nproc=2)


def test_waits_do_not_block_the_process(tmp_path: Path) -> None:
    """A day passes at once where nothing else is to be waited for; a test that waited would not end."""
    text = """
        assert not threading.Event().wait(86400)
        with ThreadPoolExecutor() as pool:
            try:
                pool.submit(threading.Event().wait, 86400).result(timeout=100)
            except concurrent.futures.TimeoutError:
                pass
            else:
                raise AssertionError
    """
    check(tmp_path, text, nproc=2)


def test_a_heartbeat_does_not_hold_up_the_others(tmp_path: Path) -> None:
    """It beats when so much simulated time has passed, and not before."""
    text = """
        stop, beats = threading.Event(), []
        def beat():
            while not stop.wait(1e-3):
                beats.append(time.perf_counter_ns())
        heart = threading.Thread(target=beat, daemon=True)
        begin = time.perf_counter_ns()
        heart.start()
        t = torch.ones(1 << 20, device="cuda")
        for _ in range(30):
            dist.all_reduce(t)
        torch.cuda.synchronize()
        took = time.perf_counter_ns() - begin
        stop.set()
        heart.join()
        assert abs(len(beats) - took // 1_000_000) <= 1 and beats, (len(beats), took)
        assert all(abs(b - begin - 1_000_000 * i) < 100_000 for i, b in enumerate(beats, 1)), beats
    """
    check(tmp_path, text, "--virtual-clock", backend="nccl")


def test_runs_of_threads_repeat(tmp_path: Path) -> None:
    text = """
        log, lock = [], threading.Lock()
        def work(n):
            for i in range(5):
                with lock:
                    log.append((n, i))
                time.sleep(1e-6 * ((n * 7 + i) % 5))
        together(*[lambda n=n: work(n) for n in range(4)])
        t = torch.ones(100)
        with ThreadPoolExecutor(2) as pool:
            pool.submit(dist.all_reduce, t).result()
        print(rank, log)
    """
    for way in ([], ["--schedule", "random", "--schedule-seed", "3"], ["--schedule", "pct", "--schedule-seed", "3"]):
        traces = []
        for again in range(2):
            trace = tmp_path / f"trace{again}.json"
            outcome = ran(tmp_path, text, *way, "--virtual-clock", "--trace", str(trace))
            assert outcome.status == 0, outcome.err
            traces.append((outcome.out, trace.read_bytes()))
        assert traces[0] == traces[1], way
    logs = {ran(tmp_path, text, "--schedule", "random", "--schedule-seed", str(seed)).out for seed in range(5)}
    assert len(logs) > 1  # other schedules are other orders of threads


# -- ends


def test_a_failing_thread_is_its_own_affair(tmp_path: Path) -> None:
    text = """
        threading.excepthook = lambda args: print(rank, args.exc_type.__name__, args.thread.name)
        def fails():
            dist.all_reduce("no tensor")
        together(fails)
        dist.barrier()
        print(rank, "goes on")
    """
    outcome = ran(tmp_path, text, nproc=2)
    name = "Thread-1 (fails)"
    assert lines(outcome) == [f"0 TypeError {name}", "0 goes on", f"1 TypeError {name}", "1 goes on"]


def test_a_rank_that_fails_waits_for_no_thread(tmp_path: Path) -> None:
    text = """
        def lasts():
            try:
                while True:
                    time.sleep(1)
            finally:
                print("nobody sees this")
        threading.Thread(target=lasts).start()
        if rank == 1:
            raise ValueError("on purpose")
        dist.barrier()
    """
    outcome = ran(tmp_path, text)
    assert outcome.status == 1 and outcome.out == ""
    assert "ValueError: on purpose" in outcome.err and "Exception in" not in outcome.err


def test_idle_workers_end_in_silence_when_a_rank_fails(tmp_path: Path) -> None:
    text = """
        pool = ThreadPoolExecutor(2)
        list(pool.map(abs, range(4)))
        from multiprocessing.pool import ThreadPool
        other = ThreadPool(2)
        raise ValueError("on purpose")
    """
    outcome = ran(tmp_path, text, nproc=1)
    assert outcome.status == 1 and outcome.err.count("Traceback") == 1


@pytest.mark.parametrize(("how", "code"), [("os._exit(7)", 7), ("os.kill(os.getpid(), 9)", -9)])
def test_a_thread_may_end_its_rank(tmp_path: Path, how: str, code: int) -> None:
    text = f"""
        def ends():
            if rank == 1:
                {how}
                print("never")
        together(ends)
        dist.barrier()
    """
    outcome = ran(tmp_path, text)
    assert outcome.status == 1 and f"exitcode  : {code}" in outcome.err and outcome.out == ""
    assert "  rank      : 1 " in outcome.err


def test_sigint_of_a_thread_is_for_the_main_program(tmp_path: Path) -> None:
    text = """
        import _thread
        def interrupt():
            time.sleep(0.001)
            _thread.interrupt_main()
            print("the thread goes on")
        threading.Thread(target=interrupt).start()
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            print("interrupted")
    """
    assert lines(ran(tmp_path, text, nproc=1)) == ["interrupted", "the thread goes on"]


@pytest.mark.parametrize(("busy", "printed"), [("time.sleep(1e-3)", "stop\n"), ("pass", "")])
def test_ctrl_c_is_for_the_main_program(tmp_path: Path, busy: str, printed: str) -> None:
    """It gets it where it waits. While a thread never waits the process ends, as ever."""
    program = written(
        tmp_path,
        f"""
        import threading, time
        def work():
            print("go", flush=True)
            while True:
                {busy}
        threading.Thread(target=work).start()
        try:
            while True:
                time.sleep(1e-3)
        finally:
            print("stop")
        """,
    )
    command = [sys.executable, "-m", "torchemu", "run", "--nproc-per-node", "1", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None and run.stdout.readline() == "go\n"
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=60)
    assert (out, err, run.returncode) == (printed, "interrupted\n", 130)


def test_a_killed_ranks_threads_are_killed(tmp_path: Path) -> None:
    (tmp_path / "faults.yaml").write_text("faults: [{kill: 1, at: 3e6}]\n")
    text = """
        def waits():
            try:
                threading.Event().wait()
            except Exception:
                print("an error that programs see")
        threading.Thread(target=waits, daemon=True).start()
        try:
            dist.all_reduce(torch.ones(1))
            time.sleep(0.01)
            t = torch.ones(1)
            dist.all_reduce(t)
            t.item()
        except dist.DistBackendError as error:
            print(rank, "rank 1 was killed" in str(error))
    """
    outcome = ran(tmp_path, text, "--virtual-clock", "--faults", str(tmp_path / "faults.yaml"))
    assert sorted(outcome.out.splitlines()) == ["0 True", "2 True"], outcome


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
        assert [m for m in sys.modules if m in ("torchemu._threads", "torchemu.run.threads.copies")] == []
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
