"""simpler's tasks: what follows what, on which worker, and what is raised when something fails."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from simpler_cases import ADD, IN, INOUT, NO_DEP, OUT, RUNTIME, called, domain, run, tensor, window, working, written

import torchemu as torch
from torchemu.errors import RaceError
from torchemu.frontends.simpler.orchestrator import Orchestrator
from torchemu.frontends.simpler.task_interface import DataType, TaskArgs, TensorArgType
from torchemu.frontends.simpler.worker import RunTiming, Worker
from torchemu.runtime import Strictness

Build = Callable[[Orchestrator], object]

SIGNAL = """
    from torchemu.pto import *

    def kernel_entry(args):
        '''Bumps the first word of a peer's window.'''
        ctx = CommContext(args[2])
        TNOTIFY(Signal(CommRemotePtr(ctx, args[0].ptr().cast(int32), 1 - ctx.rankId)), 1, NotifyOp.AtomicAdd)
"""
WAIT = """
    from torchemu.pto import *

    def kernel_entry(args):
        '''Waits until the first word of the own window is 1.'''
        TWAIT(Signal(args[0].ptr().cast(int32)), 1, WaitCmp.GE)
"""


def chain(reads: TensorArgType, writes: TensorArgType, tmp_path: Path, offset: int = 0) -> np.ndarray:
    """b = a + a on worker 0, and c = b + b on worker 1; with an offset, that is another address than b's."""
    a, b, c = tensor(np.arange(1, 65)), tensor(np.zeros(64)), tensor(np.zeros(64 - offset))

    def build(orch: Orchestrator) -> None:
        orch.submit_next_level(cid, called((a, IN), (a, IN), (b, writes)), worker=0)
        part = b[offset:]
        orch.submit_next_level(cid, called((part, reads), (part, reads), (c, OUT)), worker=1)

    with working() as worker:
        cid = worker.register(written(tmp_path, ADD))
        run(worker, build)
    return c.numpy()


@pytest.mark.parametrize("reads", [IN, INOUT])
@pytest.mark.parametrize("writes", [OUT, INOUT, TensorArgType.OUTPUT])
def test_reader_follows_maker(
    reads: TensorArgType, writes: TensorArgType, tmp_path: Path, open_world: OpenWorld
) -> None:
    open_world()
    np.testing.assert_array_equal(chain(reads, writes, tmp_path), 4 * np.arange(1, 65))


@pytest.mark.parametrize(
    ("reads", "writes", "offset"), [(NO_DEP, OUT, 0), (IN, NO_DEP, 0), (IN, IN, 0), (OUT, OUT, 0), (IN, OUT, 1)]
)
def test_others_do_not_follow(
    reads: TensorArgType, writes: TensorArgType, offset: int, tmp_path: Path, open_world: OpenWorld
) -> None:
    """They begin at once, and so read what is there before."""
    open_world()
    np.testing.assert_array_equal(chain(reads, writes, tmp_path, offset), np.zeros(64 - offset))


@pytest.mark.parametrize(("reads", "writes"), [(IN, OUT), (NO_DEP, OUT), (IN, NO_DEP), (OUT, OUT)])
def test_tasks_of_two_chips_that_no_tags_order_race(
    reads: TensorArgType, writes: TensorArgType, tmp_path: Path, open_world: OpenWorld
) -> None:
    open_world().strictness = Strictness(check=True)
    if (reads, writes) == (IN, OUT):
        np.testing.assert_array_equal(chain(reads, writes, tmp_path), 4 * np.arange(1, 65))
        return
    with pytest.raises(RaceError) as caught:
        chain(reads, writes, tmp_path)
    said = str(caught.value)
    for part in ("store by kernel", "on rank 0 at own_kernel.py", "load by kernel", "on rank 1 at own_kernel.py"):
        assert part in said
    assert "one has to follow the other one, by the tags with which they are given these bytes" in said


