"""The debug level DETAIL: what ranks call is compared before it is done, in the words that two processes of gloo were
seen to use; programs that catch the error go on."""

from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

import torchemu
from torchemu.errors import DeadlockError, MismatchError

PLACE = (
    "TensorOptions(dtype=float (default), device=cpu, layout=Strided (default), requires_grad=false (default), "
    "pinned_memory=false (default), memory_format=(nullopt))"
)


@pytest.fixture
def detail(monkeypatch):
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "DETAIL")
    dist.set_debug_level_from_env()
    yield
    monkeypatch.delenv("TORCH_DISTRIBUTED_DEBUG")
    dist.set_debug_level_from_env()


def printed(operation, shape, kinds="Float", number=0):
    places = " ".join([PLACE] * len(kinds.split()))
    return (
        f"CollectiveFingerPrint(SequenceNumber={number}, OpType={operation}, TensorShape=[{shape}], "
        f"TensorDtypes={kinds}, TensorDeviceTypes={places})"
    )


def group():
    return dist.group.WORLD


DIFFERENT = {
    "operations": (
        lambda r: group().reduce([torch.ones(20, 10)]) if r else group().allreduce([torch.ones(20, 10)]),
        (printed("ALLREDUCE", "20, 10"), printed("REDUCE", "20, 10")),
        ("Collectives differ in the following aspects:   Op type: ALLREDUCEvs REDUCE",
         "Collectives differ in the following aspects:   Op type: REDUCEvs ALLREDUCE"),
    ),
    "sizes": (
        lambda r: group().allreduce([torch.ones(2 + r, 5)]),
        (printed("ALLREDUCE", "2, 5"), printed("ALLREDUCE", "3, 5")),
        ("Collectives differ in the following aspects:   Tensor Tensor shapes: 2 5vs 3 5",
         "Collectives differ in the following aspects:   Tensor Tensor shapes: 3 5vs 2 5"),
    ),
    "dtypes": (
        lambda r: group().allreduce([torch.ones(2, dtype=torch.float64 if r else torch.int64)]),
        (printed("ALLREDUCE", "2", "Long"), printed("ALLREDUCE", "2", "Double")),
        ("Collectives differ in the following aspects:   Tensor Tensor dtypes: Longvs Double",
         "Collectives differ in the following aspects:   Tensor Tensor dtypes: Doublevs Long"),
    ),
    "outputs": (
        lambda r: group()._reduce_scatter_base(torch.zeros(4 + r), torch.ones(12)),
        (printed("_REDUCE_SCATTER_BASE", "12", "Float Float"),) * 2,
        ("", ""),
    ),
    "inputs": (
        lambda r: group()._reduce_scatter_base(torch.zeros(4), torch.ones((4 + r) * 2)),
        (printed("_REDUCE_SCATTER_BASE", "8", "Float Float"), printed("_REDUCE_SCATTER_BASE", "10", "Float Float")),
        ("Collectives differ in the following aspects:   Tensor Tensor shapes: 8vs 10",
         "Collectives differ in the following aspects:   Tensor Tensor shapes: 10vs 8"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", DIFFERENT)
@torchemu.distributed(world_size=2, torch="real")
def test_texts(what, detail):
    call, calls, aspects = DIFFERENT[what]
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    with pytest.raises(MismatchError) as raised:
        call(rank)
    said, *sites = str(raised.value).splitlines()
    assert said == (
        f"Detected mismatch between collectives on ranks. Rank {rank} is running collective: {calls[rank]}, but "
        f"Rank {1 - rank} is running collective: {calls[1 - rank]}.{aspects[rank]}"
    )
    assert [site.rpartition(" at ")[0] for site in sites] == [f"rank {rank} calls it", f"rank {1 - rank}"]
    assert all("test_torch_detail.py:" in site for site in sites)
    x = torch.tensor([10.0 + rank])
    dist.all_reduce(x)  # nothing was issued
    assert x.item() == 21


@pytest.mark.parametrize("backend", ["gloo", "nccl"])
@torchemu.distributed(world_size=3, torch="real")
def test_collectives_that_fit_do_what_they_do(backend, detail):
    dist.init_process_group(backend)
    rank, device = dist.get_rank(), "cuda" if backend == "nccl" else "cpu"
    x = torch.arange(5.0, device=device) + rank
    dist.all_reduce(x)
    assert x.tolist() == [3 * i + 3 for i in range(5)]
    parts = [torch.zeros(2, device=device) for _ in range(3)]
    dist.all_gather(parts, torch.full((2,), float(rank), device=device))
    assert [part.tolist() for part in parts] == [[r, r] for r in range(3)]
    out = torch.zeros(1, device=device)
    dist.scatter(out, [torch.tensor([7.0 + r], device=device) for r in range(3)] if rank == 1 else None, src=1)
    assert out.item() == 7 + rank
    outs = [torch.zeros(2, device=device), torch.zeros(1, device=device)]
    ins = [torch.full((6,), 1.0 + rank, device=device), torch.full((3,), 2.0, device=device)]
    group().reduce_scatter_tensor_coalesced(outs, ins).wait()
    assert [out.tolist() for out in outs] == [[6, 6], [6]]
    of_some = dist.new_group([0, 2])
    if rank != 1:
        y = torch.tensor([1.0 + rank], device=device)
        dist.broadcast(y, 2, group=of_some)
        assert y.item() == 3
    found = [None] * 3
    dist.all_gather_object(found, "x" * rank)
    assert found == ["", "x", "xx"]
    dist.barrier()


@torchemu.distributed(world_size=3, torch="real")
def test_rank_0_says_who_does_not_come(detail):
    dist.init_process_group("gloo", timeout=timedelta(seconds=2))
    rank = dist.get_rank()
    if rank == 1:
        return
    says = "Ranks 1 failed to pass monitoredBarrier in 2000 ms" if rank == 0 else "Please check rank 0 logs for faulty"
    with pytest.raises(RuntimeError, match=says) as raised:
        group().allreduce([torch.ones(2, 3)])
    text = "ProcessGroupWrapper: Monitored Barrier encountered error running collective: "
    assert str(raised.value).startswith(text + printed("ALLREDUCE", "2, 3"))
    assert not isinstance(raised.value, DeadlockError)


@torchemu.distributed(world_size=2, torch="real")
def test_a_group_that_a_program_wraps():
    dist.init_process_group("gloo")
    rank, store = dist.get_rank(), dist.HashStore()
    limit = timedelta(seconds=5)
    wrapped = dist._create_process_group_wrapper(group(), "beside", store, rank, 2, timeout=limit)
    with pytest.raises(MismatchError, match="Op type"):
        wrapped.barrier() if rank else wrapped.broadcast(torch.ones(2), 0)
    x = torch.tensor([1.0 + rank])
    wrapped.allreduce([x]).wait()
    assert x.item() == 3
