"""simpler's communication domains: who is in them, where their buffers are, and how long they live."""

from __future__ import annotations

import itertools
import struct
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from simpler_cases import called, compiled, domain, run, tensor, window, working

import torchemu as torch
from torchemu.frontends.simpler.orchestrator import Orchestrator
from torchemu.frontends.simpler.task_interface import CommBufferSpec, CommDomainHandle, DataType, TensorArgType


def buffers(*sizes: int) -> list[CommBufferSpec]:
    return [CommBufferSpec(f"b{i}", "float32", 1, size) for i, size in enumerate(sizes)]


def allocate(orch: Orchestrator, **changed: Any) -> CommDomainHandle:
    options: dict[str, Any] = {"name": "d", "workers": [0, 1], "window_size": 1024, "buffers": buffers(100, 200)}
    return orch.allocate_domain(**{**options, **changed})


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"workers": []}, "0 workers; a domain has 1 to 64"),
        ({"workers": [1, 1]}, r"workers \[1, 1\] names one twice"),
        ({"workers": [0, 2]}, r"workers \[0, 2\]; there are workers 0 to 1"),
        ({"workers": [-1]}, "there are workers 0 to 1"),
        ({"buffers": [*buffers(8), *buffers(8)]}, "names one twice"),
        ({"buffers": buffers(1000, 25)}, r"buffers of \[1000, 25\] bytes in a window of 1024"),
        ({"buffers": buffers(2000, -1000)}, "in a window of 1024"),
        ({"window_size": 0, "buffers": []}, "in a window of 0"),
    ],
)
def test_impossible_domains(changed: dict[str, Any], said: str, open_world: OpenWorld) -> None:
    open_world()
    with working() as worker:
        with pytest.raises(ValueError, match=said):
            run(worker, lambda orch: allocate(orch, **changed))
        assert run(worker, allocate).host_wall_us == 0  # nothing is left of the first try


def test_window_may_be_full(open_world: OpenWorld) -> None:
    open_world()
    with working() as worker:
        run(worker, lambda orch: allocate(orch, buffers=buffers(1000, 24, 0)))


def test_buffers_lie_one_after_another(open_world: OpenWorld) -> None:
    open_world()
    seen = []
    with working(3) as worker:
        run(worker, lambda orch: seen.extend(allocate(orch, workers=[2, 0], buffers=buffers(3, 5, 7)).contexts.items()))
    assert [worker for worker, _ in seen] == [2, 0]
    for place, (_, context) in enumerate(seen):
        base = context.local_window_base
        assert context.buffer_ptrs == {"b0": base, "b1": base + 3, "b2": base + 8}
        assert (context.name, context.domain_rank, context.domain_size) == ("d", place, 2)
        assert context.actual_window_size == 1024
    assert seen[0][1].device_ctx != seen[1][1].device_ctx


def test_who_is_no_member_finds_nothing(open_world: OpenWorld) -> None:
    open_world()

    def build(orch: Orchestrator) -> None:
        with allocate(orch, workers=[2, 0]) as handle:
            assert (handle[2].domain_rank, handle[0].domain_rank) == (0, 1)
            for other in (1, 3, -1):
                with pytest.raises(KeyError):
                    handle[other]

    with working(3) as worker:
        run(worker, build)


def test_life(open_world: OpenWorld) -> None:
    open_world()
    kept = []

    def build(orch: Orchestrator) -> None:
        with allocate(orch) as handle:
            kept.append(handle)
            assert worker.live_domains == {"d": handle}
            assert (handle.released, handle.freed) == (False, False)
            with pytest.raises(ValueError, match="a domain of this name is already live"):
                allocate(orch)
        handle.release()  # again
        assert (handle.released, handle.freed) == (True, False)
        assert worker.live_domains == {}
        with pytest.raises(RuntimeError, match="domain 'd' is already released"):
            handle[0]
        with pytest.raises(RuntimeError, match="already released"):
            handle[5]
        kept.append(allocate(orch))  # the name can be used again, and this one is forgotten

    with working() as worker:
        run(worker, build)
        assert worker.live_domains == {}
        run(worker, lambda orch: kept.append(allocate(orch)))
    assert [handle.freed for handle in kept] == [True] * 3
    assert [handle.released for handle in kept] == [True] * 3
    ids = [handle.allocation_id for handle in kept]
    assert ids == sorted(set(ids))
    assert repr(kept[0]) == "CommDomainHandle(name='d', workers=(0, 1), freed)"
    kept[1].release()  # nothing