@pytest.mark.parametrize("parts", [[slice(0, 32), slice(32, 64)], [slice(0, 64)]], ids=["parts", "whole"])
def test_a_reader_of_a_whole_follows_only_the_maker_of_its_first_part(
    parts: list[slice], tmp_path: Path, open_world: OpenWorld
) -> None:
    open_world().strictness = Strictness(check=True)
    one, c, sums = tensor(np.ones(32)), torch.zeros(64), torch.zeros(64)

    def build(orch: Orchestrator) -> None:
        for i, part in enumerate((slice(0, 32), slice(32, 64))):
            orch.submit_next_level(cid, called((one, IN), (one, IN), (c[part], OUT)), worker=i)
        for part in parts:
            orch.submit_next_level(cid, called((c[part], IN), (c[part], IN), (sums[part], OUT)), worker=0)

    with working() as worker:
        cid = worker.register(written(tmp_path, ADD))
        races = pytest.raises(RaceError, match="one has to follow the other one")
        with contextlib.nullcontext() if len(parts) == 2 else races:
            run(worker, build)


def test_makers_are_the_last_ones(tmp_path: Path, open_world: OpenWorld) -> None:
    """The second b = … is what c = b + b reads; and the arguments of a task are those at its submission."""
    open_world()
    one, ten = tensor(np.ones(8)), tensor(np.full(8, 10))
    b, c = tensor(np.zeros(8)), tensor(np.zeros(8))

    def build(orch: Orchestrator) -> None:
        for x in (one, ten):
            args = called((x, IN), (x, IN), (b, INOUT))
            orch.submit_next_level(cid, args, worker=0)
            args.add_scalar(3)
        orch.submit_next_level(cid, called((b, IN), (b, IN), (c, OUT)), worker=1)

    with working() as worker:
        cid = worker.register(written(tmp_path, ADD))
        run(worker, build)
    np.testing.assert_array_equal(c.numpy(), np.full(8, 40))


@pytest.mark.parametrize("seed", range(5))
def test_any_graph_gives_what_its_tasks_do_in_turn(seed: int, tmp_path: Path, open_world: OpenWorld) -> None:
    """Additions on chips, on groups of chips and on the host, of tensors that are made once each."""
    print(f"seed {seed}")
    open_world().strictness = Strictness(check=True)
    random = np.random.default_rng(seed)
    values = [random.standard_normal(8).astype(np.float32) for _ in range(4)]
    tensors = [tensor(v) for v in values]

    def task() -> TaskArgs:
        """Adds two of the tensors that there are."""
        left, right = random.integers(0, len(tensors), 2)
        values.append(values[left] + values[right])
        tensors.append(tensor(np.full(8, np.nan)))
        return called((tensors[left], IN), (tensors[right], IN), (tensors[-1], OUT))

    def on_host(args: TaskArgs) -> None:
        at = {t.data_ptr(): t for t in tensors}
        left, right, out = (at[args.tensor(i).data] for i in range(3))
        out.copy_(left + right)

    def build(orch: Orchestrator) -> None:
        for kind in random.integers(0, 4, 60):
            if kind == 0:
                orch.submit_sub(sub, task())
            elif kind == 1:
                known = len(tensors)
                pair = [task(), task()]
                if any(t.tensor(i).data == tensors[known].data_ptr() for t in pair[1:] for i in (0, 1)):
                    for single in pair:  # one reads what the other makes
                        orch.submit_next_level(cid, single)
                else:
                    orch.submit_next_level_group(cid, pair, workers=[int(w) for w in random.permutation(4)[:2]])
            else:
                orch.submit_next_level(cid, task(), worker=int(random.integers(-1, 4)))

    with working(4, sub_workers=1) as worker:
        cid, sub = worker.register(written(tmp_path, ADD)), worker.register(on_host)
        run(worker, build)
    np.testing.assert_array_equal(np.stack([t.numpy() for t in tensors]), np.stack(values))


# -- workers


def timed(tmp_path: Path, *workers: int, chips: int = 2) -> float:
    """How long additions on some workers take, which have nothing to do with each other."""
    a, out = tensor(np.ones(64)), [tensor(np.zeros(64)) for _ in workers]

    def build(orch: Orchestrator) -> None:
        for worker_id, c in zip(workers, out, strict=True):
            orch.submit_next_level(cid, called((a, IN), (a, IN), (c, OUT)), worker=worker_id)

    with working(chips) as worker:
        cid = worker.register(written(tmp_path, ADD))
        timing = run(worker, build)
    assert timing.device_wall_us == 0
    for c in out:
        np.testing.assert_array_equal(c.numpy(), np.full(64, 2))
    return timing.host_wall_us


