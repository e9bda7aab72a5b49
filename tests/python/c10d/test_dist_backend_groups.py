"""Backends that a program registers: what their creators are called with, and the groups that they make.

What is expected here was seen in PyTorch 2.11, or, for subclasses of Backend, which cannot be made there, in 2.15.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from own_backends import METHODS, Done, Noting, registered, t
from ranks import failures, on_ranks

import torchemu as torch
import torchemu.distributed as dist
import torchemu.multiprocessing as mp
from torchemu._C import _distributed_c10d as c10d

N = 3


class Loopback(dist.ProcessGroup):
    """Leaves all to a group over gloo, as a library does that replaces it now and then."""

    def __init__(self, store: dist.Store, rank: int, size: int) -> None:
        super().__init__(rank, size)
        self.inner = dist.ProcessGroup(store, rank, size)
        gloo = dist.ProcessGroupGloo(store, rank, size, timedelta(seconds=9))
        for kind in ("cpu", "cuda"):
            self.inner._register_backend(torch.device(kind), dist.ProcessGroup.BackendType.GLOO, gloo)


def _passed_on(name: str) -> Callable[..., Any]:
    return lambda self, *args: getattr(self.inner, name)(*args)


for _name in METHODS:
    setattr(Loopback, _name, _passed_on(_name))


def loopback(n: int, program: Callable[[int], Any]) -> list[Any]:
    """program(rank) with a default group of Loopback."""

    def main(rank: int) -> Any:
        create = lambda store, rank, size, timeout: Loopback(store, rank, size)  # noqa: E731
        registered("loopback", create, devices=["cpu", "cuda"])
        dist.init_process_group("loopback")
        return program(rank)

    return on_ranks(n, main)


@pytest.mark.parametrize("where", ["cpu", "cuda"])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_elements_go_through_a_group_inside(open_world: OpenWorld, n: int, where: str) -> None:
    open_world("name: five\nsystem: {sips: {count: 5}}\n")
    each = [np.random.default_rng(r).integers(-9, 9, (n, 2)).astype(np.float32) for r in range(n)]

    def program(rank: int) -> None:
        mine = lambda: torch.tensor(each[rank], device=where)  # noqa: E731
        x = mine()
        dist.all_reduce(x)
        np.testing.assert_array_equal(x.numpy(), np.sum(each, axis=0))
        whole = torch.zeros(n, n, 2, device=where)
        dist.all_gather_into_tensor(whole, mine())
        np.testing.assert_array_equal(whole.numpy(), np.stack(each))
        part = torch.zeros(2, device=where)
        dist.reduce_scatter_tensor(part, mine())
        np.testing.assert_array_equal(part.numpy(), np.sum(each, axis=0)[rank])
        turned = torch.zeros(n, 2, device=where)
        dist.all_to_all_single(turned, mine())
        np.testing.assert_array_equal(turned.numpy(), np.stack([e[rank] for e in each]))
        listed = [torch.zeros(n, 2, device=where) for _ in range(n)]
        dist.all_gather(listed, mine())
        np.testing.assert_array_equal(np.stack([x.numpy() for x in listed]), np.stack(each))
        dist.barrier()

    loopback(n, program)


def test_objects_go_through_a_group_inside(open_world: OpenWorld) -> None:
    open_world()

    def program(rank: int) -> None:
        found: list[Any] = [None] * N
        dist.all_gather_object(found, {"rank": rank, "text": "x" * rank})
        assert found == [{"rank": r, "text": "x" * r} for r in range(N)]
        gathered: list[Any] | None = [None] * N if rank == 2 else None
        dist.gather_object(rank**2, gathered, 2)
        assert gathered == ([0, 1, 4] if rank == 2 else None)
        told = [rank, "y" * rank]
        dist.broadcast_object_list(told, 2)
        assert told == [2, "yy"]
        got: list[Any] = [None]
        dist.scatter_object_list(got, ["a", {"b": 2}, None] if rank == 0 else None, 0)
        assert got == [["a"], [{"b": 2}], [None]][rank]

    loopback(N, program)


def test_groups_of_a_registered_backend(open_world: OpenWorld) -> None:
    open_world()

    def program(rank: int) -> None:
        part = dist.new_group([2, 0])
        if rank == 1:
            assert part == dist.GroupMember.NON_GROUP_MEMBER
            return
        assert isinstance(part, Loopback)
        assert dist.get_process_group_ranks(part) == [0, 2]
        assert (dist.get_group_rank(part, 2), part.rank()) == (1, rank // 2)
        assert (part.group_name, part.group_desc) == ("1", "undefined")
        x = torch.full((2,), float(rank), device="cpu")
        dist.all_reduce(x, group=part)
        assert x.tolist() == [2, 2]
        dist.destroy_process_group(part)
        with pytest.raises(ValueError, match="Invalid process group specified"):
            dist.all_reduce(x, group=part)

    loopback(N, program)


def test_a_group_on_the_fabric_beside_it(open_world: OpenWorld) -> None:
    open_world()

    def program(rank: int) -> None:
        plain = dist.new_group(backend="gloo")
        assert (dist.get_backend(plain), dist.get_backend()) == ("gloo", "loopback")
        x = t(2)
        dist.all_reduce(x, group=plain)
        assert x.tolist() == [N, N]

    loopback(N, program)


class TestCreators:
    def test_are_called_with_four_arguments(self, open_world: OpenWorld) -> None:
        open_world()

        def main(rank: int) -> None:
            calls = []

            def create(store: dist.Store, rank: int, size: int, timeout: timedelta) -> dist.ProcessGroup:
                calls.append((rank, size, timeout))
                store.set(f"from{rank}", "here")
                store.wait([f"from{r}" for r in range(size)])
                return Noting(rank, size)

            registered("Mine", create)
            assert dist.Backend.MINE == "mine"
            dist.init_process_group("MINE", timeout=timedelta(seconds=7))
            dist.new_group([1, 2], timeout=timedelta(seconds=8))
            late = [(rank - 1, 2, timedelta(seconds=8))] if rank else []
            assert calls == [(rank, N, timedelta(seconds=7)), *late]

        on_ranks(N, main)

    def test_with_the_extended_interface(self, open_world: OpenWorld) -> None:
        open_world()

        def main(rank: int) -> None:
            calls: list[Any] = []

            def create(about: Any, options: Any) -> dist.ProcessGroup:
                assert isinstance(about, c10d._DistributedBackendOptions)
                assert isinstance(about.store, dist.PrefixStore)
                ranks = list(about.global_ranks_in_group)
                calls.append((about.group_id, about.group_rank, about.group_size, ranks, about.timeout, options))
                return Noting(about.group_rank, about.group_size)

            registered("mine", create, extended_api=True, devices="cuda")
            dist.init_process_group("mine", pg_options="given")
            dist.new_group([0, 1], pg_options=5)
            half = timedelta(minutes=30)
            second = [("1", rank, 2, [0, 1], half, 5)] if rank < 2 else []
            assert calls == [("0", rank, N, [], half, "given"), *second]

        on_ranks(N, main)

    def test_what_they_raise(self, open_world: OpenWorld) -> None:
        open_world()

        def main(rank: int) -> None:
            def create(*args: Any) -> Any:
                raise KeyError("no such network")

            registered("mine", create)
            with pytest.raises(KeyError, match="no such network"):
                dist.init_process_group("mine")
            assert not dist.is_initialized()
            registered("mine", lambda *args: None)
            dist.init_process_group("mine")
            with pytest.raises(RuntimeError, match="Could not retrieve or create the backend for device type cpu"):
                dist.all_reduce(t(1))
            dist.destroy_process_group()
            registered("mine", lambda *args: 5)
            with pytest.raises(TypeError, match=r"_register_backend\(\): incompatible function arguments"):
                dist.init_process_group("mine")

        on_ranks(1, main)


def test_options_of_a_backend() -> None:
    class Options(c10d.Backend.Options):
        def __init__(self, colour: str) -> None:
            super().__init__("own", timedelta(seconds=4))
            self.colour = colour

    options = Options("red")
    assert (options.backend, options._timeout, options.colour) == ("own", timedelta(seconds=4), "red")
    assert c10d.Backend.Options("own")._timeout == timedelta(minutes=30)


class Own(c10d.Backend):
    """A backend that can all_reduce, and only on one rank."""

    def getBackendName(self) -> str:  # noqa: N802 (PyTorch's name)
        return "own"

    def allreduce(self, tensors: list[torch.Tensor], opts: Any) -> Done:
        tensors[0].mul_(10)
        return Done(tensors)


class TestByDevice:
    def test_a_backend_serves_its_devices(self, open_world: OpenWorld) -> None:
        open_world()

        def main(rank: int) -> None:
            registered("own", lambda store, rank, size, timeout: Own(rank, size), devices=["cuda"])
            dist.init_process_group("cpu:gloo,cuda:own")
            group = dist.group.WORLD
            assert group is not None
            assert (type(group), dist.get_backend()) == (dist.ProcessGroup, "cpu:gloo,cuda:own")
            assert isinstance(group._get_backend(torch.device("cuda")), Own)
            assert isinstance(group._get_backend(torch.device("cpu")), dist.ProcessGroupGloo)
            assert group._device_types == [torch.device("cpu"), torch.device("cuda")]
            here, there = t(2), torch.ones(2, device="cuda")
            dist.all_reduce(here)
            dist.all_reduce(there)
            assert (here.tolist(), there.tolist()) == ([N, N], [10, 10])
            dist.barrier()  # on the first of them

        on_ranks(N, main)

    @pytest.mark.parametrize(
        ("call", "text"),
        [
            (lambda: dist.broadcast(t(1), 0), "Backend own does not support broadcast"),
            (lambda: dist.all_gather([t(1)], t(1)), "Backend own does not support allgather"),
            (lambda: dist.barrier(), "Backend own does not support barrier"),
            (lambda: dist.irecv(t(1)), "Backend own does not support recvAnysource"),
            (lambda: dist.all_gather_object([None], 3), "Backend own does not support allgather"),
        ],
    )
    def test_what_a_backend_cannot_do(self, open_world: OpenWorld, call: Callable[[], Any], text: str) -> None:
        open_world()

        def main(rank: int) -> None:
            registered("own", lambda store, rank, size, timeout: Own(rank, size))
            dist.init_process_group("own")
            with pytest.raises(RuntimeError, match=f"^{text}$"):
                call()

        on_ranks(1, main)

    def test_without_a_backend_for_the_device(self, open_world: OpenWorld) -> None:
        open_world()

        def main(rank: int) -> None:
            registered("bare", lambda store, rank, size, timeout: dist.ProcessGroup(rank, size))
            dist.init_process_group("bare")
            for call in (lambda: dist.all_reduce(t(1)), lambda: dist.barrier(), lambda: dist.isend(t(1), 0)):
                with pytest.raises(RuntimeError, match=r"^No backend type associated with device type cpu$"):
                    call()
            with pytest.raises(ValueError, match=r"^monitored_barrier is only implemented for GLOO backend"):
                dist.monitored_barrier()

        on_ranks(1, main)


class TestByHand:
    """Groups that a program makes out of a store."""

    def test_gloo_over_a_store(self, open_world: OpenWorld) -> None:
        open_world()
        store = dist.HashStore()

        def main(rank: int) -> None:
            for turn in range(2):  # the store again
                group = dist.ProcessGroupGloo(store, N - 1 - rank, N, timeout=timedelta(seconds=3))
                assert (group.rank(), group.size(), group.name()) == (N - 1 - rank, N, "gloo")
                assert group.options._timeout == timedelta(seconds=3)
                x = torch.tensor([10.0 * rank + turn], device="cpu")
                group.broadcast([x], root=0).wait()
                assert x.tolist() == [10 * (N - 1) + turn]
                listed = [t(1) for _ in range(N)]
                group.allgather([listed], [torch.tensor([float(rank)], device="cpu")]).wait()
                assert [x.item() for x in listed] == [2, 1, 0]
                dist.all_reduce(x, group=group)

        on_ranks(N, main)

    def test_is_not_registered(self, open_world: OpenWorld) -> None:
        open_world()

        def main(rank: int) -> None:
            store = dist.HashStore()
            group = dist.ProcessGroup(store, 0, 1)
            assert group.name() == "undefined"
            group._register_backend("cpu", dist.ProcessGroup.GLOO, dist.ProcessGroupGloo(store, 0, 1))
            assert group.name() == "gloo"
            x = t(2)
            dist.all_reduce(x, group=group)
            dist.broadcast(x, group=group, group_src=0)
            with pytest.raises(ValueError, match="is not registered, please create group"):
                dist.broadcast(x, 0, group=group)
            with pytest.raises(ValueError, match="is not initialized in the world group map"):
                dist.get_backend(group)

        on_ranks(1, main)

    def test_a_group_of_absent_ranks_is_a_deadlock(self, open_world: OpenWorld) -> None:
        open_world()

        def main(rank: int) -> None:
            dist.ProcessGroupGloo(dist.HashStore(), 0, 2)

        (error,) = failures(1, main).values()
        assert "1/name" not in str(error)
        assert "key '1/member/1'" in str(error)

    def test_ranks_that_do_not_fit(self, open_world: OpenWorld) -> None:
        open_world()
        store = dist.HashStore()

        def main(rank: int) -> None:
            with pytest.raises(ValueError, match="rank 2 is not one of a group of 2"):
                dist.ProcessGroupGloo(store, 2, 2)
            with pytest.raises(TypeError, match="incompatible constructor arguments"):
                dist.ProcessGroupGloo(store, "0", 2)  # type: ignore[arg-type]
            if rank < 2:
                dist.ProcessGroupGloo(store, rank, 2 + rank)
            else:
                dist.ProcessGroupGloo(store, 2, 3)

        errors = failures(3, main)
        assert any("disagree on the members" in str(error) for error in errors.values())

    @pytest.mark.parametrize("place", [(), (1,), ("a", 2), (None, 0, 1, 2)])
    def test_misuse(self, open_world: OpenWorld, place: tuple[Any, ...]) -> None:
        open_world()
        with pytest.raises(TypeError, match="incompatible constructor arguments"):
            dist.ProcessGroup(*place)


class TestWorks:
    """A program's class of works has this from dist.Work."""

    def test_what_it_leaves_to_the_base_never_ends(self, open_world: OpenWorld) -> None:
        open_world()

        def main(rank: int) -> None:
            work = dist.Work()
            assert not work.is_completed()
            with pytest.raises(RuntimeError, match="Operation timed out!"):
                work.wait(timedelta(milliseconds=10))
            for method, text in [
                ("result", r"result\(\) not implemented"),
                ("get_future", "Work::getFuture not implemented"),
                ("_source_rank", r"sourceRank\(\) may only be called on work objects that correspond to a recv"),
            ]:
                with pytest.raises(RuntimeError, match=text):
                    getattr(work, method)()

        on_ranks(1, main)

    def test_a_wait_for_it_is_a_deadlock(self, open_world: OpenWorld) -> None:
        open_world()
        (error,) = failures(1, lambda rank: dist.Work().wait()).values()
        assert "a class that does not say how to wait for it" in str(error)