def test_windows_are_zeroed(open_world: OpenWorld) -> None:
    open_world()
    got, ones = tensor(np.full(1024, 7)), tensor(np.ones(1024))

    def build(orch: Orchestrator) -> None:
        for context in domain(orch, [1, 0]):
            worker_id = 1 - context.domain_rank
            got.fill_(7)
            orch.copy_from(worker_id, got.data_ptr(), context.local_window_base, 4096)
            assert got.numpy().tobytes() == bytes(4096)
            orch.copy_to(worker_id, context.local_window_base, ones.data_ptr(), 4096)

    with working() as worker:
        for _ in range(2):
            run(worker, build)


def test_context_in_memory(open_world: OpenWorld) -> None:
    """1056 bytes: workSpace, workSpaceSize, rankId, rankNum, winSize, windowsIn[64], windowsOut[64]."""
    open_world()
    raw = tensor(np.zeros(1056 // 4))

    def build(orch: Orchestrator) -> None:
        seen = domain(orch, [2, 0, 1])
        for place, worker_id in enumerate([2, 0, 1]):
            orch.copy_from(worker_id, raw.data_ptr(), seen[place].device_ctx, 1056)
            about = struct.unpack("<QQIIQ64Q64Q", raw.numpy().tobytes())
            bases = [context.local_window_base for context in seen] + [0] * 61
            assert about == (0, 0, place, 3, 4096, *bases, *bases)

    with working(3) as worker:
        run(worker, build)


def test_overlapping_domains_have_windows_of_their_own(open_world: OpenWorld) -> None:
    open_world()

    def build(orch: Orchestrator) -> None:
        left, right = domain(orch, [0, 1], name="left"), domain(orch, [1, 2], name="right")
        spans = sorted((c.local_window_base, c.local_window_base + 4096) for c in (*left, *right))
        assert all(hi <= lo for (_, hi), (lo, _) in itertools.pairwise(spans))

    with working(3) as worker:
        run(worker, build)


def test_released_domain_lasts_until_its_tasks_have_ended(open_world: OpenWorld) -> None:
    open_world()
    inputs, out = [tensor(np.full(64, i + 1)) for i in range(2)], [tensor(np.zeros(64)) for _ in range(2)]

    def build(orch: Orchestrator) -> None:
        for i, context in enumerate(domain(orch, [0, 1])):  # released before the tasks are submitted
            args = called(
                (inputs[i], TensorArgType.INPUT),
                (out[i], TensorArgType.INOUT),
                (window(context), TensorArgType.INOUT),
                2,
                context.device_ctx,
            )
            orch.submit_next_level(cid, args, worker=i)

    with working() as worker:
        cid = worker.register(compiled("allreduce_kernel.cpp"))
        run(worker, build)
    for got in out:
        np.testing.assert_array_equal(got.numpy(), np.full(64, 3, np.float32))


def test_domain_of_an_earlier_run(open_world: OpenWorld) -> None:
    open_world()
    old, zeros = [], tensor(np.zeros(64))

    def build(orch: Orchestrator) -> None:
        x = (zeros, TensorArgType.INPUT)
        seen = domain(orch, [0])[0]
        orch.submit_next_level(cid, called(x, x, (window(seen), TensorArgType.INOUT), 1, old[0].device_ctx), worker=0)

    with working() as worker:
        cid = worker.register(compiled("allreduce_kernel.cpp"))
        run(worker, lambda orch: old.extend(domain(orch, [0])))
        with pytest.raises(ValueError, match="is that of no domain that is allocated"):
            run(worker, build)


def test_names_of_other_versions(open_world: OpenWorld) -> None:
    """A Worker without arguments, buffers that give tensors, release_domain, and names that have moved."""
    from torchemu.frontends.simpler import task_interface
    from torchemu.frontends.simpler.worker import Worker

    open_world()
    assert task_interface.ChipCallConfig is task_interface.CallConfig
    assert task_interface.make_tensor_arg(torch.zeros(3)).shapes == (3,)
    worker = Worker()
    worker.init()

    def build(orch: Orchestrator) -> None:
        specs = [CommBufferSpec("a", "float32", 4, 16), CommBufferSpec("b", "int32", 2, 8)]
        handle = orch.allocate_domain(name="d", workers=[0], window_size=64, buffers=specs)
        seen = handle[0]
        t = seen.buffers["b"].tensor()
        assert (t.data, t.shapes, t.dtype, t.child_memory) == (seen.buffer_ptrs["b"], (2,), DataType.INT32, True)
        orch.release_domain(handle)
        assert handle.released

    run(worker, build)
    worker.close()