def test_worker_does_one_task_at_a_time(tmp_path: Path, open_world: OpenWorld) -> None:
    open_world()
    alone = timed(tmp_path, 0)
    assert alone > 0
    assert timed(tmp_path, 0, 1) == alone
    assert timed(tmp_path, 0, 0) == pytest.approx(2 * alone, abs=1e-6)
    assert timed(tmp_path, 1, 0, 1, 1) == pytest.approx(3 * alone, abs=1e-6)


def test_any_worker_is_the_first_that_is_free(tmp_path: Path, open_world: OpenWorld) -> None:
    open_world()
    alone = timed(tmp_path, 0)
    assert timed(tmp_path, -1, -1) == alone
    assert timed(tmp_path, 0, -1) == alone
    assert timed(tmp_path, -1, -1, -1, chips=3) == alone
    assert timed(tmp_path, -1, -1, -1) == pytest.approx(2 * alone, abs=1e-6)


def test_task_that_has_to_wait_holds_nobody_up(tmp_path: Path, open_world: OpenWorld) -> None:
    """Task 2 on worker 0 follows task 1 on worker 1, which waits for the signal of task 3 on worker 0."""
    open_world()
    flag = tensor(np.zeros(1))

    def build(orch: Orchestrator) -> None:
        left, right = domain(orch, [0, 1])
        orch.submit_next_level(wait, called((window(right), NO_DEP), (flag, OUT)), worker=1)
        orch.submit_next_level(add, called((flag, IN), (flag, IN), (flag, OUT)), worker=0)
        orch.submit_next_level(signal, called((window(left), NO_DEP), 0, left.device_ctx), worker=0)

    with working() as worker:
        wait, add, signal = (
            worker.register(written(tmp_path, text, f"{name}_kernel"))
            for name, text in (("wait", WAIT), ("add", ADD), ("signal", SIGNAL))
        )
        run(worker, build)


def test_group_runs_on_all_its_workers(tmp_path: Path, open_world: OpenWorld) -> None:
    open_world()
    x, out = [tensor(np.full(4, i)) for i in range(3)], [tensor(np.zeros(4)) for _ in range(3)]
    total = tensor(np.zeros(4))

    def build(orch: Orchestrator) -> None:
        order = [2, 0, 1]
        args = [called((x[w], IN), (x[w], IN), (out[w], OUT)) for w in order]
        orch.submit_next_level_group(cid, args, None, workers=order)
        orch.submit_next_level(cid, called((out[1], IN), (out[2], IN), (total, OUT)), worker=0)

    with working(3) as worker:
        cid = worker.register(written(tmp_path, ADD))
        run(worker, build)
    np.testing.assert_array_equal(np.stack([t.numpy() for t in out]), 2 * np.arange(3)[:, None] * np.ones(4))
    np.testing.assert_array_equal(total.numpy(), np.full(4, 6))


@pytest.mark.parametrize(
    ("count", "workers"), [(0, []), (1, [0, 1]), (2, [0]), (2, [0, 0]), (1, [2]), (1, [-1]), (2, [0, 7])]
)
def test_impossible_groups(count: int, workers: list[int], tmp_path: Path, open_world: OpenWorld) -> None:
    open_world()
    with working() as worker:
        cid = worker.register(written(tmp_path, ADD))
        with pytest.raises(ValueError, match="worker"):
            run(worker, lambda orch: orch.submit_next_level_group(cid, [TaskArgs()] * count, workers=workers))


# -- SubWorkers


def test_host_functions_are_tasks_too(tmp_path: Path, open_world: OpenWorld) -> None:
    """worker 0: b = a + a; the host: b *= 5; worker 1: c = b + b."""
    open_world()
    a, b, c = tensor(np.arange(8)), tensor(np.zeros(8)), tensor(np.zeros(8))
    seen = []

    def times_five(args: TaskArgs) -> None:
        assert args.tensor(0).data == b.data_ptr()
        seen.append(b.numpy().copy())
        b.mul_(5)

    def build(orch: Orchestrator) -> None:
        orch.submit_next_level(cid, called((a, IN), (a, IN), (b, OUT)), worker=0)
        orch.submit_sub(sub, called((b, INOUT)))
        orch.submit_next_level(cid, called((b, IN), (b, IN), (c, OUT)), worker=1)
        assert not seen  # nothing begins before build returns

    with working(sub_workers=1) as worker:
        sub, cid = worker.register(times_five), worker.register(written(tmp_path, ADD))
        run(worker, build)
    np.testing.assert_array_equal(seen, [2 * np.arange(8)])
    np.testing.assert_array_equal(c.numpy(), 20 * np.arange(8))


