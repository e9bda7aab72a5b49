"""Threads of ranks: how long their waits are, and that runs repeat."""

from __future__ import annotations

import re
from pathlib import Path

from threaded import check, ran


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


DEADLOCK_AT_ONCE = re.compile(
    "deadlock at simulated time (0s|[0-9]+us): no rank can run"
)  # 0s with the NumPy front end


def test_waits_for_ever_in_numbers(tmp_path: Path) -> None:
    """A time that no simulation lasts is no deadline: a deadlock at once, and not after centuries."""
    for wait in ("event.wait(threading.TIMEOUT_MAX)", "lock.acquire(timeout=1e9)", "time.sleep(1e9)"):
        text = f"""
            event, lock = threading.Event(), threading.Lock()
            lock.acquire()
            together(lambda: {wait})
        """
        outcome = ran(tmp_path, text, "--virtual-clock", nproc=1)
        assert outcome.status == 1 and DEADLOCK_AT_ONCE.search(outcome.err), wait


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
                time.sleep(1e-6 * (i % 3))  # several wake at once
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