class TestNames:
    @pytest.fixture(autouse=True)
    def _world(self, open_world: OpenWorld) -> None:
        open_world()

    def test_what_is_known_of_a_registered_backend(self) -> None:
        def main(rank: int) -> None:
            assert not dist.is_backend_available("mine")
            dist.Backend.register_backend("Mine", print, devices=["cpu", "npu"])
            assert dist.Backend.MINE == "mine"
            assert dist.Backend.backend_list[-1] == "mine"
            assert dist.Backend.backend_capability["mine"] == ["cpu", "npu"]
            assert dist.Backend.default_device_backend_map["npu"] == "mine"
            assert dist.Backend.default_device_backend_map["cpu"] == "gloo"
            assert dist.Backend.backend_type_map["mine"] is dist.ProcessGroup.BackendType.CUSTOM
            assert dist.Backend._plugins["MINE"] == (print, False)
            assert dist.is_backend_available("MINE")
            assert dist.is_backend_available("cpu:mine,cuda:gloo")
            assert not dist.is_backend_available("cpu:mine,cuda:other")
            assert dist.get_default_backend_for_device("npu") == "mine"
            assert repr(dist.BackendConfig("mine")) == "cpu:mine,npu:mine"

        on_ranks(1, main)

    def test_devices_that_are_not_said(self) -> None:
        def main(rank: int) -> None:
            with pytest.warns(UserWarning, match="Device capability of mine unspecified, assuming `cpu` and `cuda`"):
                dist.Backend.register_backend("mine", print)
            assert dist.Backend.backend_capability["mine"] == ["cpu", "cuda"]
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                dist.Backend.register_backend("mine", print, devices="cuda")
            assert dist.Backend.backend_capability["mine"] == ["cuda"]

        on_ranks(1, main)

    def test_every_rank_has_its_own_and_those_of_its_program(self) -> None:
        registered("common", print)

        def main(rank: int) -> list[str]:
            registered(f"of{rank}", print)
            dist.HashStore().set("let", "others run")
            return dist.Backend.backend_list[-2:]

        assert on_ranks(2, main) == [["common", "of0"], ["common", "of1"]]
        assert dist.Backend.backend_list[-1] == "common"

    def test_unknown_names(self) -> None:
        with pytest.raises(AttributeError, match="has no attribute 'MINE'"):
            dist.Backend.MINE  # noqa: B018
        with pytest.raises(AssertionError, match="Unknown c10d backend type MINE; choose one of ahbm, nccl, gloo"):
            dist.init_process_group("cpu:mine")

    def test_any_size(self) -> None:
        """Only the backend has to do with how many there are: one process can be rank 3 of 64."""
        registered("noting", lambda store, rank, size, timeout: Noting(rank, size))
        dist.init_process_group("noting", rank=3, world_size=64, store=dist.HashStore())
        assert (dist.get_rank(), dist.get_world_size()) == (3, 64)
        dist.all_reduce(t(1))
        dist.destroy_process_group()

    def test_ranks_that_are_spawned_make_their_own(self) -> None:
        registered("noting", lambda store, rank, size, timeout: Noting(rank, size))
        dist.init_process_group("noting")

        def main(rank: int) -> None:
            assert not dist.is_initialized()
            dist.init_process_group("noting")

        mp.spawn(main, nprocs=2)
        dist.destroy_process_group()


def test_what_is_for_groups_on_the_fabric_only(open_world: OpenWorld) -> None:
    open_world()

    def program(rank: int) -> None:
        with pytest.raises(TypeError, match="backend for '0' does not support shrinking operations"):
            dist.shrink_group([1])
        text = "estimator is not supported in the current version of backend"
        with pytest.raises(NotImplementedError, match=text), dist._time_estimator():
            raise AssertionError("the block must not be run")
        group = dist.group.WORLD
        assert group is not None
        group.abort()
        dist.destroy_process_group()
        assert not dist.is_initialized()

    loopback(N, program)