def test_group_of_host_functions(open_world: OpenWorld) -> None:
    open_world()
    seen: list[int] = []
    with working(sub_workers=2) as worker:
        sub = worker.register(lambda args: seen.append(args.scalar(0)))
        run(worker, lambda orch: orch.submit_sub_group(sub, [called(1), called(2)]))
        with pytest.raises(ValueError, match="3 calls at once; the Worker has num_sub_workers=2"):
            run(worker, lambda orch: orch.submit_sub_group(sub, [TaskArgs()] * 3))
    assert seen == [1, 2]


def test_no_sub_workers(open_world: OpenWorld) -> None:
    open_world()
    with working() as worker:
        sub = worker.register(lambda args: None)
        with pytest.raises(ValueError, match="num_sub_workers=0"):
            run(worker, lambda orch: orch.submit_sub(sub))


# -- memory


def test_malloc_and_alloc(tmp_path: Path, open_world: OpenWorld) -> None:
    """Through memory of a chip, which outlasts runs, and through memory of the run."""
    open_world()
    x, y = tensor(np.arange(16)), tensor(np.zeros(16))
    kept = []

    def first(orch: Orchestrator) -> None:
        kept.append(orch.malloc(1, 64))
        orch.copy_to(1, kept[0], x.data_ptr(), 64)

    def second(orch: Orchestrator) -> None:
        with orch.scope():
            between = orch.alloc((16,), DataType.FLOAT32)
        there = between.make(kept[0], (16,), DataType.FLOAT32, child_memory=True)
        orch.submit_next_level(cid, called((there, IN), (there, IN), (between, OUT)), worker=1)
        orch.submit_next_level(cid, called((between, IN), (between, IN), (y, OUT)), worker=0)

    def third(orch: Orchestrator) -> None:
        orch.free(1, kept[0])
        for worker_id, address in ((1, kept[0]), (0, kept[0]), (1, 0)):
            with pytest.raises(ValueError, match="has nothing of malloc's at"):
                orch.free(worker_id, address)
            with pytest.raises(ValueError, match="are not in one window, or malloc's memory, of worker"):
                orch.copy_from(worker_id, x.data_ptr(), address, 64)

    with working() as worker:
        cid = worker.register(written(tmp_path, ADD))
        for build in (first, second, third):
            run(worker, build)
    np.testing.assert_array_equal(y.numpy(), 4 * np.arange(16))


@pytest.mark.parametrize("size", [0, -1, 2**62])
def test_malloc_of_impossible_size(size: int, open_world: OpenWorld) -> None:
    open_world()
    with working() as worker, pytest.raises(ValueError, match="bytes"):
        run(worker, lambda orch: orch.malloc(0, size))


@pytest.mark.parametrize(("more", "said"), [(1, "the one there has 64 bytes"), (2**40, "bytes from there on")])
def test_copy_beyond_a_tensor(more: int, said: str, open_world: OpenWorld) -> None:
    open_world()
    x = tensor(np.zeros(16))

    def build(orch: Orchestrator) -> None:
        orch.copy_to(0, orch.malloc(0, 128), x.data_ptr(), 64 + more)

    with working() as worker, pytest.raises(ValueError, match=said):
        run(worker, build)


def test_wrong_addresses(tmp_path: Path, open_world: OpenWorld) -> None:
    open_world()
    x = tensor(np.zeros(16))
    with working() as worker, pytest.raises(ValueError, match=r"no tensor's data_ptr\(\) is there"):
        run(worker, lambda orch: orch.copy_to(0, orch.malloc(0, 64), 8, 64))

    def of_the_other(orch: Orchestrator) -> None:
        seen = domain(orch, [0, 1])
        orch.submit_next_level(cid, called((x, IN), (x, IN), (window(seen[1]), OUT)), worker=0)

    with working() as worker:
        cid = worker.register(written(tmp_path, ADD))
        with pytest.raises(ValueError, match="are not in one window, or malloc's memory, of worker 0"):
            run(worker, of_the_other)


# -- failures


