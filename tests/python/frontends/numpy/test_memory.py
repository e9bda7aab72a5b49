"""Who owns a tensor's memory, and for how long."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld

import torchemu as torch
from torchemu import runtime

dist = torch.distributed

SHARDS = torch.DPPolicy(pe="column_wise", num_cubes=1, num_pes=2)
PAIR = "defaults: {world_size: 2}\n"


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


@pytest.mark.parametrize("n", [0, 1, 3, 16, 1000, 70_000, 1 << 20])
def test_memory_that_is_used_again_is_zero(open_world: OpenWorld, n: int) -> None:
    open_world()
    for _ in range(4):
        some = [torch.zeros(n, dtype="u8") for _ in range(4)]
        for t in some:
            assert not t.numpy().any()
            t.fill_(255)
        del some, t
    view = torch.ones(n)[:]
    del view
    assert not torch.zeros(n).numpy().any()


def test_memory_is_freed_with_the_last_view(open_world: OpenWorld) -> None:
    open_world()
    nbytes = 32 << 20
    start = resident_bytes()
    for _ in range(60):
        t = torch.zeros(nbytes, dtype="u8")
        part = t[1:].view(-1)[::2]
        t.numpy()[::4096] = 1  # touches every page
        del t
        assert part.shape == (nbytes // 2,)
        del part
    assert resident_bytes() - start < 20 * nbytes


def test_many_small_tensors_at_once(open_world: OpenWorld) -> None:
    open_world()
    some = [torch.full((2,), i, dtype="i32") for i in range(20_000)]
    assert all(t.tolist() == [i, i] for i, t in enumerate(some))


def test_numpy_keeps_the_tensor(open_world: OpenWorld) -> None:
    open_world()
    t = torch.arange(100_000)
    array, part = t.numpy(), t[5:].numpy()
    gone = weakref.ref(t._storage._root)
    del t
    gc.collect()
    assert gone() is not None
    others = [torch.full((100_000,), -1, dtype="i64") for _ in range(8)]
    assert (array == np.arange(100_000)).all() and (part == np.arange(5, 100_000)).all()
    del array
    gc.collect()
    assert gone() is not None
    assert part[0] == 5 and len(others) == 8
    del part
    gc.collect()
    assert gone() is None


def test_from_numpy_keeps_the_array(open_world: OpenWorld) -> None:
    open_world()
    array = np.arange(1000)
    gone = weakref.ref(array)
    t = torch.from_numpy(array)
    part = t[10:].view(9, 110)[1]
    del array, t
    gc.collect()
    assert gone() is not None
    assert part.tolist() == list(range(120, 230))
    del part
    torch.zeros(1)  # at the latest then
    assert gone() is None


def test_numpy_outlives_its_world() -> None:
    with runtime.opened() as world:
        t = torch.arange(100_000)
        array = t.numpy()
    with runtime.opened():
        others = [torch.full((100_000,), -1, dtype="i64") for _ in range(8)]
        assert (array == np.arange(100_000)).all()
        with pytest.raises(RuntimeError, match=r"World is closed"):
            t.numpy()
        del t
        gc.collect()
        assert (array == np.arange(100_000)).all()
        assert len(others) == 8
    assert runtime.world._world is not world


def test_numpy_sees_the_result_of_a_later_collective(open_world: OpenWorld) -> None:
    open_world("default", PAIR)
    dist.init_process_group()
    t = torch.zeros(1, 6, dp=SHARDS)
    before = t.numpy()
    before[:] = [[1, 2, 3, 10, 20, 30]]
    for factor in (1, 2, 4):
        dist.all_reduce(t)
        after = t.numpy()
        assert before.tolist() == after.tolist() == [[11 * factor, 22 * factor, 33 * factor] * 2]
        assert np.shares_memory(before, after)


def test_numpy_sees_the_result_where_results_are_shared(open_world: OpenWorld) -> None:
    """The ranks' results may be one memory until somebody writes; NumPy's view of one must not become another's."""
    open_world("sips8")
    dist.init_process_group()
    seen: dict[int, Any] = {}

    def rank(r: int) -> None:
        t = torch.full((1000,), r, dtype="i32")
        early = t.numpy() if r % 2 else None
        dist.all_reduce(t)
        late = t.numpy()
        if early is not None:
            assert np.shares_memory(early, late)
        assert (late == 28).all()
        late[0] = r  # must not be seen by other ranks
        dist.all_reduce(torch.zeros(1))
        assert t[0].item() == r and (t[1:] == 28).numpy().all()
        seen[r] = late

    torch.multiprocessing.spawn(rank, nprocs=8)
    assert [a[0] for _, a in sorted(seen.items())] == list(range(8))


