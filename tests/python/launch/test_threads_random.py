"""Threads of ranks in random programs, and races that other schedules find."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from threaded import check, ran


def random_program(seed: int) -> str:
    """Threads that each reduce on a group of their own, and in between lock, sleep, have a pool and pass things on.

    A rank r adds r + 1 each time; what a thread has after n reductions of a number that begins with 1 is known.
    """
    rng = random.Random(seed)
    threads = rng.randint(1, 5)
    plans = []
    for _ in range(threads):
        steps = ["reduce", *rng.choices(["reduce", "lock", "sleep", "pool", "pass on"], k=rng.randint(1, 8))]
        rng.shuffle(steps)
        plans.append(steps)
    return f"""
        plans = {plans}
        groups = [dist.new_group() for _ in plans]
        lock, inside, passed, found = threading.Lock(), [], queue.Queue(), {{}}

        def follow(n, steps):
            value, expected = torch.ones(3, dtype=torch.float64), 1.0
            for i, step in enumerate(steps):
                if step == "reduce":
                    value += rank + 1
                    dist.all_reduce(value, group=groups[n])
                    expected = size * expected + size * (size + 1) / 2
                elif step == "lock":
                    with lock:
                        inside.append(n)
                        time.sleep(1e-6 * (rank + i))
                        assert inside.pop() == n and not inside
                elif step == "sleep":
                    time.sleep(1e-7 * ((7 * n + 3 * rank + i) % 5))
                elif step == "pool":
                    with ThreadPoolExecutor(2) as pool:
                        assert sum(pool.map(lambda t: t.sum().item(), [value, value])) == 6 * expected
                else:
                    passed.put((n, i))
            found[n] = value.tolist() == [expected] * 3

        together(*[lambda n=n, steps=steps: follow(n, steps) for n, steps in enumerate(plans)])
        assert found == {{n: True for n in range(len(plans))}}
        got = [passed.get_nowait() for _ in range(passed.qsize())]
        assert sorted(got) == [(n, i) for n, steps in enumerate(plans) for i, s in enumerate(steps) if s == "pass on"]
        assert [(n, i) for n, i in got if n == 0] == sorted((n, i) for n, i in got if n == 0)
    """


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(tmp_path: Path, seed: int) -> None:
    print("seed", seed)
    schedule = random.Random(seed).choice(["random", "pct"])
    for way in ([], ["--schedule", schedule, "--schedule-seed", str(seed)]):
        check(tmp_path, random_program(seed), "--virtual-clock", *way, nproc=1 + seed % 4)


RACE = """
    ready = []
    def write():
        time.sleep(1e-6)
        ready.append(1)
    def read():
        time.sleep(1e-6)
        assert ready, "read before it was written"
    with ThreadPoolExecutor(2) as pool:
        results = [pool.submit(write), pool.submit(read)]
    results[1].result()
"""


@pytest.mark.slow
def test_other_schedules_find_races_of_threads(tmp_path: Path) -> None:
    """They find what works by chance, in the order in which threads start."""
    check(tmp_path, RACE, "--virtual-clock", nproc=1)
    outcome = ran(tmp_path, RACE, "--virtual-clock", "--explore", "20", nproc=1)
    assert outcome.status == 1 and "read before it was written" in outcome.err
    switches = outcome.err.partition("fails with --replay ")[2].rpartition(" switch")[0].rpartition(", ")[0]
    again = ran(tmp_path, RACE, "--virtual-clock", "--replay", switches, nproc=1)
    assert again.status == 1 and "read before it was written" in again.err
