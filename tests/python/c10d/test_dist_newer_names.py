"""Tests of what PyTorch has beside collectives and groups: names of newer versions, methods of backends."""

from __future__ import annotations

from datetime import timedelta

import pytest
from conftest import OpenWorld
from own_backends import registered, t
from ranks import on_ranks

import torchemu as torch
import torchemu.distributed as dist
from torchemu._C import _distributed_c10d as c10d

N = 3


class TestCanonicalNames:
    """Newer versions of PyTorch call the methods and functions so."""

    def test_methods(self, open_world: OpenWorld) -> None:
        open_world()

        def main(rank: int) -> None:
            dist.init_process_group("gloo")
            group = dist.group.WORLD
            assert group is not None
            own, whole = torch.full((2,), float(rank), device="cpu"), t(2 * N)
            group.all_gather_single(whole, own).wait()
            assert whole.tolist() == [0, 0, 1, 1, 2, 2]
            total = t(2)
            group.reduce_scatter_single(total, whole).wait()
            assert total.tolist() == [N * rank] * 2
            turned = t(N)
            group.all_to_all_single(turned, torch.arange(float(N), device="cpu") + 10 * rank, [], []).wait()
            assert turned.tolist() == [10 * r + rank for r in range(N)]
            gathered = torch.zeros(2 * N, device="cpu")
            options = dist.GatherOptions()
            options.rootRank = 1
            group.gather_single(gathered, own, options).wait()
            assert gathered.tolist() == ([0, 0, 1, 1, 2, 2] if rank == 1 else [0] * 2 * N)
            both = [t(N), t(2 * N)]
            group.all_gather_single_coalesced(both, [own[:1], own]).wait()
            assert [x.tolist() for x in both] == [[0, 1, 2], [0, 0, 1, 1, 2, 2]]
            parts = [t(1), t(2)]
            group.reduce_scatter_single_coalesced(parts, both).wait()
            assert [x.tolist() for x in parts] == [[N * rank], [N * rank] * 2]

        on_ranks(N, main)

    def test_the_implementation_of_a_backend(self, open_world: OpenWorld) -> None:
        open_world()

        def main(rank: int) -> None:
            registered("own", lambda store, rank, size, timeout: c10d.Backend(rank, size), devices=["cuda"])
            dist.init_process_group("cpu:gloo,cuda:own")
            group = dist.group.WORLD
            assert group is not None
            with pytest.raises(ValueError, match="has multiple backend implementations; pass the device argument"):
                dist.get_backend_impl()
            assert type(dist.get_backend_impl(device="cuda")) is c10d.Backend
            assert isinstance(dist.get_backend_impl("0", "cpu"), dist.ProcessGroupGloo)
            plain = dist.new_group(backend="gloo")
            assert dist.get_backend_impl(plain) is plain is plain.get_backend("cpu")

        on_ranks(2, main)


@pytest.mark.parametrize("prefix", [False, True])
def test_barrier_of_a_store(open_world: OpenWorld, prefix: bool) -> None:
    open_world()
    shared = dist.HashStore()
    arrived: list[int] = []

    def main(rank: int) -> None:
        store: dist.Store = dist.PrefixStore("p", shared) if prefix else shared
        arrived.append(rank)
        store.barrier("first", N)
        assert len(arrived) == N
        store.barrier("alone", 1)
        if rank == 0:
            with pytest.raises(dist.DistStoreError, match="Wait timeout"):
                store.barrier("second", 2, timedelta(milliseconds=5))
        with pytest.raises(ValueError, match="world_size must be positive, not 0"):
            store.barrier("third", 0)

    on_ranks(N, main)


def test_works_tell_how_they_ended(open_world: OpenWorld) -> None:
    open_world()

    def main(rank: int) -> None:
        dist.init_process_group("gloo")
        work = dist.all_reduce(t(1), async_op=True)
        assert work is not None
        assert work.get_future_result().wait() == 0
        assert work.boxed() is work is work.unbox()

    on_ranks(2, main)


def test_the_backend_that_is_fake_is_not_here(open_world: OpenWorld) -> None:
    open_world()

    def main(rank: int) -> None:
        with pytest.raises(NotImplementedError, match="has no backend fake: run with --torch real"):
            dist.init_process_group("fake")

    on_ranks(2, main)