def test_callback_fails(tmp_path: Path, open_world: OpenWorld) -> None:
    """The tasks that it had submitted run all the same, domains are freed, and the Worker can go on."""
    open_world()
    x, y = tensor(np.ones(4)), tensor(np.zeros(4))
    kept = []

    def build(orch: Orchestrator) -> None:
        orch.submit_next_level(cid, called((x, IN), (x, IN), (y, OUT)), worker=0)
        kept.append(orch.allocate_domain(name="d", workers=[0], window_size=64))
        raise KeyError("mine")

    with working() as worker:
        cid = worker.register(written(tmp_path, ADD))
        with pytest.raises(KeyError, match="mine"):
            run(worker, build)
        assert kept[0].freed
        np.testing.assert_array_equal(y.numpy(), np.full(4, 2))
        run(worker, lambda orch: orch.submit_next_level(cid, called((y, IN), (y, IN), (x, OUT)), worker=1))
    np.testing.assert_array_equal(x.numpy(), np.full(4, 4))


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_program_is_ended(kind: type[BaseException], tmp_path: Path, open_world: OpenWorld) -> None:
    """In orch_fn: nothing that it has submitted runs. Or in a kernel."""
    open_world()
    x, y = tensor(np.ones(4)), tensor(np.zeros(4))

    def build(orch: Orchestrator) -> None:
        orch.submit_next_level(cid, called((x, IN), (x, IN), (y, OUT)), worker=0)
        raise kind

    with working() as worker:
        cid = worker.register(written(tmp_path, ADD))
        with pytest.raises(kind):
            run(worker, build)
    np.testing.assert_array_equal(y.numpy(), np.zeros(4))
    with working() as worker:
        cid = worker.register(written(tmp_path, f"def kernel_entry(args):\n    raise {kind.__name__}", "ends_kernel"))
        with pytest.raises(kind):
            run(worker, lambda orch: orch.submit_next_level(cid, TaskArgs()))


FAILING = """
    def kernel_entry(args):
        if args[0] == 1:
            raise ZeroDivisionError("a kernel's")
"""


def test_kernel_fails(tmp_path: Path, open_world: OpenWorld) -> None:
    open_world()

    def build(orch: Orchestrator) -> None:
        for i in range(3):
            orch.submit_next_level(cid, called(i), worker=i)

    with working(3) as worker:
        cid = worker.register(written(tmp_path, FAILING))
        with pytest.raises(ZeroDivisionError, match="a kernel's") as caught:
            run(worker, build)
        assert caught.value.__notes__ == ['in kernel "own_kernel #2" on rank 1']
        assert Path(str(caught.traceback[-1].path)).name == "own_kernel.py"
        with pytest.raises(RuntimeError, match="an earlier run of this Worker has failed"):
            run(worker, lambda orch: None)


def test_host_function_fails(open_world: OpenWorld) -> None:
    open_world()

    def fails(args: TaskArgs) -> None:
        raise LookupError("a function's")

    with working(sub_workers=1) as worker:
        sub = worker.register(fails)
        with pytest.raises(LookupError, match="a function's") as caught:
            run(worker, lambda orch: orch.submit_sub(sub))
        assert caught.value.__notes__ == ['in task "fails #1" on a SubWorker']


def test_wrong_calls(tmp_path: Path, open_world: OpenWorld) -> None:
    open_world()
    with working(sub_workers=1) as worker:
        chip = written(tmp_path, ADD)
        cid, sub = worker.register(chip), worker.register(lambda args: None)
        bad: Any = [
            (KeyError, "no ChipCallable is registered as 1", lambda orch: orch.submit_next_level(sub, TaskArgs())),
            (KeyError, "no Python function is registered as 0", lambda orch: orch.submit_sub(cid, TaskArgs())),
            (KeyError, "registered as 9", lambda orch: orch.submit_next_level(9, TaskArgs(), worker=0)),
            (TypeError, "called with TaskArgs, not list", lambda orch: orch.submit_next_level(cid, [], worker=0)),
            (ValueError, "there are workers 0 to 1", lambda orch: orch.submit_next_level(cid, TaskArgs(), worker=2)),
            (ValueError, "there are workers 0 to 1", lambda orch: orch.malloc(-1, 64)),
        ]
        for kind, said, build in bad:
            with pytest.raises(kind, match=said):
                run(worker, build)
        with pytest.raises(TypeError, match="a ChipCallable or a Python function, not int"):
            worker.register(3)  # type: ignore[arg-type]


