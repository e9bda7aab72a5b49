"""Collectives in C++ are compiled, and run as on the hardware: their bits, what the checker says of them, and what
becomes of mistakes that are planted in them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiled_cases import KERNELS, callable_of, needs_compiler
from conftest import OpenWorld
from launch import launch
from simpler_cases import IN, INOUT, OUT, called, domain, run, tensor, window, working
from test_simpler_collectives import DRIVERS, all_reduced, drivers, flags, inputs, own_first, results, same_bits, summed

import torchemu as torch
from torchemu.errors import DeadlockError, RaceError
from torchemu.runtime import Strictness

pytestmark = needs_compiler
__all__ = ["drivers"]

CPP = str(KERNELS.parent)
MODES = ("onephase", "twophase", "ring", "bidirectional_ring")


def strictly(open_world: OpenWorld, reorder: int | None = None) -> None:
    open_world().strictness = Strictness(check=True, reorder=reorder)


@pytest.mark.parametrize("n", [2, *(pytest.param(n, marks=pytest.mark.slow) for n in (4, 8, 16))])
@pytest.mark.parametrize("mode", MODES)
def test_all_reduce(mode: str, n: int, drivers: Any, open_world: OpenWorld) -> None:
    strictly(open_world, reorder=n)
    given = inputs(n, 256)
    got = results(drivers("allreduce").allreduce, flags(n, mode=mode, kernels=CPP), given)
    same_bits(got, all_reduced(mode, given))


def collective(name: str, given: np.ndarray, out: int, scratch: int, *scalars: int) -> np.ndarray:
    """Returns each chip's result of a collective: its output has so many elements, its scratch so many in front of the
    signals."""
    n = len(given)
    x = [tensor(row) for row in given]
    y = [torch.zeros(out) for _ in x]
    with working(n) as worker:
        cid = worker.register(callable_of(KERNELS / "aiv" / f"{name}_kernel.cpp"))

        def build(orch: Any) -> None:
            for i, seen in enumerate(domain(orch, range(n), 4 * scratch + 64)):
                args = called((x[i], IN), (y[i], OUT), (window(seen), INOUT), n, *scalars, seen.device_ctx)
                orch.submit_next_level(cid, args, worker=i)

        run(worker, build)
    return np.stack([t.numpy() for t in y])


@pytest.mark.parametrize("n", [2, 3, 4, 8, 16])
@pytest.mark.parametrize("count", [1, 64, 250])
def test_all_gather(n: int, count: int, open_world: OpenWorld) -> None:
    strictly(open_world)
    given = inputs(n, count)
    same_bits(collective("allgather", given, n * count, count), np.stack([given.ravel()] * n))


@pytest.mark.parametrize("n", [2, 3, 4, 16])
@pytest.mark.parametrize("count", [1, 64])
def test_reduce_scatter(n: int, count: int, open_world: OpenWorld) -> None:
    strictly(open_world)
    given = inputs(n, n * count)
    want = [summed(given[:, r * count : (r + 1) * count], own_first(r, n)) for r in range(n)]
    same_bits(collective("reduce_scatter", given, count, n * count), np.stack(want))


@pytest.mark.parametrize("n", [2, 5, 16])
def test_broadcast(n: int, open_world: OpenWorld) -> None:
    strictly(open_world)
    given = inputs(n, 100)
    same_bits(collective("broadcast", given, 100, 100, n - 1), np.stack([given[n - 1]] * n))


@pytest.mark.parametrize("n", [2, 3, 8, 16])
def test_all_to_all(n: int, open_world: OpenWorld) -> None:
    strictly(open_world)
    given = inputs(n, 32 * n)
    want = given.reshape(n, n, 32).transpose(1, 0, 2).reshape(n, -1)
    same_bits(collective("all_to_all", given, 32 * n, 32 * n), want)


# -- a mixture of experts


def dispatched(x: np.ndarray, experts: np.ndarray, local: int, most: int) -> list[dict[str, np.ndarray]]:
    """Returns each chip's rows, by a plain loop: rows by expert, senders ascending, each in the order of its tokens."""
    n, _, width = x.shape
    got = [
        {
            "rows": np.zeros((local, most, width), np.float32),
            "numbers": np.zeros((local, most), np.int32),
            "counts": np.zeros(local, np.int32),
        }
        for _ in range(n)
    ]
    for src in range(n):
        for r, expert in enumerate(experts[src].ravel()):
            chip, e = got[expert // local], expert % local
            slot = chip["counts"][e]
            chip["rows"][e, slot] = x[src, r // (experts.shape[2])]
            chip["numbers"][e, slot] = 1000 * src + r
            chip["counts"][e] += 1
    return got


@pytest.mark.parametrize(("n", "tokens", "choices", "local"), [(2, 8, 2, 4), (4, 5, 3, 2), (8, 4, 1, 1), (16, 2, 2, 1)])
def test_dispatch(n: int, tokens: int, choices: int, local: int, open_world: OpenWorld) -> None:
    strictly(open_world, reorder=n)
    seed = 100 * n + tokens
    print(f"seed {seed}")
    random = np.random.default_rng(seed)
    width, most = 24, n * tokens * choices
    x = random.standard_normal((n, tokens, width)).astype(np.float32)
    experts = random.integers(0, n * local, (n, tokens, choices)).astype(np.int32)
    made = [
        {
            "rows": torch.zeros(local, most, width),
            "numbers": torch.zeros(local, most, dtype=torch.int32),
            "counts": torch.zeros(local, dtype=torch.int32),
        }
        for _ in range(n)
    ]
    scratch = 4 * (n * n * local + 2 * 16 + local * most * 8 + local * most * width)
    xs, es = [tensor(row) for row in x], [torch.from_numpy(row.copy()) for row in experts]
    with working(n) as worker:
        cid = worker.register(callable_of(KERNELS / "aiv" / "moe_dispatch_kernel.cpp"))

        def build(orch: Any) -> None:
            for i, seen in enumerate(domain(orch, range(n), scratch)):
                outs = [(made[i][name], OUT) for name in ("rows", "numbers", "counts")]
                sizes = (n, tokens, choices, width, local, most)
                args = called((xs[i], IN), (es[i], IN), *outs, (window(seen), INOUT), *sizes, seen.device_ctx)
                orch.submit_next_level(cid, args, worker=i)

        run(worker, build)
    for got, want in zip(made, dispatched(x, experts, local, most), strict=True):
        for name, values in want.items():
            np.testing.assert_array_equal(got[name].numpy(), values, name)


# -- mistakes


def planted(folder: Path, name: str, before: str, after: str) -> Path:
    """A copy of a kernel in which something is replaced, in it or in what all share."""
    shutil.copytree(KERNELS / "aiv", folder / "aiv")
    changed = 0
    for file in (folder / "aiv" / "domain.hpp", folder / "aiv" / name):
        text = file.read_text()
        changed += text.count(before)
        file.write_text(text.replace(before, after))
    assert changed
    return folder / "aiv" / name


def summing(file: Path, chips: int = 4) -> list[np.ndarray]:
    """All-reduce of 256 numbers by a kernel: what each chip gets."""
    x, y = [tensor(np.arange(256) + i) for i in range(chips)], [torch.zeros(256) for _ in range(chips)]
    with working(chips) as worker:
        cid = worker.register(callable_of(file))

        def build(orch: Any) -> None:
            for i, seen in enumerate(domain(orch, range(chips), 8192)):
                args = called((x[i], IN), (y[i], OUT), (window(seen), INOUT), chips, seen.device_ctx)
                orch.submit_next_level(cid, args, worker=i)

        run(worker, build)
    return [t.numpy() for t in y]


WAIT = "pto::comm::TWAIT(signal, 1, pto::comm::WaitCmp::GE);"


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_without_wait(mode: str, tmp_path: Path, open_world: OpenWorld) -> None:
    strictly(open_world)
    file = planted(tmp_path, f"allreduce_{mode}_kernel.cpp", WAIT, "(void)signal;")
    with pytest.raises(RaceError, match=r"unordered read.*"):
        summing(file)


def test_without_drain(tmp_path: Path, open_world: OpenWorld) -> None:
    """The signal may be sent before what it is for has been stored."""
    strictly(open_world)
    drain = "    domain::copy(a.scratch, a.input, a.input_count);\n    pipe_barrier(PIPE_ALL);\n"
    file = planted(tmp_path, "allreduce_onephase_kernel.cpp", drain, drain.splitlines()[0] + "\n")
    with pytest.raises(RaceError, match=r"signal overtakes its data: .*\n .*domain\.hpp:\d+"):
        summing(file)


def test_without_flag(tmp_path: Path, open_world: OpenWorld) -> None:
    strictly(open_world)
    flag = "    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID1);\n"
    file = planted(tmp_path, "allreduce_onephase_kernel.cpp", flag, "")
    with pytest.raises(RaceError, match="a flag from one to the other is missing"):
        summing(file)


def test_subtraction(tmp_path: Path, open_world: OpenWorld) -> None:
    open_world()
    file = planted(tmp_path, "allreduce_onephase_kernel.cpp", "TADD(sum, sum, other);", "TSUB(sum, sum, other);")
    got = summing(file)
    x = np.arange(256, dtype=np.float32)
    for i, row in enumerate(got):
        same_bits(row, (x + i) - (4 * x + 6 - (x + i)))


@pytest.mark.slow
def test_golden_of_a_driver_fails(tmp_path: Path) -> None:
    shutil.copytree(KERNELS, tmp_path / "kernels")
    file = tmp_path / "kernels" / "aiv" / "domain.hpp"
    file.write_text(file.read_text().replace("TADD(sum", "TSUB(sum"))
    outcome = launch(DRIVERS / "allreduce.py", "-p", "a2a3sim", "-d", "0-1", "--kernels", tmp_path)
    assert outcome.out.splitlines()[-1] == "[onephase] golden check FAILED"


def test_wait_that_nothing_ends(tmp_path: Path, open_world: OpenWorld) -> None:
    open_world()
    notify = "pto::comm::TNOTIFY(signal, 1, pto::comm::NotifyOp::AtomicAdd);"
    file = planted(tmp_path, "allreduce_onephase_kernel.cpp", notify, "(void)signal;")
    line = next(i for i, t in enumerate((file.parent / "domain.hpp").read_text().splitlines(), 1) if WAIT in t)
    said = rf'"allreduce_onephase_kernel #1" on rank 0 at domain\.hpp:{line} waits for the word .* to be GE 1; it is 0'
    with pytest.raises(DeadlockError, match=said):
        summing(file, 2)


def test_compilers_message(tmp_path: Path, open_world: OpenWorld) -> None:
    open_world()
    for name, text, said in (
        ("words", "Once upon a time\n", r"words_kernel\.cpp:1:\d+: error: "),
        ("missing", '#include <pto/pto-inst.hpp>\nextern "C" void kernel_entry(int64_t *) { TFANCY(1); }\n', "TFANCY"),
        ("header", '#include "pto/nothing.hpp"\n', "pto/nothing.hpp: No such file"),
        ("empty", "", 'has no function extern "C" void kernel_entry'),
    ):
        file = tmp_path / f"{name}_kernel.cpp"
        file.write_text(text)
        with working(1) as worker, pytest.raises(RuntimeError, match=said):
            worker.register(callable_of(file))


def test_time_is_that_of_the_fabric(drivers: Any, open_world: OpenWorld, capfd: Any) -> None:
    """Twice the same is the same time, to the picosecond."""
    open_world()
    given = inputs(4, 256)
    for _ in range(2):
        results(drivers("allreduce").allreduce, flags(4, mode="ring", kernels=CPP), given)
    first, second = (line for line in capfd.readouterr().out.splitlines() if " us" in line)
    assert first == second
