"""Hosts that run ahead of collectives, and runs without data: on ranks of the installed PyTorch."""

import threading

import newer
import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
from torch.nn import functional

import torchemu

real = torchemu.distributed(world_size=4, torch="real")
pytestmark = newer.names_of_before


def begin():
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    return dist.get_rank()


@real
def test_a_host_goes_on_while_others_have_not_joined():
    """Rank 0 lets the others join only after it has used what they are to bring about."""
    rank = begin()
    store = dist.distributed_c10d._get_default_store()
    x = torch.full((4,), rank + 1.0, device="cuda")
    if rank:
        store.get("go")
    dist.all_reduce(x)
    y = x * 2 + 1
    z = y.clone()
    z.add_(x)
    view = z.view(2, 2)[0]
    both = torch.stack([y, z]).sum(0)
    x.zero_()  # what has been put off reads what was there before
    if not rank:
        store.set("go", "1")
    assert both.tolist() == [52.0] * 4 and x.tolist() == [0.0] * 4 and view.tolist() == [31.0, 31.0]
    assert (y.cpu() == 21).all() and y.device.index == rank


WRITING = {
    "out": lambda x, other: torch.bmm(x, x, out=other),
    "values": lambda x, other: torch.sort(x, out=(other, torch.empty_like(x, dtype=torch.int64))),
    "statistics": lambda x, other: functional.batch_norm(x, other[0, 0], other[0, 1], training=True),
    "foreach": lambda x, other: torch._foreach_add_([torch.ones_like(x), other], [x, x]),
    "fused": lambda x, other: torch._fused_sgd_(
        [torch.ones_like(x)],
        [x],
        [other],
        weight_decay=0.0,
        momentum=0.5,
        lr=0.1,
        dampening=0.0,
        nesterov=False,
        maximize=False,
        is_first_step=False,
    ),
}


@real
@pytest.mark.parametrize("name", list(WRITING))
def test_operands_that_are_written_later_are_not_read_before(name):
    rank = begin()
    store = dist.distributed_c10d._get_default_store()
    x = torch.arange(8.0, device="cuda").reshape(2, 2, 2)
    other = torch.ones(2, 2, 2, device="cuda")
    if rank:
        store.get("go on")
    dist.all_reduce(x)
    WRITING[name](x, other)
    read = other * 2
    if not rank:
        store.set("go on", "1")
    wanted = torch.ones(2, 2, 2)
    WRITING[name](x.cpu(), wanted)
    assert other.device.type == read.device.type == "cuda"
    torch.testing.assert_close(read.cpu(), wanted * 2)


@real
def test_what_is_to_be_read_later_is_not_written_before():
    rank = begin()
    store = dist.distributed_c10d._get_default_store()
    x, y = torch.ones(4, device="cuda"), torch.ones(4, device="cuda")
    if rank:
        store.get("go on")
    dist.all_reduce(x)
    z = x + y
    if not rank:
        store.set("go on", "1")
    torch.add(torch.ones_like(y), 7.0, out=y)
    assert z.tolist() == [5.0] * 4 and y.tolist() == [8.0] * 4


@real
def test_powersgd_gives_ranks_one_gradient():
    """Its hook has chains of futures for each bucket, and products into memory that it keeps."""
    rank = begin()
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(
        nn.Sequential(*[nn.Linear(24, 24) for _ in range(4)]).cuda(), bucket_cap_mb=0.004
    )
    state = powerSGD_hook.PowerSGDState(
        None, matrix_approximation_rank=2, start_powerSGD_iter=2, min_compression_rate=1.1
    )
    model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    for step in range(4):
        model.zero_grad()
        x = torch.randn(4, 24, generator=torch.Generator().manual_seed(10 * step + rank)).cuda()
        model(x).square().mean().backward()
        for p in model.parameters():
            several = [torch.empty_like(p.grad) for _ in range(4)]
            dist.all_gather(several, p.grad)
            for one in several:
                assert torch.equal(one, p.grad)


@real
def test_an_evaluation_is_put_off():
    """CPUs' batch normalization gives no statistics then, where PyTorch's shape functions give some."""
    rank = begin()
    store = dist.distributed_c10d._get_default_store()
    layer = nn.BatchNorm1d(3).cuda().eval()
    x = torch.full((4, 3), rank + 1.0, device="cuda")
    if rank:
        store.get("go on")
    dist.all_reduce(x)
    y = layer(x).relu()
    if not rank:
        store.set("go on", "1")
    torch.testing.assert_close(y.detach().cpu(), torch.full((4, 3), 10 / (1 + 1e-5) ** 0.5))


@real
def test_what_is_put_off_is_computed_in_wider_dtypes_where_only_cuda_has_kernels():
    rank = begin()
    store = dist.distributed_c10d._get_default_store()
    x = torch.full((4,), rank, device="cuda")
    if rank:
        store.get("go on")
    dist.all_reduce(x)
    counts = torch.histc(x, bins=3, min=5, max=8)
    if not rank:
        store.set("go on", "1")
    assert counts.dtype == torch.int64 and counts.tolist() == [0, 4, 0]


@real
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_what_has_not_come_are_those_of_what_has(mode):
    """Embeddings' bags have results, for the backward pass, whose shapes are another kernel's matter."""
    rank, store = begin(), dist.distributed_c10d._get_default_store()
    table = torch.arange(30.0).reshape(10, 3)
    bags = torch.arange(10).reshape(2, 5)
    weights = {"per_sample_weights": torch.rand(2, 5)} if mode == "sum" else {}
    own = table.cuda().requires_grad_()
    here, weights_here = bags.cuda(), {name: weight.cuda() for name, weight in weights.items()}
    if rank:
        store.get(mode)  # the others come once rank 0 waits for them
    dist.all_reduce(here, op=dist.ReduceOp.MAX)
    store.set(mode, "1")
    found = functional.embedding_bag(here, own, mode=mode, **weights_here)
    found.square().sum().backward()
    table.requires_grad_()
    wanted = functional.embedding_bag(bags, table, mode=mode, **weights)
    wanted.square().sum().backward()
    torch.testing.assert_close(found.cpu(), wanted)
    torch.testing.assert_close(own.grad.cpu(), table.grad)


