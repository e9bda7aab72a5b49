"""Calls of process groups themselves, as PyTorch's own tests and hooks of DDP make them; what gloo and NCCL give."""

import inspect
import os
import time
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from torch.distributed import _functional_collectives as functional
from torch.distributed.algorithms.ddp_comm_hooks import quantization_hooks

import torchemu

real = torchemu.distributed(world_size=2, torch="real")


def joined(backend="gloo"):
    dist.init_process_group(backend)
    return dist.get_rank(), dist.group.WORLD


def gathered(rank, device="cpu"):
    outs = [torch.zeros(2, device=device) for _ in range(2)]
    return dist.all_gather(outs, torch.full((2,), rank + 1.0, device=device), async_op=True).get_future().wait()


@real
def test_futures_of_gathers_have_the_list_of_tensors_on_gloo():
    rank, _ = joined()
    assert [t.tolist() for t in gathered(rank)] == [[1, 1], [2, 2]]
    outs = [torch.zeros(1), torch.zeros(1)] if rank == 1 else None
    future = dist.gather(torch.tensor([rank + 3.0]), outs, dst=1, async_op=True).get_future()
    assert [t.item() for t in future.wait()] == ([3, 4] if rank == 1 else [])


@real
def test_futures_of_all_gathers_have_one_tensor_on_nccl():
    rank, _ = joined("nccl")
    (whole,) = gathered(rank, "cuda")
    assert whole.tolist() == [[1, 1], [2, 2]]


@pytest.mark.parametrize("hook", ["quantization_pertensor_hook", "quantization_perchannel_hook"])
@real
def test_quantization_hooks(hook):
    rank, group = joined("nccl")
    model = torch.nn.Linear(8, 8, bias=False).cuda()
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    ddp.register_comm_hook(group, getattr(quantization_hooks, hook))
    row = torch.linspace(0, 1, 8, device="cuda")
    ddp(row * (rank + 1)).sum().backward()
    # The mean of the ranks' gradients, in steps of the 8 bits that the greater one has.
    assert torch.allclose(model.weight.grad, (row * 1.5).expand(8, 8), atol=2 / 255)


@real
def test_reduce_scatter_of_parts_of_different_sizes():
    rank, _ = joined()
    out = torch.zeros(rank + 1)
    dist.reduce_scatter(out, [torch.full((1,), 3.0), torch.arange(2.0)])
    assert out.tolist() == ([6.0] if rank == 0 else [0.0, 2.0])


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
@real
def test_sparse_tensors_of_different_numbers_of_elements():
    rank, _ = joined()
    indices, values = ([[0]], [1.0]) if rank == 0 else ([[0, 2]], [10.0, 20.0])
    tensor = torch.sparse_coo_tensor(indices, values, (3,))
    dist.all_reduce(tensor)
    assert tensor.to_dense().tolist() == [11, 0, 20]


@real
def test_nccl_reduces_no_sparse_tensors():
    joined("nccl")
    with pytest.raises(RuntimeError, match="NCCL does not support all_reduce with sparse tensors"):
        dist.all_reduce(torch.eye(2).to_sparse().cuda())


@real
def test_roots_are_for_one_tensor():
    rank, group = joined()
    tensor = torch.full((1,), rank + 1.0)
    group.broadcast(tensor, root=1).wait()
    assert tensor.item() == 2
    for call in (group.broadcast, group.reduce):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            call([tensor], 0)
    for call in (group.gather, group.scatter):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            call([], [tensor], 0)


@real
def test_all_to_all_single_wants_contiguous_tensors():
    joined()
    with pytest.raises(ValueError, match="Tensors must be contiguous"):
        dist.all_to_all_single(torch.zeros(2, 2), torch.zeros(2, 2).t())


@real
def test_timeouts_in_seconds():
    _, group = joined()
    group.set_timeout(5.0)
    assert group.options._timeout == timedelta(seconds=5)
    assert dist.barrier(async_op=True).wait(2.5)
    options = dist.ProcessGroupGloo._Options()
    options._timeout = 50.0
    own = dist.ProcessGroupGloo(dist.HashStore(), 0, 1, options)
    assert own.options._timeout == timedelta(seconds=50)


ACROSS = {
    "SUM": [17, 21], "PRODUCT": [300, 672], "MIN": [3, 4], "MAX": [5, 7], "BAND": [0, 4], "BOR": [7, 7], "BXOR": [7, 1]
}  # fmt: skip
"""Results of two processes on gloo of PyTorch 2.11 from [3 + rank, 4] and [5, 6 + rank], in both tensors."""