def test_writing_a_tensor_does_not_change_a_sharer(open_world: OpenWorld) -> None:
    open_world("sips2")
    dist.init_process_group()

    def rank(r: int) -> None:
        t = torch.ones(50_000)
        dist.all_reduce(t)
        t.wait()
        if r == 0:
            t.fill_(7)
        dist.all_reduce(torch.zeros(1))
        assert (t == (2 if r else 7)).numpy().all()

    torch.multiprocessing.spawn(rank, nprocs=2)


@pytest.mark.parametrize("view", [False, True])
def test_numpys_memory_lives_while_a_collective_needs_it(open_world: OpenWorld, view: bool) -> None:
    """Rank 0 forgets its array at once; the collective reads and writes it when rank 1 joins."""
    open_world("sips2")
    dist.init_process_group()
    freed: list[Any] = []

    def rank(r: int) -> None:
        if r == 0:
            array = np.full(100_000, 3.0)
            freed.append(weakref.ref(array))
            t = torch.from_numpy(array)
            dist.all_reduce(t[:] if view else t)
            t.copy_(torch.ones(1))  # queued behind
            del array, t
            gc.collect()
            dist.all_reduce(torch.zeros(1))
            assert freed[0]() is not None
            return
        assert freed[0]() is not None
        t = torch.full((100_000,), 4.0, dtype="f64")
        dist.all_reduce(t)
        dist.all_reduce(torch.zeros(1))
        assert (t == 7).numpy().all()

    torch.multiprocessing.spawn(rank, nprocs=2)
    assert freed[0]() is None  # it is taken back when the ranks have ended, at the latest


def test_numpys_memory_goes_back_during_a_run(open_world: OpenWorld) -> None:
    """The host runs ahead of the collectives: their memory waits for them, but not for the end of the run."""
    open_world("sips2")
    dist.init_process_group()

    def rank(r: int) -> None:
        arrays = []
        for i in range(400):
            array = np.full(2048, r, np.float32)
            arrays.append(weakref.ref(array))
            t = torch.from_numpy(array)
            dist.all_reduce(t)
            if i % 4 == 3:
                t.wait()
            del array, t
        assert sum(array() is not None for array in arrays) < 200

    torch.multiprocessing.spawn(rank, nprocs=2)


def test_go_memory_lives_while_a_collective_needs_it(open_world: OpenWorld) -> None:
    open_world("sips2")
    dist.init_process_group()

    def rank(r: int) -> None:
        if r == 0:
            for _ in range(3):
                dist.all_reduce(torch.full((100_000,), 3.0))  # forgotten at once
            gc.collect()
            _ = [torch.full((100_000,), -1.0) for _ in range(8)]
            return
        for _ in range(3):
            t = torch.full((100_000,), 4.0)
            dist.all_reduce(t)
            assert (t == 7).numpy().all()

    torch.multiprocessing.spawn(rank, nprocs=2)


def test_tensors_may_be_collected_on_another_thread(open_world: OpenWorld) -> None:
    open_world()
    some: list[Any] = [torch.ones(10), torch.from_numpy(np.ones(10)), torch.ones(10).numpy()]
    thread = threading.Thread(target=some.clear)
    thread.start()
    thread.join()
    assert some == []
    assert torch.ones(2).tolist() == [1, 1]


def test_a_closed_world_forgets_its_numpy_memory() -> None:
    array = np.zeros(4)
    gone = weakref.ref(array)
    with runtime.opened("sips2"):
        dist.init_process_group()
        dist.all_reduce(torch.from_numpy(array))  # never completes
        del array
        gc.collect()
        assert gone() is not None
    gc.collect()
    assert gone() is None


def own_dictionary(instance: object) -> bool:
    """Reports whether the attributes of an instance are in a dictionary, before this one asks for it."""
    known = gc.get_referents(instance)
    attributes = vars(instance)
    return any(found is attributes for found in known)


def test_tensors_and_storages_keep_their_attributes_in_themselves(open_world: OpenWorld) -> None:
    open_world()
    made: list[Any] = []

    def worker(rank: int) -> None:
        first = [torch.ones(4) for _ in range(100)]  # those that no operation but one knows
        leaf = torch.ones(4, 6, name="leaf", requires_grad=True)
        part, *_ = leaf.split(2)
        product = leaf @ leaf.t()
        product.sum().backward()
        reduced = torch.ones(70_000)
        dist.all_reduce(reduced)
        later = reduced[::2] * 2
        made.extend([*first, leaf, leaf.grad, leaf.detach(), part, product, reduced, later, later.view(-1, 8).fill_(3)])
        dist.barrier()

    torch.distributed.init_process_group(backend="ahbm")
    torch.multiprocessing.spawn(worker, nprocs=4)
    assert not [t for t in made if own_dictionary(t)]
    assert not [storage for storage in {t._storage for t in made} if own_dictionary(storage)]