@real
def test_norms_of_half_weights_that_have_not_come_are_those_of_what_has():
    """The backward pass takes norms in float32, which PyTorch's shape function gives in float16."""
    rank, store = begin(), dist.distributed_c10d._get_default_store()
    whole = torch.arange(12.0).reshape(4, 3) + 1
    scale = torch.linspace(1, 2, 4).reshape(4, 1)
    weight, half = whole.cuda().half(), scale.cuda().half()
    if rank:
        store.get("joined")  # the others come once rank 0 waits for them
    dist.all_reduce(weight, op=dist.ReduceOp.MAX)
    store.set("joined", "1")
    own = weight.requires_grad_(), half.requires_grad_()
    torch._weight_norm_interface(*own, 0)[0].float().square().sum().backward()
    plain = whole.requires_grad_(), scale.requires_grad_()
    (plain[0] / plain[0].norm(dim=1, keepdim=True) * plain[1]).square().sum().backward()
    for mine, other in zip(own, plain, strict=True):
        torch.testing.assert_close(mine.grad.float().cpu(), other.grad, atol=2e-2, rtol=0)


@real
def test_what_is_put_off_is_sent_on():
    """A collective needs what an earlier one has not brought about yet."""
    rank = begin()
    store = dist.distributed_c10d._get_default_store()
    pair = dist.new_group([0, 1])
    x = torch.ones(3, device="cuda")
    if rank == 3:
        store.get("joined")
    dist.all_reduce(x)
    x.mul_(rank + 1)
    if rank == 2:
        store.set("joined", "1")
    if rank < 2:
        dist.all_reduce(x, group=pair)
        assert x.tolist() == [12.0] * 3


@real
def test_a_backward_pass_is_put_off():
    rank = begin()
    store = dist.distributed_c10d._get_default_store()
    if rank:
        store.get("go")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)).cuda()  # ReLU's backward needs its result
    x = torch.full((2, 3), 1.0, device="cuda")
    dist.all_reduce(x)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    model(x).sum().backward()
    optimizer.step()
    if not rank:
        store.set("go", "1")
    torch.manual_seed(0)
    own = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    own(torch.full((2, 3), 4.0)).sum().backward()
    torch.optim.SGD(own.parameters(), 0.1).step()
    for p, q in zip(model.parameters(), own.parameters(), strict=True):
        assert torch.equal(p.cpu(), q)


@pytest.mark.shows("PyTorch: functional collectives")
@real
def test_collectives_that_return_their_result_are_on_the_device():
    from torch.distributed import _functional_collectives as functional

    rank = begin()
    x = torch.full((2,), float(rank), device="cuda")
    summed = functional.all_reduce(x, "sum", dist.group.WORLD)
    assert summed.device.index == rank and summed.tolist() == [6.0, 6.0]
    gathered = functional.all_gather_tensor(x, 0, dist.group.WORLD)
    assert gathered.device.index == rank and gathered.tolist() == [0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0]


def sharded(rank, size):
    """The simulated times of three steps with FSDP."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Sequential(nn.Linear(16, 16), nn.ReLU()) for _ in range(3)]).cuda()
    mesh = init_device_mesh("cuda", (size,))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    x, times = torch.ones(2, 16).cuda() * rank, []
    for _ in range(3):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        start.record()
        model(x).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    assert all(p.device.type == "cuda" for p in model.parameters())
    return times


@pytest.mark.parametrize("size", [2, 4])
def test_without_data_ranks_take_as_long(size):
    from torchemu.frontends import torch as front_end
    from torchemu.runtime import world as worlds
    from torchemu.runtime.tasks import Tasks

    def run(data):
        found = {}

        def program(rank):
            dist.init_process_group("nccl", init_method="tcp://localhost:29500", rank=rank, world_size=size)
            torch.cuda.set_device(rank)
            found[rank] = sharded(rank, size)
            dist.destroy_process_group()

        with worlds.opened() as world, front_end.opened(world, data=data):
            tasks = Tasks(worlds.current(), program, (), size)
            tasks.run()
            assert not tasks.failures, tasks.failures
        return found

    with_data = run(True)
    assert len(with_data) == size and run(False) == with_data


@torchemu.distributed(world_size=2, torch="real")
def test_a_thread_that_catches_up_leaves_alone_what_another_has_put_off_meanwhile():
    """Rank 1 sends the second thread's data only when the first thread has got all of its own."""
    begin()
    groups = [dist.new_group([0, 1]) for _ in range(2)]
    store = dist.distributed_c10d._get_default_store()
    if dist.get_rank():
        for number, group in enumerate(groups):
            store.wait([f"send {number}"])
            dist.send(torch.full((2,), number + 1.0, device="cuda"), 0, group=group)
        return
    found = [None, None]

    def receive(number):
        with torch.cuda.stream(torch.cuda.Stream()):
            x = torch.zeros(2, device="cuda")
            dist.recv(x, 1, group=groups[number])
            y = x * 10
            if number:
                store.set("send 0", "1")
            found[number] = y.tolist()
            if not number:
                store.set("send 1", "1")

    threads = [threading.Thread(target=receive, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[10.0, 10.0], [20.0, 20.0]]
