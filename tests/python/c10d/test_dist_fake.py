"""The backend fake: one process as any rank of any number. What it leaves in tensors was seen in PyTorch 2.11."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conftest import OpenWorld

import torchemu as torch
import torchemu.distributed as dist
import torchemu.distributed._functional_collectives as funcol
from torchemu._C import _distributed_c10d as c10d
from torchemu.runtime.waiting import host_time
from torchemu.testing._internal.distributed.fake_pg import FakeStore


@pytest.fixture(autouse=True)
def _group(open_world: OpenWorld) -> Iterator[None]:
    open_world()
    dist.init_process_group("fake", rank=1, world_size=4, store=FakeStore())
    yield
    dist.destroy_process_group()


def one(count: int = 1, value: float = 0.0) -> torch.Tensor:
    return torch.full((count,), value, device="cpu")


def each(count: int = 1) -> list[torch.Tensor]:
    return [one(count) for _ in range(4)]


OWN = [1.0, 2.0]


def own() -> torch.Tensor:
    return torch.tensor(OWN, device="cpu")


def filled(target: Any, call: Callable[[Any], Any]) -> Any:
    """What a call leaves in a tensor, or in a list of tensors."""
    call(target)
    return [x.tolist() for x in target] if isinstance(target, list) else target.tolist()


@pytest.mark.parametrize(
    ("target", "call", "want"),
    [
        (own, lambda x: dist.all_reduce(x), OWN),
        (lambda: each(2), lambda x: dist.all_gather(x, own()), [OWN] * 4),
        (lambda: one(8), lambda x: dist.all_gather_into_tensor(x, own()), OWN * 4),
        (lambda: one(2), lambda x: dist.reduce_scatter_tensor(x, one(8, 1.0)), [0, 0]),
        (lambda: one(2), lambda x: dist.reduce_scatter(x, [own() for _ in range(4)]), [0, 0]),
        (own, lambda x: dist.broadcast(x, 0), OWN),
        (own, lambda x: dist.reduce(x, 1), OWN),
        (lambda: one(4), lambda x: dist.all_to_all_single(x, one(4, 1.0)), [0] * 4),
        (lambda: each(2), lambda x: dist.gather(own(), x, 1), [[0, 0]] * 4),
        (lambda: one(2), lambda x: dist.scatter(x, None, 0), [0, 0]),
        (lambda: one(2), lambda x: dist.recv(x, 0), [0, 0]),
    ],
)
def test_what_is_left_in_tensors(target: Callable[[], Any], call: Callable[[Any], Any], want: Any) -> None:
    assert filled(target(), call) == want


def test_it_is_the_rank_that_it_says() -> None:
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (1, 4, "fake")
    part = dist.new_group([0, 1])
    assert (part.rank(), part.size()) == (1, 2)
    assert dist.new_group([2, 3]) == dist.GroupMember.NON_GROUP_MEMBER
    assert funcol.all_gather_tensor(own(), 0, part).tolist() == OWN * 2


def test_works_have_ended() -> None:
    work = dist.all_reduce(own(), async_op=True)
    assert isinstance(work, c10d.FakeWork)
    assert work.is_completed()
    assert work.wait()
    assert work.get_future().wait() is None


def test_no_time_passes() -> None:
    start = host_time()
    with dist._coalescing_manager():
        for _ in range(10):
            dist.all_reduce(one(1000))
    dist.barrier()
    dist.send(own(), 0)
    assert host_time() == start


def test_objects() -> None:
    found: list[Any] = [None] * 4
    dist.all_gather_object(found, {"a": 1})
    assert found == [{"a": 1}] * 4


def test_errors() -> None:
    with pytest.raises(ValueError, match="monitored_barrier is only implemented for GLOO backend"):
        dist.monitored_barrier()
    with pytest.raises(RuntimeError, match=r"sourceRank\(\) may only be called"):
        dist.recv(one())