@pytest.mark.parametrize("op", ACROSS)
@real
def test_several_tensors_of_a_rank_are_reduced_on_gloo(op):
    rank, group = joined()
    tensors, options = [torch.tensor([3 + rank, 4]), torch.tensor([5, 6 + rank])], dist.AllreduceOptions()
    options.reduceOp = getattr(dist.ReduceOp, op)
    group.allreduce(tensors, options).wait()
    assert [t.tolist() for t in tensors] == [ACROSS[op]] * 2


@real
def test_several_tensors_of_a_rank_get_one_of_the_roots():
    rank, group = joined()
    options = dist.BroadcastOptions()
    options.rootRank, options.rootTensor = 1, 1
    tensors = [torch.full((2,), 10.0 * rank + i) for i in range(3)]
    group.broadcast(tensors, options).wait()
    assert [t.tolist() for t in tensors] == [[11, 11]] * 3
    options.rootTensor = 3
    with pytest.raises(RuntimeError, match="ProcessGroupGloo::broadcast: invalid root tensor: 3"):
        group.broadcast(tensors, options)
    with pytest.raises(RuntimeError, match=r"allreduce: invalid tensor size at index 0 \(expected \(2\), got \(3\)\)"):
        group.allreduce([torch.ones(2), torch.ones(3)])


@real
def test_nccl_takes_one_tensor_of_a_rank():
    _, group = joined("nccl")
    for call in (group.allreduce, group.broadcast):
        with pytest.raises(RuntimeError, match="Expecting one tensor only but got multiple"):
            call([torch.ones(2, device="cuda")] * 2)


@pytest.mark.parametrize(("backend", "device"), [("nccl", "cuda"), ("gloo", "cpu")])
@real
def test_objects_where_torch_distributed_says_what_it_does(backend, device, monkeypatch):
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "DETAIL")
    dist.set_debug_level_from_env()
    try:
        rank, _ = joined(backend)
        found = [None, None]
        dist.all_gather_object(found, {"rank": rank} | ({"more": [0] * 9} if rank else {}))
        assert found == [{"rank": 0}, {"rank": 1, "more": [0] * 9}]
        number = torch._C._distributed_c10d._hash_tensors
        same, other = (torch.tensor([1.0, value], device=device) for value in (2.0, 3.0))
        assert number([same]) == number([same.clone()]) != number([other])
    finally:
        monkeypatch.delenv("TORCH_DISTRIBUTED_DEBUG")
        dist.set_debug_level_from_env()


@real
def test_groups_of_nccl_look_for_nan_when_asked_to():
    _, group = joined("nccl")
    backend, out = group._get_backend(torch.device("cuda")), torch.zeros(2, device="cuda")
    wrong = torch.full((1,), float("nan"), device="cuda")
    for is_looked_for in (True, False):
        backend._set_enable_nan_check(is_looked_for)
        if is_looked_for:
            with pytest.raises(RuntimeError, match="NaN found in input tensor"):
                group._allgather_base(out, wrong)
        else:
            group._allgather_base(out, wrong).wait()
            assert out.isnan().all()


@pytest.mark.parametrize("backend", ["nccl", "cpu:gloo,cuda:nccl"])
@real
def test_tensors_of_devices_have_nccls_rules_in_groups_of_both(backend):
    """NCCL gathers tensors of different sizes, scatters such, and coalesces; gloo does none of it."""
    rank, _ = joined(backend)
    outs = [torch.zeros(size, device="cuda") for size in (1, 2)]
    dist.all_gather(outs, torch.full((rank + 1,), rank + 1.0, device="cuda"))
    assert [t.tolist() for t in outs] == [[1], [2, 2]]
    share = torch.zeros(rank + 1, device="cuda")
    dist.reduce_scatter(share, [torch.ones(1, device="cuda"), torch.ones(2, device="cuda")])
    assert share.tolist() == [2] * (rank + 1)
    several = torch.ones(1, device="cuda"), torch.ones(2, device="cuda")
    with dist.distributed_c10d._coalescing_manager(device=torch.device("cuda"), async_ops=True) as coalesced:
        for tensor in several:
            dist.all_reduce(tensor)
    coalesced.wait()
    assert [t.tolist() for t in several] == [[2], [2, 2]]