# -- a Worker's life


def test_calls_out_of_order(open_world: OpenWorld) -> None:
    open_world()
    worker = Worker(platform="a2a3sim", runtime=RUNTIME, device_ids=[0])
    worker.close()
    with pytest.raises(RuntimeError, match=r"call init\(\) first"):
        run(worker, lambda orch: None)
    worker.init()
    with pytest.raises(RuntimeError, match="already"):
        worker.init()
    with pytest.raises(RuntimeError, match="a run is going on"):
        run(worker, lambda orch: run(worker, lambda inner: None))
    with pytest.raises(RuntimeError, match="close: a run is going on"):
        run(worker, lambda orch: worker.close())
    assert run(worker, lambda orch: None) == RunTiming(0.0, 0.0)
    worker.close()
    worker.close()
    assert worker.live_domains == {}
    with pytest.raises(RuntimeError, match=r"call init\(\) first"):
        run(worker, lambda orch: None)


def test_orchestrator_ends_with_its_function(open_world: OpenWorld) -> None:
    open_world()
    kept = []
    with working(sub_workers=1) as worker:
        late = worker.register(lambda args: kept[0].malloc(0, 64))
        with pytest.raises(RuntimeError, match="good only inside the function"):
            run(worker, lambda orch: (kept.append(orch), orch.submit_sub(late)))
    for use in (
        lambda: kept[0].submit_sub(late),
        lambda: kept[0].allocate_domain(name="d", workers=[0], window_size=8),
    ):
        with pytest.raises(RuntimeError, match="good only inside the function"):
            use()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"level": 4}, "level 4"),
        ({"platform": "a100"}, "want one of a2a3, a2a3sim, a5, a5sim"),
        ({"runtime": "mine"}, "want one of aicpu_build_graph"),
        ({"device_ids": []}, "want different numbers of SIPs"),
        ({"device_ids": [1, 1]}, "want different numbers"),
        ({"device_ids": [-1]}, "want different numbers"),
        ({"num_sub_workers": -1}, "is negative"),
    ],
)
def test_impossible_workers(changed: dict[str, Any], said: str, open_world: OpenWorld) -> None:
    open_world()
    options: dict[str, Any] = {"level": 3, "platform": "a2a3sim", "runtime": RUNTIME, "device_ids": [0], "build": True}
    with pytest.raises(ValueError, match=said):
        Worker(**{**options, **changed})


def test_device_ids_are_sips(tmp_path: Path, open_world: OpenWorld) -> None:
    """Chips that are further apart are further apart: SIPs 0 and 2 of a ring of four, or neighbours."""
    open_world()
    times = []
    for devices in ([0, 1], [3, 0], [0, 2]):
        worker = Worker(platform="a2a3sim", runtime=RUNTIME, device_ids=devices)
        signal, wait = (worker.register(written(tmp_path, t, f"k{i}_kernel")) for i, t in enumerate((SIGNAL, WAIT)))
        worker.init()

        def build(orch: Orchestrator, signal: int = signal, wait: int = wait) -> None:
            left, right = domain(orch, [0, 1])
            orch.submit_next_level(signal, called((window(left), IN), 0, left.device_ctx), worker=0)
            orch.submit_next_level(wait, called((window(right), IN)), worker=1)

        times.append(run(worker, build).host_wall_us)
        worker.close()
    assert times[0] == times[1] < times[2]


def test_more_chips_than_a_preset_has(open_world: OpenWorld) -> None:
    open_world()
    with working(16) as worker:
        run(worker, lambda orch: domain(orch, list(range(16))))


def test_more_chips_than_a_file_has(open_world: OpenWorld) -> None:
    open_world("name: three\nsystem: {sips: {count: 3}}\n")
    with working(3) as worker:
        run(worker, lambda orch: domain(orch, [2, 1, 0]))
    with pytest.raises(ValueError, match="has 1 node of 3 SIPs, which does not fit"), working(4):
        pass


def test_run_passes_arguments_on(open_world: OpenWorld) -> None:
    open_world()
    got: list[Any] = []
    with working() as worker:
        worker.run(lambda orch, args, config: got.extend((args, config)), args="a", config=torch)  # type: ignore
    assert got == ["a", torch]