def timed(call, *args):
    """Returns the milliseconds that a device takes for what a function issues."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    call(*args)
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end)


@real
def test_collectives_of_one_manager_take_the_time_of_one():
    """Two H200s take 8.5 us for eight all_gathers of 4 KiB in one go, 8.6 for one, and 50 for eight apart."""
    rank, _ = joined("nccl")
    ins = [torch.full((1024,), rank + 1.0 + i, device="cuda") for i in range(8)]
    outs = [torch.zeros(2048, device="cuda") for _ in ins]

    def each(collective):
        for whole, part in zip(outs, ins, strict=True):
            collective(*((whole, part) if collective is dist.all_gather_into_tensor else (part, whole)))

    def in_one_go(collective):
        with dist.distributed_c10d._coalescing_manager():
            each(collective)

    for collective in (dist.all_gather_into_tensor, dist.reduce_scatter_tensor):
        apart, at_once = timed(each, collective), timed(in_one_go, collective)
        assert at_once < apart / 4
    for i, part in enumerate(ins):
        assert (part == 2 * (rank + 1 + i)).all()
    in_one_go(dist.all_gather_into_tensor)
    for i, whole in enumerate(outs):
        assert [part.unique().tolist() for part in whole.chunk(2)] == [[2.0 * (1 + i)], [2.0 * (2 + i)]]


@real
def test_collectives_of_one_manager_may_have_several_types():
    rank, _ = joined("nccl")
    ins = [torch.full((2,), rank + 1, device="cuda", dtype=dtype) for dtype in (torch.float32, torch.int64)]
    outs = [torch.zeros(4, device="cuda", dtype=part.dtype) for part in ins]
    with dist.distributed_c10d._coalescing_manager():
        for whole, part in zip(outs, ins, strict=True):
            dist.all_gather_into_tensor(whole, part)
    assert [whole.tolist() for whole in outs] == [[1, 1, 2, 2]] * 2


@real
def test_host_tensors_keep_gloos_rules_in_groups_of_both():
    joined("cpu:gloo,cuda:nccl")
    with pytest.raises(RuntimeError, match="invalid tensor size at index"):
        dist.all_gather([torch.zeros(1), torch.zeros(2)], torch.zeros(dist.get_rank() + 1))


@pytest.mark.parametrize("of_subgroup", [False, True])
@real
def test_a_batch_may_have_messages_of_a_rank_to_itself(of_subgroup):
    """Pipelines whose stages go there and back (ZBV) have two neighbours on one rank."""
    rank, _ = joined("nccl")
    group = dist.new_group([0, 1]) if of_subgroup else None
    given, got = torch.full((2,), rank + 1.0, device="cuda"), torch.zeros(2, device="cuda")
    works = dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, given, rank, group), dist.P2POp(dist.irecv, got, rank, group)]
    )
    for work in works:
        work.wait()
    assert got.tolist() == [rank + 1] * 2
    with pytest.raises(dist.DistBackendError, match="no messages with itself"):
        dist.isend(given, rank, group)


@pytest.mark.parametrize("subgroup", [False, True])
@torchemu.distributed(world_size=2, torch="real")
def test_the_port_of_a_store_is_free_once_its_groups_are_gone(subgroup, tmp_path):
    """A program makes groups of a store at one port again and again, as suites of tests do."""
    rank, order = int(os.environ["RANK"]), dist.FileStore(str(tmp_path / "order"), 2)
    for turn in range(3):
        if rank == 1:
            order.wait([f"served {turn}"])
        store = dist.TCPStore("localhost", 29_777, 2, rank == 0, wait_for_workers=False)
        order.set(f"served {turn}", "yes")
        dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
        total = torch.tensor([rank + turn])
        dist.all_reduce(total, group=dist.new_group() if subgroup else None)
        assert total.item() == 1 + 2 * turn
        dist.destroy_process_group()
        store.set(f"left by {rank}", "yes")  # whoever holds a store may use it
        assert store.get(f"left by {1 - rank}") == b"yes"
        order.add(f"ends {turn}", 1)
        while order.add(f"ends {turn}", 0) < 2:
            time.sleep(0.001)
        del store
    with pytest.raises(ValueError, match="initialized"):
        dist.get_rank()


@torchemu.distributed(world_size=4, torch="real")
def test_a_group_of_two_backends_is_split_as_its_devices_can_be():
    rank = int(os.environ["RANK"])
    dist.init_process_group("cpu:gloo,cuda:nccl", device_id=torch.device("cuda", rank))
    half = dist.split_group(split_ranks=[[0, 1], [2, 3]])
    mine = torch.tensor([rank + 1.0], device="cuda")
    dist.all_reduce(mine, group=half)
    assert mine.item() == (3 if rank < 2 else 7)


newer = pytest.mark.skipif(not hasattr(dist, "gather_single"), reason="PyTorch before 2.14")
splits = pytest.mark.skipif("No device" in inspect.getsource(dist.split_group), reason="PyTorch before 2.15")


@splits
@pytest.mark.parametrize("backend", ["gloo", "nccl", "cpu:gloo,cuda:nccl"])
@torchemu.distributed(world_size=4, torch="real")
def test_ranks_of_a_split_are_in_the_order_of_the_list(backend):
    """Members, their numbers and the description are what four processes on gloo of PyTorch 2.15 give."""
    rank = int(os.environ["RANK"])
    device = "cpu" if backend == "gloo" else f"cuda:{rank}"
    dist.init_process_group(backend)
    for turn, (parts, mine) in enumerate([([[1, 0], [3, 2]], rank // 2), ([[2, 3, 0]], 0)]):
        group = dist.split_group(split_ranks=parts)
        if rank not in parts[mine]:
            assert group == dist.GroupMember.NON_GROUP_MEMBER
            continue
        outs = [torch.zeros(1, device=device) for _ in parts[mine]]
        dist.all_gather(outs, torch.tensor([rank + 0.0], device=device), group=group)
        assert [int(t) for t in outs] == parts[mine] == dist.get_process_group_ranks(group)
        assert dist.get_rank(group) == group.rank() == parts[mine].index(rank)
        assert group.group_desc == f"default_pg:split:{turn}"


@splits
@torchemu.distributed(world_size=4, torch="real")
def test_a_group_of_two_backends_is_split_for_one_of_them():
    rank = int(os.environ["RANK"])
    dist.init_process_group("cpu:gloo,cuda:nccl")
    for part, device, other in (("cpu:gloo", "cpu", "nccl"), ("nccl", "cuda", "gloo")):
        group = dist.split_group(split_ranks=[[0, 1], [2, 3]], backend=part)
        dist.all_reduce(mine := torch.tensor([rank + 1.0], device=device), group=group)
        assert mine.item() == (3 if rank < 2 else 7)
        assert dist.get_backend(group) in part and group.supports_coalescing == (device == "cuda")
        with pytest.raises(ValueError, match=f"Requested backend '{other}' is not present"):
            dist.split_group(group, split_ranks=[[0, 1]], backend=other)


@newer
@pytest.mark.parametrize("backend", ["gloo", "nccl"])
@real
def test_works_know_how_long_they_may_take(backend):
    _, world = joined(backend)
    device = "cpu" if backend == "gloo" else "cuda"
    default = timedelta(minutes=30 if backend == "gloo" else 10)
    assert dist.all_reduce(torch.ones(1, device=device), async_op=True).timeout == default
    dist.set_timeout(timedelta(seconds=7))
    assert dist.all_reduce(torch.ones(1, device=device), async_op=True).timeout == timedelta(seconds=7)
    for refused in (world.suspend, world.resume, world.memory_stats):
        with pytest.raises(RuntimeError, match=r"does not support suspend|nothing to suspend, resume"):
            refused()


@pytest.mark.skipif(not hasattr(functional, "batch_p2p_ops_inplace"), reason="PyTorch before 2.15")
@pytest.mark.parametrize("backend", ["gloo", "nccl"])
@pytest.mark.parametrize("waits_for_all", [False, True])
@real
def test_a_batch_of_messages_is_waited_for_by_its_tensors(backend, waits_for_all):
    rank, world = joined(backend)
    device = "cpu" if backend == "gloo" else "cuda"
    sent, got = torch.tensor([rank + 1.0, 5.0], device=device), torch.zeros(2, device=device)
    group = world if waits_for_all else world.group_name
    given = ["isend", "irecv"], [1 - rank] * 2, [3, 3], [sent, got], group
    results = functional.batch_p2p_ops_inplace(*given)
    functional.wait_tensors(results) if waits_for_all else [functional.wait_tensor(t) for t in results]
    assert got.tolist() == [2.0 - rank, 5.0] and results[0].tolist() == sent.tolist()


def test_watchdogs_of_pytorchs_are_refused():
    watchdog = pytest.importorskip("torch.distributed._watchdog")

    @real
    def program():
        for call in (watchdog.init, lambda: watchdog.cpu_timeout(3), lambda: watchdog.stream_complete(print)):
            with pytest.raises(NotImplementedError, match="simulated time"):
                call()

    program()


@newer
@pytest.mark.parametrize("backend", ["gloo", "nccl"])
@real
def test_groups_keep_their_members(backend):
    with pytest.raises(NotImplementedError, match="enable_reconfigure"):
        dist.init_process_group(backend, enable_reconfigure=True)


@newer
@real
def test_gathers_into_one_tensor():
    rank, _ = joined("nccl")
    whole = torch.empty(4, device="cuda") if rank == 1 else None
    dist.gather_single(torch.tensor([rank, rank + 10.0], device="cuda"), whole, dst=1)
    assert whole is None or whole.tolist() == [0, 10, 1, 11]


@pytest.mark.parametrize("backend", ["nccl2", "nccl-lazy", "nccl-legacy"])
@newer
@real
def test_the_kinds_of_nccl(backend):
    rank, _ = joined(backend)
    mine = torch.tensor([rank + 1.0], device="cuda")
    dist.all_reduce(mine)
    assert mine.item() == 3
    dist.destroy_process_group()
